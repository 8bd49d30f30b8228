import { z } from "zod";
import { Judge, Regression } from "../catalog/score-card.ts";
import { testSetHash } from "../catalog/test-sets.ts";
import { endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";
import { embeddingProviders } from "../core/providers.ts";

export const MAX_EVALUATED_MODELS = 5;
export const MAX_REPEATS = 10;
/** Of one column: cases times repeats. */
export const MAX_RUNS_OF_COLUMN = 200;
/** Of one column: cases times repeats times the calls for judged assertions. */
export const MAX_JUDGE_CALLS_OF_COLUMN = 400;
export const MAX_EXCERPT_CHARACTERS = 500;

const keyId = z.string().min(1).max(100);
const modelName = z.string().trim().min(1).max(200);

export const EvaluateProduct = z
  .strictObject({
    models: z
      .array(
        z.strictObject({
          apiKeyId: keyId.describe("A provider key of yours, or sandbox"),
          model: modelName.optional().describe("Default: the model of the product for this provider"),
        }),
      )
      .min(1)
      .max(MAX_EVALUATED_MODELS)
      .optional()
      .describe("For a prompt. Each model also runs the baseline: the variables alone, without the prompt"),
    apiKeys: z
      .record(z.string(), keyId)
      .optional()
      .describe(
        "For a workflow: the keys of its steps by provider, as at execute. The model of its last call also runs the baseline: the input alone",
      ),
    repeats: z
      .int()
      .min(1)
      .max(MAX_REPEATS)
      .default(3)
      .describe(
        `How often each case runs on each model; cases times repeats are at most ${MAX_RUNS_OF_COLUMN}`,
      ),
    judge: z
      .strictObject({
        apiKeyId: keyId.describe("A provider key of yours, or sandbox"),
        model: modelName.optional().describe("Default: the default model of the provider"),
        embedding: z
          .strictObject({
            apiKeyId: keyId.describe(
              `A key of ${embeddingProviders.filter((id) => id !== "sandbox").join(", ")}, or sandbox. If the judge has the same provider: the key of the judge`,
            ),
            model: modelName.optional().describe("Default: the default embedding model of the provider"),
          })
          .optional()
          .describe(
            "The model whose embeddings decide similar and answer-relevance; without it these have no verdict",
          ),
      })
      .optional()
      .describe(
        `The model that decides judged assertions (llm-rubric, factuality); without it they have no verdict. Cases times repeats times calls for such assertions are at most ${MAX_JUDGE_CALLS_OF_COLUMN}: two calls for an answer-relevance, one for the others`,
      ),
    maxCost: z.number().positive().max(10_000).describe("USD of the whole evaluation, with the judge"),
  })
  .meta({ id: "EvaluateProduct" });

const evaluationStatuses = ["running", "completed", "failed", "canceled"] as const;
const columnKinds = ["product", "baseline", "judge"] as const;
const evaluationStarters = ["seller", "model_deprecated", "price_changed", "schedule"] as const;
const judgedOutcomes = ["passed", "failed", "undecided"] as const;

const columnFields = {
  kind: z
    .enum(columnKinds)
    .describe(
      "baseline: the model gets the input alone, without the product; judge: it judges the outputs of another column",
    ),
  judgedColumn: z.int().nullable().describe("Of a judge: the index of the column whose outputs it judges"),
  provider: z.string().nullable().describe("null: as the steps of the workflow say"),
  model: z.string().nullable(),
  isSandbox: z.boolean().describe("Whether a practice provider answered, and no model"),
};

const Column = z
  .object({
    ...columnFields,
    status: z.enum(["pending", "running", "completed", "failed", "canceled"]),
    executionId: z.string().nullable().describe("Its workflow run; null: not begun, or deleted"),
    passed: z.int(),
    n: z.int().describe("Runs so far with a deterministic verdict; of a judge, with its verdict"),
    undecided: z
      .int()
      .describe(
        "Of a judge: verdicts without an answer that can be read, or of an output that is too long for a judge. They count as not passed",
      ),
    cost: z.number().describe("USD"),
  })
  .meta({ id: "EvaluationColumn" });

export const Evaluation = z
  .object({
    id: z.string(),
    productId: z.string(),
    version: z.string(),
    contentSha256: z.string(),
    testSetHash,
    visibleCases: z.int(),
    hiddenCases: z.int(),
    judgedCases: z.int().describe("Cases with assertions that a judge model decides"),
    judge: Judge.nullable().describe("null: judged assertions have no verdict"),
    repeats: z.int(),
    startedBy: z
      .enum(evaluationStarters)
      .describe("seller: by a request; otherwise why the service repeated the evaluation before it"),
    status: z.enum(evaluationStatuses),
    error: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .describe("Why it failed. The results so far stay"),
    maxCost: z.number(),
    cost: z.number().describe("USD so far"),
    prices: z.string().describe("The price list and its version"),
    columns: z.array(Column),
    regressions: z
      .array(Regression)
      .describe("Models that pass less than before; empty until it completed, and for unreleased versions"),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "Evaluation" });

const verdictFields = {
  type: z.string(),
  isPassed: z.boolean(),
  score: z.number().describe("From 0 to 1"),
  reason: z.string(),
  metric: z.string().optional(),
};

const AssertionVerdict = z
  .object({
    ...verdictFields,
    assertions: z.array(z.object(verdictFields)).optional().describe("Those of an assert-set"),
  })
  .meta({ id: "AssertionVerdict" });

const judgedFields = {
  type: z.string(),
  outcome: z
    .enum([...judgedOutcomes, "not_judged"])
    .describe(
      "undecided: the judge gave no answer that can be read, or the texts have no embeddings; not_judged: the judge has no embedding model for this type",
    ),
  score: z.number().nullable().describe("From 0 to 1; null: it depends on what is undecided"),
  reason: z.string().describe("The judge's reason, or the cosines of the embeddings"),
  metric: z.string().optional(),
};

const Judgment = z
  .object({
    outcome: z.enum(judgedOutcomes).describe("undecided counts as not passed"),
    score: z.number().nullable().describe("The weighted mean of the scores of the judged assertions"),
    verdicts: z.array(
      z.object({
        ...judgedFields,
        assertions: z.array(z.object(judgedFields)).optional().describe("Those of an assert-set"),
      }),
    ),
  })
  .meta({ id: "Judgment", description: "The verdict of a judge model about one run." });

const Result = z
  .object({
    column: z.int().describe("Index in columns"),
    case: z.int().describe("Index in the test set"),
    repeat: z.int(),
    status: z.enum(["completed", "failed"]).describe("failed: the run gave no output, which does not pass"),
    errorCode: z.string().nullable(),
    isPassed: z
      .boolean()
      .nullable()
      .describe("By the deterministic assertions; null: the case has none, so the run is not counted"),
    score: z.number().nullable().describe("The weighted mean of their scores"),
    verdicts: z.array(AssertionVerdict),
    judgment: Judgment.nullable().describe(
      "By the judged assertions, never mixed with `isPassed`; null: there is none, or none yet",
    ),
    output: z
      .string()
      .nullable()
      .describe(
        `The first ${MAX_EXCERPT_CHARACTERS} characters of the text, or of a workflow's result as JSON; null: none`,
      ),
    cost: z.number().nullable().describe("USD"),
    latencyMs: z.int().nullable(),
  })
  .meta({ id: "EvaluationResult" });

export const EvaluationDetail = z
  .object({
    ...Evaluation.shape,
    cases: z.array(z.object({ title: z.string(), isHidden: z.boolean() })),
    results: z.array(Result),
  })
  .meta({ id: "EvaluationDetail", description: "An evaluation with the verdict of each run." });

export const EvaluationEstimate = z
  .object({
    runs: z.int().describe("Runs of all columns, with the calls of the judge"),
    columns: z.array(
      z.object({
        ...columnFields,
        runs: z.int(),
        cost: z.number().nullable().describe("USD expected; null: no price is known"),
      }),
    ),
    cost: z
      .number()
      .nullable()
      .describe("USD expected, with 500 tokens for each answer, and 4,000 for one of the judge: its limit"),
    prices: z.string(),
  })
  .meta({ id: "EvaluationEstimate" });

export type EvaluateProduct = z.output<typeof EvaluateProduct>;
export type Evaluation = z.input<typeof Evaluation>;
export type EvaluationDetail = z.input<typeof EvaluationDetail>;
export type EvaluationEstimate = z.input<typeof EvaluationEstimate>;
export type EvaluationStatus = (typeof evaluationStatuses)[number];
export type EvaluationStarter = (typeof evaluationStarters)[number];

const access = { who: "member", permission: "ai:execute" } as const;
const ofProduct = z.object({ productId: z.string() });
const ofEvaluation = z.object({ evaluationId: z.string() });
const example = { models: [{ apiKeyId: "sandbox", model: "sandbox-echo" }], repeats: 3, maxCost: 1 };
const errors = [
  "PRODUCT_NOT_FOUND",
  "PRODUCT_UNAVAILABLE",
  "PROVIDER_KEY_NOT_FOUND",
  "PROVIDER_NOT_SUPPORTED",
  "VALIDATION_ERROR",
] as const;

export const create = endpoint({
  name: "evaluations.create",
  method: "POST",
  path: "/products/:productId/evaluations",
  summary: "Evaluate the current version of a product by its test set",
  description:
    "For its author. Every case runs on every model as often as `repeats` says, on your provider keys. Beside it runs a baseline: the same model with the input alone, of a workflow the model of its last call. No call starts that is expected to exceed `maxCost`, and the evaluation has then failed; open calls can end above it. They count neither as runs of the product nor in its analytics. With `judge`, a model judges each output by the rubrics of the test set, and with its `embedding` also by similarity.",
  access,
  params: ofProduct,
  request: json(EvaluateProduct, example),
  response: one(Evaluation, { accepted: { kind: "pending" } }),
  errors: [...errors, "INVALID_STATE"],
});

export const estimate = endpoint({
  name: "evaluations.estimate",
  method: "POST",
  path: "/products/:productId/evaluations/estimate",
  summary: "Estimate the runs and the cost of an evaluation",
  description: "With the checks of the evaluation. It calls no provider and writes nothing.",
  access,
  params: ofProduct,
  request: json(EvaluateProduct, example),
  response: one(EvaluationEstimate),
  errors,
});

export const list = endpoint({
  name: "evaluations.list",
  method: "GET",
  path: "/products/:productId/evaluations",
  summary: "List the evaluations of a product, newest first",
  description: "For its author.",
  access,
  params: ofProduct,
  query: z.strictObject(paging),
  response: listOf(Evaluation),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const get = endpoint({
  name: "evaluations.get",
  method: "GET",
  path: "/evaluations/:evaluationId",
  summary: "Read an evaluation with the verdict of each run",
  description: "For the author of its product.",
  access,
  params: ofEvaluation,
  response: one(EvaluationDetail),
  errors: ["EVALUATION_NOT_FOUND"],
});

export const cancel = endpoint({
  name: "evaluations.cancel",
  method: "POST",
  path: "/evaluations/:evaluationId/cancel",
  summary: "Cancel an evaluation",
  description: "The call that runs is aborted, and the results so far stay.",
  access,
  params: ofEvaluation,
  response: one(Evaluation),
  errors: ["EVALUATION_NOT_FOUND", "INVALID_STATE"],
});
