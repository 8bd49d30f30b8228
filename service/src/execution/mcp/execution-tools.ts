import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";

/** Many clients wait one minute for a tool. */
export const MAX_WAIT_SECONDS = 45;

const executionId = z.string().min(1).max(100).describe("The executionId of the run: exec_…");
export const CancelExecution = z.strictObject({ executionId });
export const GetExecution = z.strictObject({
  executionId,
  waitSeconds: z
    .int()
    .min(0)
    .max(MAX_WAIT_SECONDS)
    .default(MAX_WAIT_SECONDS)
    .describe("Seconds to wait for the end of a workflow"),
});
export const inputOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input" }) as Tool["inputSchema"];

/** The result of a run; output and usage are those of the API. */
export const executionSchema = {
  type: "object" as const,
  properties: {
    executionId: { type: "string" },
    status: { type: "string", enum: ["queued", "running", "waiting", "completed", "failed", "canceled"] },
    output: {},
    error: { type: ["object", "null"] },
    usage: { type: ["object", "null"] },
    waitingFor: { type: "array", items: { type: "string" } },
  },
  required: ["executionId", "status", "output", "error", "usage", "waitingFor"],
};

/** Names of products' tools begin with "run_", so they cannot be equal to these. */
export const executionTools: Tool[] = [
  {
    name: "get_execution",
    title: "Look at a run",
    description:
      "Returns the status of a run, and its output when it has ended. Waits up to waitSeconds for the end of a workflow.",
    inputSchema: inputOf(GetExecution),
    outputSchema: executionSchema,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: "cancel_execution",
    title: "Cancel a run",
    description: "Cancels a run that has not ended. Its costs until then remain.",
    inputSchema: inputOf(CancelExecution),
    outputSchema: executionSchema,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
];
