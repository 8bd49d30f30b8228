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

/** Until a workflow's execution has ended, or waits for somebody's decision, or the time is up. */
export async function waitForEnd(
  ctx: Context,
  caller: Member,
  { executionId, waitSeconds = MAX_WAIT_SECONDS }: { executionId: string; waitSeconds?: number },
  { signal, reportProgress }: ToolCall,
): Promise<void> {
  const execution = await mustFindExecution(ctx, caller, executionId);
  // A client that asked for progress gets the events of an ended run, too: it may have ended before this check.
  if (execution.type !== "WORKFLOW" || (execution.completedAt !== null && !reportProgress)) return;
  const over = AbortSignal.any([signal, ctx.shutdown, AbortSignal.timeout(waitSeconds * 1000)]);
  let count = 0;
  for await (const event of ctx.executionKinds.WORKFLOW.streamEvents(ctx, execution, null, over)) {
    const type = required(event.type, "the type of an execution's event");
    await reportProgress?.(++count, type);
    if (WAITING_EVENTS.has(type) && (await isWaitingForOwner(ctx, caller, executionId))) return;
  }
}

/** Of an approval, and of the last step beside it. */
const WAITING_EVENTS = new Set(["step.waiting", "execution.waiting"]);

/** Whether nothing goes on in it before somebody has decided. */
async function isWaitingForOwner(ctx: Context, caller: Member, executionId: string): Promise<boolean> {
  const { status } = await mustFindExecution(ctx, caller, executionId);
  return status === "waiting" && (await listOpenApprovals(ctx, caller, executionId)).length > 0;
}

/** The steps that wait for a decision of its owner; what was decided goes on at any moment. */
async function listOpenApprovals(ctx: Context, caller: Member, executionId: string): Promise<string[]> {
  const { items } = await listOwnSteps(ctx, caller, executionId, FIRST_STEPS);
  return items
    .filter(({ type, status, decision }) => type === "approval" && status === "waiting" && decision === null)
    .map(({ stepId }) => stepId);
}

/** How an execution stands, and what came of it. */
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

/** A run that came to nothing has failed as a call, too. */
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
    return `Execution ${id} has completed; it has no output, or none that is kept.`;
  if (status === "completed") return typeof output === "string" ? output : JSON.stringify(output);
  if (error) return `${error.code}: ${error.message}\nIt was execution ${id}.`;
  if (status === "canceled") return `Execution ${id} was canceled.`;
  const path = `${ctx.links.origin()}/v1/ai/executions/${id}/steps`;
  const approvals = waitingFor.map(
    (stepId) => `It waits until its owner decides: POST ${path}/${stepId}/approve or /reject.`,
  );
  return [
    `Execution ${id} has not ended: it is ${status}.`,
    ...approvals,
    "Ask get_execution for it later.",
  ].join(" ");
}
