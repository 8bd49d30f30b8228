import type { Tool } from "@modelcontextprotocol/server";
import { api } from "@stoa/contract";
import { z } from "zod";
import { inputOf, MAX_WAIT_SECONDS } from "./execution-tools.ts";

const { repeats, maxCost, apiKeys, judge } = api.evaluations.create.request.body.shape;
const keyId = z.string().min(1).max(100);
const waitSeconds = z
  .int()
  .min(0)
  .max(MAX_WAIT_SECONDS)
  .default(MAX_WAIT_SECONDS)
  .describe("Seconds to wait for the end");

export const Evaluate = z.strictObject({
  product: z.string().min(1).max(100).describe("Your product: the name of its tool (run_…), or its id"),
  models: z
    .array(
      z.strictObject({
        model: z.string().min(1).max(200).optional().describe("Default: the model of the product"),
        apiKeyId: keyId.optional().describe("A stored provider key. Default: your newest key that fits"),
      }),
    )
    .min(1)
    .optional()
    .describe("For a prompt. Default: one model, that of your newest key that fits"),
  apiKeys: apiKeys.describe(
    "For a workflow: ids of stored provider keys, by provider. Default: your newest keys",
  ),
  repeats,
  judge: judge
    .nullable()
    .describe(
      "The model that decides judged assertions (llm-rubric, factuality): a stored provider key, and a model. Its embedding has the key and the model that decide similar and answer-relevance. Default: the judge of the current score card, if the test set has assertions that it decides. null: no judge",
    ),
  maxCost: maxCost
    .optional()
    .describe(
      "USD of the whole evaluation, which your user confirmed. Without it, the tool estimates and starts nothing",
    ),
  waitSeconds,
});

const evaluationId = z.string().min(1).max(100).describe("The evaluationId: eval_…");
export const GetEvaluation = z.strictObject({ evaluationId, waitSeconds });
export const CancelEvaluation = z.strictObject({ evaluationId });

const outputSchema = {
  type: "object" as const,
  properties: {
    evaluationId: { type: ["string", "null"] },
    status: { type: "string", enum: ["estimated", "running", "completed", "failed", "canceled"] },
    version: { type: ["string", "null"] },
    runs: { type: "integer" },
    cost: { type: ["number", "null"] },
    error: { type: ["object", "null"] },
    models: { type: "array", items: { type: "object" } },
  },
  required: ["evaluationId", "status", "version", "runs", "cost", "error", "models"],
};

/** For authors. Names of products' tools begin with "run_", so they cannot be equal to these. */
export const evaluationTools: Tool[] = [
  {
    name: "evaluate",
    title: "Evaluate a product of yours",
    description:
      "Runs the test set of a product that you wrote, on models and beside it on the bare models. Call it first without maxCost: it returns the number of runs and the expected cost, and starts nothing. Show both to your user. Call it again with the maxCost that your user confirmed: the runs cost money at your provider, and buyers see the result on the score card. It replaces the card before it, so the judge of that card judges again unless judge names another one, or is null.",
    inputSchema: inputOf(Evaluate),
    outputSchema,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  },
  {
    name: "get_evaluation",
    title: "Look at an evaluation",
    description:
      "Returns the status of an evaluation, and the passed runs of each model with intervals when it has ended. Waits up to waitSeconds for the end.",
    inputSchema: inputOf(GetEvaluation),
    outputSchema,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: "cancel_evaluation",
    title: "Cancel an evaluation",
    description: "Cancels an evaluation that has not ended. Its costs until then remain.",
    inputSchema: inputOf(CancelEvaluation),
    outputSchema,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
];
