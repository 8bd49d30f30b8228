import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { currentTraceparent } from "../../core/telemetry/tracing.ts";
import type { Queries } from "../../platform/db/database.ts";
import { sealTexts } from "../executions/texts.ts";
import { insertWorkflowExecutionSql } from "../executions/workflow-executions.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";
import type { InsertedRun } from "./local-workers.ts";
import { RunInsertion } from "./run-insertion.ts";
import { findChildRun, insertRun, type Lease, type NewRun } from "./run-queries.ts";
import { type RunInput, sealRunInput } from "./sealed-texts.ts";
import type { WorkflowTarget } from "./workflow-targets.ts";

export interface NewWorkflowRun extends RunInput, Pick<NewRun, "depth" | "parent"> {
  /** The keys that the request read, by provider; undefined: the driver reads them. */
  keys?: ReadonlyMap<string, SealedKey> | undefined;
}

const NO_KEYS: ReadonlyMap<string, SealedKey> = new Map();

/**
 * Inserts a run and returns its id. A worker of this process drives it if it has a free place, else any worker. An attempt of a step
 * that already has a child run gets the id of that run.
 */
export async function insertWorkflowExecution(
  ctx: Context,
  userId: string,
  newRun: NewWorkflowRun,
): Promise<string> {
  const { parent } = newRun;
  if (parent)
    return ctx.db
      .transaction()
      .execute(
        async (tx) => (await findChildRun(tx, parent)) ?? insertWorkflowExecutionIn(ctx, tx, userId, newRun),
      );
  const place = ctx.localWorkers.reserve(userId);
  const lease = place?.lease ?? null;
  try {
    const run = await writeAndBindRun(ctx, userId, newRun, lease);
    place?.drive(run);
    return run.id;
  } catch (error) {
    place?.release();
    throw error;
  }
}

/**
 * As `insertWorkflowExecution`, of a target that this process remembers. The driver inserts the run, with its first steps if they are
 * ready soon. null: nothing is inserted, because the target has changed or no worker of this process has a free place.
 */
export async function insertRememberedExecution(
  ctx: Context,
  userId: string,
  newRun: RunInput,
  { product, workflow, keys }: WorkflowTarget,
): Promise<string | null> {
  // A key is bound in the transaction of the insert.
  const place = ctx.idempotencyKey ? null : ctx.localWorkers.reserve(userId);
  if (!place) return null;
  try {
    const start = { ...newRun, traceparent: currentTraceparent() };
    const run = { id: ctx.newId(), userId };
    const createdAt = ctx.now();
    const row = {
      ...{ ...run, product, keys: [...keys.values()], createdAt, lease: place.lease },
      sealedTexts: sealTexts(ctx, run, { variables: start.input, output: null }),
      sealedStart: sealRunInput(ctx, run, start),
    };
    const insertion = new RunInsertion((first) => ctx.checkpointWriter.start({ ...row, first }));
    place.drive({ ...run, createdAt, depth: 1, start, keys, workflow, insertion });
    return (await insertion.inserted) ? run.id : null;
  } catch (error) {
    place.release();
    throw error;
  }
}

/** Binds the Idempotency-Key to the run. */
async function writeAndBindRun(
  ctx: Context,
  userId: string,
  newRun: NewWorkflowRun,
  lease: Lease | null,
): Promise<InsertedRun> {
  const { idempotencyKey } = ctx;
  if (!idempotencyKey) return writeRun(ctx, ctx.db, userId, newRun, lease);
  return ctx.db.transaction().execute(async (tx) => {
    const run = await writeRun(ctx, tx, userId, newRun, lease);
    await idempotencyKey.bind(tx, toId("exec", run.id));
    return run;
  });
}

/** In the caller's transaction, which binds the Idempotency-Key to a row of its own. */
export const insertWorkflowExecutionIn = async (
  ctx: Context,
  db: Queries,
  userId: string,
  newRun: NewWorkflowRun,
): Promise<string> => (await writeRun(ctx, db, userId, newRun, null)).id;

/** `lease`: of the worker that drives the run at once; null: any worker claims it. */
async function writeRun(
  ctx: Context,
  db: Queries,
  userId: string,
  { depth, parent, keys = NO_KEYS, ...rest }: NewWorkflowRun,
  lease: Lease | null,
): Promise<InsertedRun> {
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
  const dueAt = lease?.until ?? now;
  const row = { ...run, sealedStart: sealRunInput(ctx, run, start), dueAt, lease, depth, parent };
  await insertRun(db, row, history, now);
  return { ...run, createdAt: now, depth, start, keys, workflow: null, insertion: null };
}
