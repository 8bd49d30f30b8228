import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";
import { testSetHash } from "./test-sets.ts";

const Rate = z
  .object({
    value: z.number().describe("From 0 to 1; each case counts equally"),
    low: z.number(),
    high: z.number(),
    effectiveN: z
      .number()
      .describe("How many independent runs the interval is worth: repeats of one case are alike"),
  })
  .nullable()
  .describe("With its 95 % Wilson interval; null: no run has a verdict");

const counted = {
  passed: z.int(),
  n: z.int().describe("Runs with a deterministic verdict; a run without an output did not pass"),
  rate: Rate,
};

const judged = {
  ...counted,
  n: z.int().describe("Runs with a verdict of the judge; a run without an output did not pass"),
  undecided: z
    .int()
    .describe(
      "Of these, runs about which the judge gave no answer that can be read: they count as not passed",
    ),
};

export const EmbeddingModel = z.object({
  provider: z.string(),
  model: z.string(),
  isSandbox: z.boolean().describe("Whether the practice provider counted words in place of a model"),
});

export const Judge = z
  .object({
    provider: z.string(),
    model: z.string(),
    isSandbox: z.boolean().describe("Whether a practice provider judged, and no model"),
    rubricsHash: z
      .string()
      .describe(
        "Equal for two evaluations by one test set whose judges were asked the same. It covers the judge's instructions and the judged assertions of all cases as canonical JSON (RFC 8785). HMAC-SHA256 under the salt of the test set",
      ),
    embedding: EmbeddingModel.optional().describe(
      "The model whose embeddings decided similar and answer-relevance; absent: these have no verdict",
    ),
  })
  .meta({ id: "Judge", description: "The model that decided judged assertions, such as llm-rubric." });

const ScoredModel = z
  .object({
    provider: z.string().nullable().describe("null: as the steps of the workflow say"),
    model: z.string().nullable(),
    isSandbox: z.boolean().describe("Whether a practice provider answered, and no model"),
    ...counted,
    passPowerK: z
      .object({ k: z.int(), rate: Rate })
      .describe("pass^k: the share of cases that pass in all of k runs"),
    medianCost: z.number().nullable().describe("USD of a run; null: not known"),
    medianLatencyMs: z.number().nullable(),
    baseline: z
      .object({
        ...counted,
        provider: z.string().optional(),
        model: z.string().optional().describe("Of a workflow: the model of its last call"),
        isSandbox: z.boolean().optional(),
      })
      .nullable()
      .describe(
        "The same model with the input alone, without the product; null: a case has no input, a workflow calls no model, or its last model has no known price",
      ),
    judged: z
      .object({ ...judged, baseline: z.object(judged).nullable() })
      .optional()
      .describe("By the judge, never part of the other numbers; absent: nothing was judged"),
  })
  .meta({ id: "ScoredModel" });

export const CardScore = z
  .object({
    ...ScoredModel.pick({ provider: true, model: true, isSandbox: true, medianCost: true }).shape,
    baseline: z.object(counted).nullable().describe("The bare model with the input alone"),
    ...counted,
    rate: Rate.unwrap(),
  })
  .meta({ id: "CardScore", description: "What the score card says of one model." });

export const Regression = z
  .object({
    provider: z.string().nullable().describe("null: as the steps of the workflow say"),
    model: z.string().nullable(),
    cause: z
      .enum(["model", "version"])
      .describe("model: the same content passed more before; version: the version before passed more"),
    since: Timestamp.describe("When the first evaluation that measured it completed"),
    before: z.object({
      evaluationId: z.string(),
      version: z.string(),
      evaluatedAt: Timestamp,
      ...counted,
    }),
    after: z.object(counted),
  })
  .meta({
    id: "Regression",
    description:
      "A model that passes fewer runs of the same cases than before, by more than the 95 % intervals explain.",
  });

export const ScoreCard = z
  .object({
    evaluationId: z.string(),
    version: z.string(),
    testSetHash,
    visibleCases: z.int(),
    hiddenCases: z.int(),
    judgedCases: z.int().describe("Cases with assertions that a judge model decides"),
    judge: Judge.nullable().describe("null: judged assertions have no verdict"),
    repeats: z.int(),
    models: z.array(ScoredModel),
    regressions: z
      .array(Regression)
      .describe("Models that pass less than before; empty as soon as an evaluation finds none"),
    evaluations: z
      .int()
      .describe("How many evaluations of this version were started; the newest completed one is shown"),
    runs: z
      .object({ failed: z.int(), n: z.int() })
      .describe("Real runs of this version by others than its author that ended, and how many failed"),
    prices: z.string().describe("The price list and its version"),
    evaluatedAt: Timestamp,
  })
  .meta({
    id: "ScoreCard",
    description:
      "What the newest completed evaluation of the released version measured, by the seller's test set.",
  });

export type ScoreCard = z.input<typeof ScoreCard>;
export type Regression = z.input<typeof Regression>;

export const get = endpoint({
  name: "products.scoreCard.get",
  method: "GET",
  path: "/products/:productId/score-card",
  summary: "Read the score card of a product",
  description:
    "It shows the newest completed evaluation of the released version; the seller cannot choose another one.",
  access: { who: "visitor", permission: "products:read" },
  params: z.object({ productId: z.string() }),
  response: one(
    z.object({ scoreCard: ScoreCard.nullable().describe("null: no evaluation of this version completed") }),
  ),
  errors: ["PRODUCT_NOT_FOUND"],
});
