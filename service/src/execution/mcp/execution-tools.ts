import type { Tool } from "@modelcontextprotocol/server";
import { z } from "zod";

/** Well within the minute for which many clients wait for a tool. */
export const MAX_WAIT_SECONDS = 45;

const executionId = z.string().min(1).max(100).describe("exec_…, as the run told it");
export const CancelExecution = z.strictObject({ executionId });
export const GetExecution = z.strictObject({
  executionId,
  waitSeconds: z
    .int()
    .min(0)
    .max(MAX_WAIT_SECONDS)
    .default(MAX_WAIT_SECONDS)
    .describe("How long to wait for the end of a workflow"),
});
const inputOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input" }) as Tool["inputSchema"];

/** How a workflow's run stands; output and usage are those of the API. */
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

/** What looks after runs; no product's tool is called so, since these begin with another word. */
export const executionTools: Tool[] = [
  {
    name: "get_execution",
    title: "Look at a run",
    description:
      "How a run stands, with its output when it has ended. For a workflow that has not, it waits a while.",
    inputSchema: inputOf(GetExecution),
    outputSchema: executionSchema,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: "cancel_execution",
    title: "Cancel a run",
    description: "Gives up a run that has not ended. What it has spent by then is spent.",
    inputSchema: inputOf(CancelExecution),
    outputSchema: executionSchema,
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
];
