import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { StepId } from "../../formats/workflow-definition/workflow-schema.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { findStep, lockRun, signalRun, updateDecision } from "./queries.ts";
import { notifyRun } from "./run-queries.ts";

export type Decision = "approved" | "rejected";

/** Records a decision on a waiting approval and signals the driver of the run. */
export const decideApproval = (
  ctx: Context,
  { id }: ExecutionRef,
  stepId: string,
  decision: Decision,
): Promise<void> =>
  ctx.db.transaction().execute(async (tx) => {
    await lockRun(tx, id);
    const step = StepId.safeParse(stepId).success ? await findStep(tx, id, stepId) : undefined;
    if (!step) throw new ApiError("STEP_NOT_FOUND");
    const now = ctx.now();
    mustBeWaiting(step, now);
    await updateDecision(tx, id, stepId, decision, now);
    await ctx.idempotencyKey?.bind(tx, toId("exec", id));
    await signalRun(tx, id, now);
    await notifyRun(tx, id);
  });

/** An approval past its time has failed, even if no driver has recorded that yet. */
function mustBeWaiting(
  { type, status, decision, dueAt }: NonNullable<Awaited<ReturnType<typeof findStep>>>,
  now: Date,
): void {
  const refused = (message: string, current: string) =>
    new ApiError("INVALID_STATE", message, { current, allowed: ["waiting"] });
  if (type !== "approval") throw refused(`A step of type ${type} has no approval.`, status);
  if (decision !== null) throw refused("The approval is already decided.", decision);
  if (status !== "waiting") throw refused("The step is not waiting.", status);
  if (dueAt !== null && dueAt <= now) throw refused("The approval has timed out.", "failed");
}
