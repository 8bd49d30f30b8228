import type { EvaluationStarter, ReEvaluation, SetReEvaluation } from "@stoa/contract";
import { NIL } from "uuid";
import { findOwnProduct } from "../../catalog/test-sets/test-sets.ts";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { roundUsd } from "../provider-keys/cost.ts";
import { monthStartOf } from "../provider-keys/month-cost.ts";
import { findRunKey } from "../provider-keys/provider-keys.ts";
import { runCaller } from "../workflow-runs/run-caller.ts";
import { beginEvaluation, mustFindTestSet } from "./evaluations.ts";
import { findPriceChange, listModelPrices, type ModelPrice } from "./model-prices.ts";
import { notifyOfPause } from "./notifications.ts";
import { type CardRow, type ColumnRow, findCardEvaluation, listColumns } from "./queries.ts";
import {
  deleteReEvaluation,
  findNewestReEvaluation,
  findReEvaluation,
  findReleasedVersion,
  listReEvaluated,
  lockReEvaluation,
  pauseReEvaluation,
  type ReEvaluationRow,
  sumReEvaluations,
  upsertReEvaluation,
} from "./re-evaluation-queries.ts";
import { findTestedVersion } from "./tested-cases.ts";

const BATCH_SIZE = 100;

export async function setReEvaluation(
  ctx: Context,
  caller: Member,
  productId: string,
  { maxCost, monthlyBudget }: SetReEvaluation,
): Promise<ReEvaluation> {
  const { id, status } = await findOwnProduct(ctx, caller, productId);
  if (status === "deleted") throw new ApiError("INVALID_STATE", undefined, { current: status });
  if (monthlyBudget < maxCost)
    throw ruleViolation(
      "monthlyBudget",
      `must be at least maxCost, ${maxCost}: one evaluation may cost that`,
    );
  await upsertReEvaluation(ctx.db, {
    productId: id,
    ...{ maxCostUsd: maxCost, monthlyBudgetUsd: monthlyBudget, updatedAt: ctx.now() },
  });
  return readReEvaluation(ctx, caller, productId);
}

export async function readReEvaluation(
  ctx: Context,
  caller: Member,
  productId: string,
): Promise<ReEvaluation> {
  const { id } = await findOwnProduct(ctx, caller, productId);
  const row = await findReEvaluation(ctx.db, id);
  return {
    maxCost: row ? Number(row.maxCostUsd) : null,
    monthlyBudget: row ? Number(row.monthlyBudgetUsd) : null,
    intervalDays: ctx.config.reEvaluationDays,
    used: await sumReEvaluations(ctx.db, id, monthStartOf(ctx.now())),
    paused: row ? toPause(row) : null,
    updatedAt: row?.updatedAt.toISOString() ?? null,
  };
}

const toPause = ({ pausedEvaluationId, pausedCode, pausedAt }: ReEvaluationRow): ReEvaluation["paused"] =>
  pausedEvaluationId && pausedCode && pausedAt
    ? { code: pausedCode, evaluationId: toId("eval", pausedEvaluationId), at: pausedAt.toISOString() }
    : null;

export async function disableReEvaluation(ctx: Context, caller: Member, productId: string) {
  const { id } = await findOwnProduct(ctx, caller, productId);
  if (!(await deleteReEvaluation(ctx.db, id)))
    throw new ApiError("INVALID_STATE", "The product is not evaluated again.", { current: "off" });
  return { productId, deleted: true as const };
}

/** Starts each evaluation that the price list or the schedule asks for, within the limits of its seller. */
export async function startReEvaluations(ctx: Context): Promise<void> {
  let after: string = NIL;
  for (;;) {
    const ids = await listReEvaluated(ctx.db, after, BATCH_SIZE);
    await forEachRow(
      ids,
      (id) => reEvaluateProduct(ctx, id),
      (id, error) => ctx.log.error({ err: error, product: id }, "re-evaluate a product"),
    );
    const last = ids.at(-1);
    if (last === undefined || ids.length < BATCH_SIZE) return;
    after = last;
  }
}

interface DueReEvaluation {
  /** The evaluation to repeat: that of the score card. */
  source: CardRow;
  columns: ColumnRow[];
  product: NonNullable<Awaited<ReturnType<typeof findTestedVersion>>>;
  modelPrices: ModelPrice[];
  startedBy: Exclude<EvaluationStarter, "seller">;
}

