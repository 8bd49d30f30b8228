import type { Execution } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { mustFind, toExecution } from "./executions.ts";
import type { ExecutionKinds } from "./kinds.ts";
import { type ExecutionRow, findCanceled, requestCancel } from "./queries.ts";

/** Asks whoever runs it to give it up; what nobody runs is canceled at once. Answers how it stands then. */
export async function cancelExecution(
  ctx: Context,
  caller: Member,
  executionId: string,
  kinds: ExecutionKinds,
): Promise<Execution> {
  const execution = await mustFind(ctx, caller, executionId);
  if (execution.completedAt === null) {
    await requestCancel(ctx.db, execution.id, ctx.now());
    await kinds[execution.type]!.cancel(ctx, execution);
  } else mustBeCanceled(execution);
  const canceled = await mustFind(ctx, caller, executionId);
  if (canceled.completedAt !== null) mustBeCanceled(canceled);
  return toExecution(canceled);
}

/** To cancel once more is harmless. */
function mustBeCanceled({ status }: ExecutionRow): void {
  if (status === "canceled") return;
  throw new ApiError("INVALID_STATE", "The execution has ended.", {
    current: status,
    allowed: ["queued", "running", "waiting"],
  });
}

/** While notices may be missed, what was canceled is looked for. */
export async function hearCancels(ctx: Context): Promise<void> {
  const { ids } = ctx.live;
  if (ids.length === 0 || ctx.notifications.areCurrent()) return;
  for (const { id, reason } of await findCanceled(ctx.db, ids))
    ctx.live.get(id)?.giveUp(reason ?? "canceled");
}
