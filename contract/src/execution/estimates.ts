import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { Provider } from "../core/providers.ts";
import { draftToRun, executionTypes } from "./executions.ts";

const tokens = z.object({ min: z.int(), max: z.int().nullable().describe("null: no limit") });
const cost = z
  .object({
    min: z.number().nullable(),
    max: z.number().nullable(),
  })
  .describe("USD; null: no price is known for this model, or nothing limits the tokens");

const EstimatedCall = z
  .object({
    stepId: z.string().nullable().describe("For a workflow; null: a prompt"),
    provider: Provider.nullable().describe("null: a step that runs another product"),
    model: z.string().nullable().describe("null: known only to the owner of the server"),
    calls: z
      .object({ min: z.int(), max: z.int() })
      .describe("More than one for a map and for retries; 0 for a step that may be skipped"),
    promptTokens: tokens.describe("By rule of thumb, a quarter of the bytes; providers count differently"),
    completionTokens: tokens.describe("At most maxTokens, or the rest of the context window"),
    cost: cost.describe("USD of all its calls"),
    contextWindow: z.int().nullable().describe("Tokens; null: not known"),
    fits: z
      .boolean()
      .nullable()
      .describe("Whether prompt and maxTokens fit into the window; null: not known"),
  })
  .meta({ id: "EstimatedCall" });

export const EstimateExecution = z
  .strictObject({
    productId: z.string().min(1).max(100),
    apiKeyId: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe("The key for a prompt run; default: every provider of the product"),
    // Problems of variables are 422 and name each variable, so the schema only requires an object.
    variables: z
      .record(z.string(), z.unknown())
      .default({})
      .describe("A prompt's variables, or a workflow's input"),
    draft: draftToRun,
    options: z
      .strictObject({
        model: z.string().min(1).max(200).optional(),
        maxTokens: z.int().min(1).max(1_000_000).optional(),
        version: z.string().max(40).optional().describe("A version that you may run"),
      })
      .default({}),
  })
  .meta({ id: "EstimateExecution" });

export const Estimate = z
  .object({
    productId: z.string(),
    productVersion: z.string(),
    type: z.enum(executionTypes),
    calls: z.array(EstimatedCall).describe("For a prompt, one for each provider that it could run on"),
    cost: cost.describe("USD of a run: minimum and maximum of a prompt's calls, or the sum of a workflow's"),
    prices: z.string().describe("The price list and its version"),
  })
  .meta({ id: "Estimate" });

export type EstimateExecution = z.output<typeof EstimateExecution>;
export type Estimate = z.input<typeof Estimate>;
export type EstimatedCall = z.input<typeof EstimatedCall>;

export const estimate = endpoint({
  name: "ai.estimate",
  method: "POST",
  path: "/ai/estimate",
  summary: "Estimate tokens, cost and fit of a run",
  description:
    "Makes the checks of POST /ai/execute, and calls no provider. `min` is a run with an empty answer, `max` one that uses everything allowed. Outputs of other steps are not known before a workflow runs: `min` of a step is its text without values, `max` the model's context window.",
  access: { who: "member", permission: "ai:execute" },
  request: json(EstimateExecution, {
    productId: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p",
    variables: { topic: "autumn" },
  }),
  response: one(Estimate),
  errors: [
    "PRODUCT_NOT_FOUND",
    "PRODUCT_UNAVAILABLE",
    "PROVIDER_KEY_NOT_FOUND",
    "PROVIDER_NOT_SUPPORTED",
    "VALIDATION_ERROR",
  ],
});
