import type { CallToolResult } from "@modelcontextprotocol/server";
import type { ExecutionDetail } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { mustFindExecution, readExecution } from "../executions/executions.ts";
import { listOwnSteps } from "../workflow-runs/steps.ts";
import { MAX_WAIT_SECONDS } from "./execution-tools.ts";
import { toToolResult } from "./results.ts";
import type { ToolCall } from "./tool-call.ts";

const FIRST_STEPS = { page: 1, limit: 100 };

/** Waits until a workflow's execution ends, waits for its owner's decision, or the time is signalOrTimeout. */
export async function waitForEnd(
  ctx: Context,
  caller: Member,
  { executionId, waitSeconds = MAX_WAIT_SECONDS }: { executionId: string; waitSeconds?: number },
  { signal, reportProgress }: ToolCall,
): Promise<void> {
  const execution = await mustFindExecution(ctx, caller, executionId);
  // A client that asked for progress gets the events of an ended run, too: it may have ended before this check.
  if (execution.type !== "WORKFLOW" || (execution.completedAt !== null && !reportProgress)) return;
  const signalOrTimeout = AbortSignal.any([signal, ctx.shutdown, AbortSignal.timeout(waitSeconds * 1000)]);
  let count = 0;
  for await (const event of ctx.executionKinds.WORKFLOW.streamEvents(ctx, execution, null, signalOrTimeout)) {
    const type = required(event.type, "the type of an execution's event");
    await reportProgress?.(++count, type);
    if (WAITING_EVENTS.has(type) && (await isWaitingForOwner(ctx, caller, executionId))) return;
  }
}

/** The events of an approval, and of the last step that ends beside it. */
const WAITING_EVENTS = new Set(["step.waiting", "execution.waiting"]);

/** Whether the execution needs a decision before it can continue. */
async function isWaitingForOwner(ctx: Context, caller: Member, executionId: string): Promise<boolean> {
  const { status } = await mustFindExecution(ctx, caller, executionId);
  return status === "waiting" && (await listOpenApprovals(ctx, caller, executionId)).length > 0;
}

/** Waiting approvals without a decision: a decided step may continue at any moment. */
async function listOpenApprovals(ctx: Context, caller: Member, executionId: string): Promise<string[]> {
  const { items } = await listOwnSteps(ctx, caller, executionId, FIRST_STEPS);
  return items
    .filter(({ type, status, decision }) => type === "approval" && status === "waiting" && decision === null)
    .map(({ stepId }) => stepId);
}

export async function toExecutionResult(
  ctx: Context,
  caller: Member,
  executionId: string,
): Promise<CallToolResult> {
  const execution = await readExecution(ctx, caller, executionId);
  const { id, status, output, error, usage } = execution;
  const waitingFor = status === "waiting" ? await listOpenApprovals(ctx, caller, executionId) : [];
  const payload = { executionId: id, status, output, error, usage, waitingFor };
  return toToolResult(describeExecution(ctx, execution, waitingFor), payload);
}

/** A failed or canceled run is also a failed tool call. */
export const markFailedRun = (result: CallToolResult): CallToolResult => {
  const { status } = result.structuredContent as Pick<ExecutionDetail, "status">;
  return status === "failed" || status === "canceled" ? { ...result, isError: true } : result;
};

function describeExecution(
  ctx: Context,
  { id, status, output, error }: ExecutionDetail,
  waitingFor: string[],
): string {
  if (status === "completed" && output === null)
    return `Execution ${id} has completed; it has no output, or the output is not stored.`;
  if (status === "completed") return typeof output === "string" ? output : JSON.stringify(output);
  if (error) return `${error.code}: ${error.message}\nIt was execution ${id}.`;
  if (status === "canceled") return `Execution ${id} was canceled.`;
  const path = `${ctx.links.origin()}/v1/ai/executions/${id}/steps`;
  const approvals = waitingFor.map(
    (stepId) => `It waits until its owner decides: POST ${path}/${stepId}/approve or /reject.`,
  );
  return [`Execution ${id} has not ended: it is ${status}.`, ...approvals, "Call get_execution later."].join(
    " ",
  );
}
