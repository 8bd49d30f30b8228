import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";
import { SignedRunReceipt } from "../core/signed-run-receipt.ts";
import { executionStatuses, executionTypes } from "./executions.ts";

const spent = {
  provider: z.string().nullable(),
  model: z.string().nullable(),
};

/** The content of a receipt, valid after the check of its signature. */
export const RunReceipt = z
  .object({
    iss: z.string().describe("The marketplace"),
    iat: z.int().describe("When the receipt was created, in Unix seconds"),
    execution: z.object({
      id: z.string(),
      type: z.enum(executionTypes),
      mode: z.enum(["sync", "async", "stream"]),
      status: z.enum(executionStatuses),
      createdAt: Timestamp,
      completedAt: Timestamp,
      durationMs: z.int().nullable(),
      attempts: z.int(),
      finishReason: z.string().nullable(),
      errorCode: z.string().nullable(),
    }),
    product: z.object({
      id: z.string(),
      version: z.string(),
      contentSha256: z.string().nullable().describe("Hash of `content`, in hex; null: it ran as a draft"),
    }),
    ...spent,
    usage: z
      .object({
        promptTokens: z.int(),
        completionTokens: z.int(),
        totalTokens: z.int(),
        estimatedCost: z.number(),
        costKnown: z.boolean(),
        estimated: z.boolean(),
        currency: z.literal("USD"),
        prices: z.string().nullable().describe("The price list and its version"),
      })
      .nullable(),
    texts: z
      .object({
        algorithm: z.literal("HMAC-SHA256"),
        variables: z
          .string()
          .describe("Hash of their JSON, without spaces and with names in order (RFC 8785)"),
        output: z.string().nullable().describe("Hash of the text; for a workflow's result, of its JSON"),
      })
      .nullable()
      .describe("In hex, under the salt; null: no texts are stored"),
    steps: z
      .array(
        z.object({
          id: z.string(),
          item: z.int().nullable().describe("For a map, from 0"),
          status: z.string(),
          attempts: z.int(),
          executionId: z.string().nullable().describe("For a step that ran another product"),
          ...spent,
          promptTokens: z.int().nullable(),
          completionTokens: z.int().nullable(),
          estimatedCost: z.number().nullable(),
          costKnown: z.boolean().nullable(),
          estimated: z.boolean(),
          durationMs: z.int().nullable().describe("Of the last attempt; null: the step did not end"),
        }),
      )
      .nullable()
      .describe("For a workflow"),
  })
  .meta({ id: "RunReceipt" });

export type RunReceipt = z.input<typeof RunReceipt>;

export const executionReceipt = endpoint({
  name: "ai.executions.receipt",
  tag: "ai",
  method: "GET",
  path: "/ai/executions/:executionId/receipt",
  summary: "Get a signed receipt of an execution that has ended",
  description:
    "It proves to others which version ran when, on which model, and its cost, without its texts. Each request creates a new one with its own salt.",
  access: { who: "member", permission: "ai:execute" },
  params: z.object({ executionId: z.string() }),
  response: one(SignedRunReceipt),
  errors: ["EXECUTION_NOT_FOUND", "INVALID_STATE"],
});
