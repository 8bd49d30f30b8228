import type { Execution } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { mustFindExecution, toExecution } from "./executions.ts";
import { type ExecutionRow, listCancelRequests, requestCancel } from "./queries.ts";

/** Requests the cancellation, waits a moment for the process that runs the execution, and returns the execution as it is then. */
export async function cancelExecution(ctx: Context, caller: Member, executionId: string): Promise<Execution> {
  const execution = await mustFindExecution(ctx, caller, executionId);
  if (execution.completedAt === null) {
    await requestCancel(ctx.db, execution.id, ctx.now());
    await ctx.executionKinds[execution.type].cancel(ctx, execution);
  } else mustBeAlreadyCanceled(execution);
  const canceled = await mustFindExecution(ctx, caller, executionId);
  if (canceled.completedAt !== null) mustBeAlreadyCanceled(canceled);
  return toExecution(canceled);
}

/** A repeated cancellation succeeds. */
function mustBeAlreadyCanceled({ status }: ExecutionRow): void {
  if (status === "canceled") return;
  throw new ApiError("INVALID_STATE", "The execution has ended.", {
    current: status,
    allowed: ["queued", "running", "waiting"],
  });
}

/** Notifications can be missed while the listening connection is away, so cancellations are polled then. */
export async function pollCancelRequests(ctx: Context): Promise<void> {
  const { ids } = ctx.liveRuns;
  if (ids.length === 0 || ctx.notifications.areCurrent()) return;
  for (const { id, reason } of await listCancelRequests(ctx.db, ids))
    ctx.liveRuns.get(id)?.abort(reason ?? "canceled");
}
