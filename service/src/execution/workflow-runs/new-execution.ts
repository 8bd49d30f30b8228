import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { currentTraceparent } from "../../core/telemetry/tracing.ts";
import type { Queries } from "../../platform/db/database.ts";
import { insertWorkflowExecutionSql } from "../executions/workflow-executions.ts";
import { findChildRun, insertRun, type NewRun } from "./run-queries.ts";
import { type RunInput, sealRunInput } from "./sealed-texts.ts";

export interface NewWorkflowRun extends RunInput, Pick<NewRun, "depth" | "parent"> {}

/** Inserts a run for any worker and returns its id. An attempt of a step that already has a child run gets the id of that run. */
export async function insertWorkflowExecution(
  ctx: Context,
  userId: string,
  newRun: NewWorkflowRun,
): Promise<string> {
  const { parent } = newRun;
  const write = (db: Queries) => insertWorkflowExecutionIn(ctx, db, userId, newRun);
  if (parent)
    return ctx.db.transaction().execute(async (tx) => (await findChildRun(tx, parent)) ?? write(tx));
  const { idempotencyKey } = ctx;
  if (!idempotencyKey) return write(ctx.db);
  return ctx.db.transaction().execute(async (tx) => {
    const id = await write(tx);
    await idempotencyKey.bind(tx, toId("exec", id));
    return id;
  });
}

/** In the caller's transaction, which binds the Idempotency-Key to a row of its own. */
export async function insertWorkflowExecutionIn(
  ctx: Context,
  db: Queries,
  userId: string,
  { depth, parent, ...rest }: NewWorkflowRun,
): Promise<string> {
  const start = { ...rest, traceparent: currentTraceparent() };
  const run = { id: ctx.newId(), userId };
  const history = insertWorkflowExecutionSql(ctx, {
    ...run,
    productId: start.productId,
    productVersion: start.version,
    mode: "async",
    texts: { variables: start.input, output: null },
  });
  const now = ctx.now();
  const row = { ...run, sealedStart: sealRunInput(ctx, run, start), dueAt: now, depth, parent };
  await insertRun(db, row, history, now);
  return run.id;
}