async function reEvaluateProduct(ctx: Context, productId: string): Promise<void> {
  const settings = await findReEvaluation(ctx.db, productId);
  const due = settings && (await findDue(ctx, ctx.db, settings));
  if (!due) return;
  // Before the transaction: it needs a connection of its own.
  const problem = await findProblem(ctx, settings, due);
  await ctx.db.transaction().execute(async (tx) => {
    // Another worker may have started it since.
    const locked = await lockReEvaluation(tx, productId);
    const stillDue = locked && (await findDue(ctx, tx, locked));
    if (!stillDue || stillDue.source.id !== due.source.id) return;
    if (locked.updatedAt.getTime() !== settings.updatedAt.getTime()) return;
    if (problem) await pause(ctx, tx, locked, stillDue.source, problem);
    else await start(ctx, tx, locked, stillDue);
  });
}

/** null: nothing is to be repeated now. */
async function findDue(
  ctx: Context,
  db: Queries,
  { productId, pausedEvaluationId }: ReEvaluationRow,
): Promise<DueReEvaluation | null> {
  const version = await findReleasedVersion(db, productId);
  const source = version && (await findCardEvaluation(db, { productId, version }));
  if (!source || source.id === pausedEvaluationId) return null;
  const columns = await listColumns(db, [source.id]);
  const product = await findTestedVersion(db, source, columns);
  if (!product) return null;
  const modelPrices = listModelPrices(columns, {
    ...{ content: product.content, at: ctx.now(), judge: source.judge },
  });
  // A re-evaluation that failed was an attempt, too: the same reason starts no second one.
  const last = (await findNewestReEvaluation(db, source)) ?? source;
  const startedBy = findPriceChange(last.modelPrices, modelPrices) ?? findSchedule(ctx, last.createdAt);
  return startedBy && { source, columns, product, modelPrices, startedBy };
}

function findSchedule(ctx: Context, lastStart: Date): "schedule" | null {
  const { reEvaluationDays: days } = ctx.config;
  return days !== null && ctx.now() >= daysAfter(lastStart, days) ? "schedule" : null;
}

interface Problem {
  code: string;
  reason: string;
}

/** What only the seller can change. */
async function findProblem(
  ctx: Context,
  { maxCostUsd }: ReEvaluationRow,
  { source, columns }: DueReEvaluation,
): Promise<Problem | null> {
  const costUsd = costOf(columns);
  if (costUsd > Number(maxCostUsd))
    return {
      code: "MAX_COST_REACHED",
      reason: `the last evaluation cost $${costUsd}, and at most $${Number(maxCostUsd)} is allowed. Raise maxCost`,
    };
  for (const apiKeyId of new Set(columns.flatMap(({ apiKeys }) => Object.values(apiKeys))))
    try {
      await findRunKey(ctx, runCaller(source.userId), apiKeyId);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { code: error.code, reason: "its provider key is gone. Evaluate it with another key" };
    }
  return null;
}

const costOf = (columns: readonly ColumnRow[]): number =>
  roundUsd(columns.reduce((sum, { costUsd }) => sum + Number(costUsd), 0));

async function pause(
  ctx: Context,
  tx: Tx,
  { productId, updatedAt }: ReEvaluationRow,
  source: CardRow,
  { code, reason }: Problem,
): Promise<void> {
  await pauseReEvaluation(tx, productId, {
    ...{ pausedEvaluationId: source.id, pausedCode: code, pausedAt: ctx.now() },
  });
  await notifyOfPause(ctx, tx, source, { code, reason, change: updatedAt });
}

/** Does nothing if the rest of the month's budget is too small, or if an evaluation of the product runs. */
async function start(
  ctx: Context,
  tx: Tx,
  { productId, maxCostUsd, monthlyBudgetUsd }: ReEvaluationRow,
  { source, columns, product, modelPrices, startedBy }: DueReEvaluation,
): Promise<void> {
  const used = await sumReEvaluations(tx, productId, monthStartOf(ctx.now()));
  const leftUsd = roundUsd(Math.min(Number(maxCostUsd), Number(monthlyBudgetUsd) - used.cost));
  if (leftUsd <= 0 || leftUsd < costOf(columns)) return;
  const { userId, version, contentSha256, definitionSha256, testSetId, repeats, judge } = source;
  await beginEvaluation(
    ctx,
    tx,
    {
      ...{ id: ctx.newId(), productId, userId, version, contentSha256, definitionSha256 },
      ...{ testSetId, repeats, judge, maxCostUsd: leftUsd, startedBy, modelPrices },
    },
    columns,
    { product, testSet: await mustFindTestSet(tx, source) },
  );
}
