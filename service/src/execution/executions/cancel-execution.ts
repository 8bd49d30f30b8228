import type { Execution } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { mustFindExecution, toExecution } from "./executions.ts";
import type { ExecutionKinds } from "./kinds.ts";
import { type ExecutionRow, listCancelRequests, requestCancel } from "./queries.ts";

/** Asks whoever runs it to give it up; what nobody runs is canceled at once. Answers how it stands then. */
export async function cancelExecution(
  ctx: Context,
  caller: Member,
  executionId: string,
  kinds: ExecutionKinds,
): Promise<Execution> {
  const execution = await mustFindExecution(ctx, caller, executionId);
  if (execution.completedAt === null) {
    await requestCancel(ctx.db, execution.id, ctx.now());
    await required(kinds[execution.type], `the kind ${execution.type}`).cancel(ctx, execution);
  } else mustBeAlreadyCanceled(execution);
  const canceled = await mustFindExecution(ctx, caller, executionId);
  if (canceled.completedAt !== null) mustBeAlreadyCanceled(canceled);
  return toExecution(canceled);
}

/** To cancel once more is harmless. */
function mustBeAlreadyCanceled({ status }: ExecutionRow): void {
  if (status === "canceled") return;
  throw new ApiError("INVALID_STATE", "The execution has ended.", {
    current: status,
    allowed: ["queued", "running", "waiting"],
  });
}

/** While notices may be missed, what was canceled is looked for. */
export async function pollCancelRequests(ctx: Context): Promise<void> {
  const { ids } = ctx.liveRuns;
  if (ids.length === 0 || ctx.notifications.areCurrent()) return;
  for (const { id, reason } of await listCancelRequests(ctx.db, ids))
    ctx.liveRuns.get(id)?.abort(reason ?? "canceled");
}
