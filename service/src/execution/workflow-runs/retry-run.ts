import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { Tx } from "../../platform/db/database.ts";
import { reopenRun } from "../executions/run-sums.ts";
import type { ExecutionRef } from "../executions/texts.ts";
import { type LockedRun, lockRun, requeueRun } from "./queries.ts";
import { notifyRun } from "./run-queries.ts";
import { isSatisfied } from "./run-state.ts";
import { openRunInput } from "./sealed-texts.ts";
import { readRunState } from "./step-rows.ts";

/** Queues the unfinished steps of a failed or canceled run. False: the run has another status. */
export const retryRun = (ctx: Context, run: ExecutionRef): Promise<boolean> =>
  ctx.db.transaction().execute(async (tx) => {
    if (!(await reopenRun(tx, run.id))) return false;
    await reopen(ctx, tx, run, await lockRun(tx, run.id));
    await ctx.idempotencyKey?.bind(tx, toId("exec", run.id));
    return true;
  });

async function reopen(ctx: Context, tx: Tx, run: ExecutionRef, locked: LockedRun | undefined): Promise<void> {
  const refused = (message: string) => new ApiError("INVALID_STATE", message);
  if (!locked || locked.sealedStart === null)
    throw refused("The input of the run is no longer stored (30 days). Start a new run.");
  if (locked.parentId !== null) throw refused("Another execution called it: retry that one.");
  const { definition } = openRunInput(ctx, run, locked.sealedStart);
  const state = await readRunState(ctx, tx, run, Workflow.parse(JSON.parse(definition)));
  const unfinished = [...state.all()].filter((step) => !isSatisfied(step, state.work(step)));
  await requeueRun(tx, run.id, unfinished, ctx.now());
  await notifyRun(tx, run.id);
}
