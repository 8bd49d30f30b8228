import { z } from "zod";
import { EmbeddingModel, Judge, ScoreCard } from "../catalog/score-card.ts";
import { testSetHash } from "../catalog/test-sets.ts";
import { endpoint, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";

const salt = z.string().describe("Base64url");
const hash = z.string().describe("HMAC-SHA256 in hex, under the salt of its own");

const SignedJudgment = z
  .object({
    outcome: z.enum(["passed", "failed", "undecided"]),
    score: z.number().nullable(),
    calls: z
      .array(
        z.object({
          step: z
            .object({ id: z.string(), item: z.int() })
            .nullable()
            .describe("Its step in the run receipt of the judge; null: the output was too long to be judged"),
          cost: z.number().nullable(),
          latencyMs: z.int().nullable(),
          answer: z
            .union([
              z.object({ pass: z.boolean(), score: z.number() }),
              z.object({
                cosines: z
                  .array(z.number())
                  .describe(
                    "Of similar: of the output with each reference. Of answer-relevance: of the input with each question that the judge wrote",
                  ),
              }),
            ])
            .nullable()
            .describe(
              "The judge's answer, or the cosines of embeddings, before threshold and `not-`. Null: there is none that can be read",
            ),
          questions: z
            .object({
              step: z.object({ id: z.string(), item: z.int() }),
              cost: z.number().nullable(),
              latencyMs: z.int().nullable(),
            })
            .optional()
            .describe("Of answer-relevance: the call in which the judge wrote the questions"),
        }),
      )
      .describe("One for each assertion of the case that the judge decides; none: the run gave no output"),
  })
  .meta({
    id: "SignedJudgment",
    description:
      "The verdict of the judge about one run. It follows from the answers; the answers can only be believed.",
  });

/** The content of the signature. */
export const EvaluationStatement = z
  .object({
    iss: z.string().describe("The marketplace"),
    iat: z.int().describe("When it was signed, in Unix seconds"),
    evaluation: z.object({
      id: z.string(),
      repeats: z.int(),
      createdAt: Timestamp,
      completedAt: Timestamp,
      prices: z.string(),
    }),
    product: z.object({ id: z.string(), version: z.string(), contentSha256: z.string() }),
    testSet: z.object({
      hash: testSetHash,
      cases: z.array(
        z.object({
          isHidden: z.boolean(),
          hash: hash.describe("Of its canonical JSON"),
          judgedAssertions: z
            .int()
            .optional()
            .describe("Assertions that a judge is asked about: each of its judgments has as many answers"),
        }),
      ),
    }),
    judge: Judge.extend({
      instructions: z.string().describe("The system message that the judge got"),
      embedding: EmbeddingModel.extend({
        instructions: z.string().describe("The system message by which the judge wrote questions"),
      }).optional(),
    })
      .optional()
      .describe("Absent: nothing was judged"),
    columns: z.array(
      z.object({
        kind: z.enum(["product", "baseline", "judge"]),
        judgedColumn: z
          .int()
          .optional()
          .describe("Of a judge: the index of the column whose outputs it judged"),
        provider: z.string().nullable(),
        model: z.string().nullable(),
        isSandbox: z.boolean(),
        executionId: z.string().nullable(),
        receiptSha256: z
          .string()
          .nullable()
          .describe("SHA-256 of its run receipt; null: the execution was deleted"),
      }),
    ),
    results: z.array(
      z.object({
        column: z.int(),
        case: z.int(),
        repeat: z.int(),
        step: z.object({ id: z.string(), item: z.int() }).describe("Its step in the run receipt"),
        status: z.enum(["completed", "failed"]),
        errorCode: z.string().nullable(),
        isPassed: z.boolean().nullable(),
        score: z.number().nullable(),
        verdicts: z.array(z.object({ type: z.string(), isPassed: z.boolean(), score: z.number() })),
        cost: z.number().nullable(),
        latencyMs: z.int().nullable(),
        outputHash: hash.nullable().describe("Of the text, or of the canonical JSON; null: no output"),
        judgment: SignedJudgment.nullable().optional(),
      }),
    ),
    models: ScoreCard.shape.models,
  })
  .meta({ id: "EvaluationStatement" });

export const EvaluationProof = z
  .object({
    statement: z
      .string()
      .describe(
        "A JWS (RFC 7515) of the type stoa-evaluation whose payload is an EvaluationStatement, signed with Ed25519",
      ),
    receipts: z
      .array(z.string().nullable())
      .describe("The run receipt of each column, a JWS; null: the execution was deleted"),
    testSetSalt: salt
      .nullable()
      .describe(
        "Of the hashes of test set and rubrics; null: a case is hidden, and a guess of it could be tested",
      ),
    cases: z
      .array(z.object({ index: z.int(), salt, case: z.record(z.string(), z.unknown()) }))
      .describe("The visible cases"),
    outputs: z
      .array(z.object({ column: z.int(), case: z.int(), repeat: z.int(), salt, output: z.unknown() }))
      .describe("The outputs of visible cases"),
    keysUrl: z.string().describe("The public keys of this marketplace (JWKS)"),
  })
  .meta({ id: "EvaluationProof" });

export type EvaluationStatement = z.input<typeof EvaluationStatement>;
export type EvaluationProof = z.input<typeof EvaluationProof>;

export const proof = endpoint({
  name: "evaluations.proof",
  method: "GET",
  path: "/evaluations/:evaluationId/proof",
  summary: "Get the signed proof of an evaluation",
  description:
    "For everybody who sees its score card, and for the author of the product once it has completed. Every number of the card can be computed again from it. It has the texts of visible cases; of hidden ones it has hashes, verdicts, costs and durations. It is created once, with the first request.",
  access: { who: "visitor", permission: "products:read" },
  params: z.object({ evaluationId: z.string() }),
  response: one(EvaluationProof),
  errors: ["EVALUATION_NOT_FOUND"],
});
