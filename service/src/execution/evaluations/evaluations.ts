import {
  type EvaluateProduct,
  type Evaluation,
  type EvaluationDetail,
  MAX_EXCERPT_CHARACTERS,
} from "@stoa/contract";
import {
  findOwnProduct,
  findStoredTestSet,
  findTestSetSummaries,
  publicHashOf,
  type StoredTestSet,
  type TestSetSummary,
} from "../../catalog/test-sets/test-sets.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { requestCancelByIds } from "../executions/queries.ts";
import { PRICE_LIST } from "../provider-keys/cost.ts";
import { engine } from "../workflow-runs/engine.ts";
import { startNextColumn } from "./advance.ts";
import { type PlannedColumn, planEvaluation } from "./evaluation-plan.ts";
import { listModelPrices } from "./model-prices.ts";
import {
  type ColumnCount,
  type ColumnRow,
  countResults,
  type EvaluationRow,
  endEvaluation,
  findEvaluation,
  insertColumns,
  insertEvaluation,
  type JudgmentRow,
  listColumns,
  listJudgments,
  listOfProduct,
  listResults,
  lockEvaluation,
  type NewEvaluation,
  type ResultRow,
  type StoredEmbedding,
  type StoredJudge,
} from "./queries.ts";
import { openJudgmentTexts, openResultTexts } from "./results.ts";
import { keyOf } from "./score-models.ts";

/** The driver of the run gets a notification, so most cancellations end within this time. */
const CANCEL_WITHIN_MS = 1_000;

/** Starts the first column; the others follow one by one. */
export async function createEvaluation(
  ctx: Context,
  caller: Member,
  productId: string,
  request: EvaluateProduct,
): Promise<DataResponse<Evaluation>> {
  const { product, contentSha256, definitionSha256, testSet, columns, judge } = await planEvaluation(
    ctx,
    caller,
    productId,
    request,
  );
  const id = ctx.newId();
  await ctx.db.transaction().execute(async (tx) => {
    const now = ctx.now();
    const values = {
      id,
      productId: product.id,
      userId: caller.userId,
      version: product.version,
      contentSha256,
      definitionSha256,
      testSetId: testSet.id,
      repeats: request.repeats,
      maxCostUsd: request.maxCost,
      judge,
      startedBy: "seller" as const,
      modelPrices: listModelPrices(columns, { content: product.content, at: now, judge }),
    };
    if (!(await beginEvaluation(ctx, tx, values, columns, { product, testSet })))
      throw new ApiError("INVALID_STATE", "An evaluation of this product runs. Wait for it, or cancel it.", {
        current: "running",
        allowed: ["completed", "failed", "canceled"],
      });
    await ctx.idempotencyKey?.bind(tx, toId("eval", id));
  });
  return new DataResponse(await readOne(ctx, id), { status: 202 });
}

/** Inserts an evaluation and starts its first column. False: one of the product runs already. */
export async function beginEvaluation(
  ctx: Context,
  tx: Tx,
  values: Omit<NewEvaluation, "priceList" | "createdAt">,
  columns: readonly PlannedColumn[],
  tested: Parameters<typeof startNextColumn>[4],
): Promise<boolean> {
  const { id } = values;
  if (!(await insertEvaluation(tx, { ...values, priceList: PRICE_LIST, createdAt: ctx.now() }))) return false;
  await insertColumns(
    tx,
    columns.map(({ kind, judgedColumnN, provider, model, isSandbox, apiKeys }, n) => ({
      ...{ evaluationId: id, n, kind, judgedColumnN, provider, model, isSandbox, apiKeys },
    })),
  );
  const evaluation = required(await findEvaluation(tx, id), "the new evaluation");
  await startNextColumn(ctx, tx, evaluation, await listColumns(tx, [id]), tested);
  return true;
}

/** For a repeated Idempotency-Key. */
export const resumeEvaluation = async (
  ctx: Context,
  caller: Member,
  evaluationId: string,
): Promise<DataResponse<Evaluation>> => {
  const { id } = await mustFindOwn(ctx, caller, evaluationId);
  return new DataResponse(await readOne(ctx, id), { status: 202 });
};

export async function listEvaluations(
  ctx: Context,
  caller: Member,
  productId: string,
  paging: Paging,
): Promise<Page<Evaluation>> {
  const { id } = await findOwnProduct(ctx, caller, productId);
  const page = await listOfProduct(ctx.db, id, paging);
  const shown = new Map((await toEvaluations(ctx.db, page.items)).map((each) => [each.id, each]));
  return mapPage(page, (row) => required(shown.get(toId("eval", row.id)), "an evaluation of the page"));
}

/** Without the results of its runs, for the author. */
export const readEvaluationSummary = async (
  ctx: Context,
  caller: Member,
  evaluationId: string,
): Promise<Evaluation> => toOne(ctx.db, await mustFindOwn(ctx, caller, evaluationId));

/** The whole matrix, for the author. */
export async function readEvaluation(
  ctx: Context,
  caller: Member,
  evaluationId: string,
): Promise<EvaluationDetail> {
  const row = await mustFindOwn(ctx, caller, evaluationId);
  const [evaluation, testSet, results, judgments] = [
    await toOne(ctx.db, row),
    await mustFindTestSet(ctx.db, row),
    await listResults(ctx.db, row.id),
    new Map((await listJudgments(ctx.db, row.id)).map((judgment) => [keyOf(judgment), judgment])),
  ];
  return {
    ...evaluation,
    cases: testSet.cases.map(({ title, isHidden }) => ({ title, isHidden })),
    results: results.map((result) => toResult(ctx, result, judgments.get(keyOf(result)))),
  };
}

/** Nothing begins after the response. The run that is open ends soon, and its results so far are stored then. */
export async function cancelEvaluation(
  ctx: Context,
  caller: Member,
  evaluationId: string,
): Promise<Evaluation> {
  const { id } = await mustFindOwn(ctx, caller, evaluationId);
  const executionId = await ctx.db.transaction().execute(async (tx) => {
    const locked = await lockEvaluation(tx, id);
    if (!locked) throw new ApiError("EVALUATION_NOT_FOUND");
    if (locked.status !== "running") {
      if (locked.status === "canceled") return null;
      throw new ApiError("INVALID_STATE", "The evaluation has ended.", {
        current: locked.status,
        allowed: ["running"],
      });
    }
    await endEvaluation(tx, id, {
      status: "canceled",
      errorCode: null,
      errorMessage: null,
      completedAt: ctx.now(),
      scores: null,
    });
    await ctx.idempotencyKey?.bind(tx, toId("eval", id));
    const running = (await listColumns(tx, [id])).find(({ status }) => status === "running");
    if (running?.executionId) await requestCancelByIds(tx, [running.executionId], ctx.now());
    return running?.executionId ?? null;
  });
  // The end of the run requests the job that stores the results so far.
  if (executionId) await engine.waitForEnd(ctx, executionId, CANCEL_WITHIN_MS);
  return readOne(ctx, id);
}

async function mustFindOwn(ctx: Context, caller: Member, evaluationId: string): Promise<EvaluationRow> {
  const id = toUuid("eval", evaluationId);
  const row = id ? await findEvaluation(ctx.db, id) : undefined;
  if (row?.userId !== caller.userId) throw new ApiError("EVALUATION_NOT_FOUND");
  return row;
}

export const mustFindTestSet = async (
  db: Queries,
  { testSetId }: Pick<EvaluationRow, "testSetId">,
): Promise<StoredTestSet> =>
  required(await findStoredTestSet(db, testSetId), "the test set of an evaluation");

async function readOne({ db }: Context, id: string): Promise<Evaluation> {
  const row = await findEvaluation(db, id);
  if (!row) throw new ApiError("EVALUATION_NOT_FOUND");
  return toOne(db, row);
}

const toOne = async (db: Queries, row: EvaluationRow): Promise<Evaluation> =>
  required((await toEvaluations(db, [row]))[0], "an evaluation");

async function toEvaluations(db: Queries, rows: EvaluationRow[]): Promise<Evaluation[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const [columns, counts, testSets] = [
    await listColumns(db, ids),
    await countResults(db, ids),
    await findTestSetSummaries(
      db,
      rows.map(({ testSetId }) => testSetId),
    ),
  ];
  return rows.map((row) =>
    toEvaluation(
      row,
      required(testSets.get(row.testSetId), "the test set of an evaluation"),
      columns.filter(({ evaluationId }) => evaluationId === row.id),
      (n) => counts.find(({ evaluationId, columnN }) => evaluationId === row.id && columnN === n),
    ),
  );
}

function toEvaluation(
  row: EvaluationRow,
  testSet: TestSetSummary,
  columns: ColumnRow[],
  countOf: (n: number) => ColumnCount | undefined,
): Evaluation {
  return {
    id: toId("eval", row.id),
    productId: toId("prod", row.productId),
    version: row.version,
    contentSha256: row.contentSha256,
    ...toTestedCases(testSet),
    judge: toJudge(row.judge),
    repeats: row.repeats,
    startedBy: row.startedBy,
    status: row.status,
    error: row.errorCode === null ? null : { code: row.errorCode, message: row.errorMessage ?? "" },
    maxCost: Number(row.maxCostUsd),
    cost: columns.reduce((sum, { costUsd }) => sum + Number(costUsd), 0),
    prices: row.priceList,
    columns: columns.map((column) => ({
      kind: column.kind,
      judgedColumn: column.judgedColumnN,
      provider: column.provider,
      model: column.model,
      isSandbox: column.isSandbox,
      status: column.status,
      executionId: column.executionId && toId("exec", column.executionId),
      passed: countOf(column.n)?.passed ?? 0,
      n: countOf(column.n)?.n ?? 0,
      undecided: countOf(column.n)?.undecided ?? 0,
      cost: Number(column.costUsd),
    })),
    regressions: row.regressions,
    createdAt: row.createdAt.toISOString(),
    completedAt: row.completedAt?.toISOString() ?? null,
  };
}

/** The instructions are part of the proof alone. */
export function toJudge(judge: StoredJudge | null): Evaluation["judge"] {
  if (!judge) return null;
  const { provider, model, isSandbox, rubricsHash, embedding } = judge;
  return { provider, model, isSandbox, rubricsHash, ...(embedding && { embedding: toModel(embedding) }) };
}

const toModel = ({ provider, model, isSandbox }: StoredEmbedding) => ({ provider, model, isSandbox });

/** What an evaluation and its score card show of the test set. */
export function toTestedCases(testSet: TestSetSummary) {
  const { visibleCases, hiddenCases, judgedCases } = testSet;
  return { testSetHash: publicHashOf(testSet), visibleCases, hiddenCases, judgedCases };
}

function toResult(
  ctx: Context,
  row: ResultRow,
  judgment: JudgmentRow | undefined,
): EvaluationDetail["results"][number] {
  const { output, verdicts } = openResultTexts(ctx, row);
  const text = output === null || typeof output === "string" ? output : JSON.stringify(output);
  return {
    column: row.columnN,
    case: row.caseN,
    repeat: row.repeatN,
    status: row.status,
    errorCode: row.errorCode,
    isPassed: row.isPassed,
    score: row.score,
    verdicts,
    judgment: judgment
      ? {
          outcome: judgment.outcome,
          score: judgment.score,
          verdicts: openJudgmentTexts(ctx, judgment).verdicts,
        }
      : null,
    output: text === null ? null : text.slice(0, MAX_EXCERPT_CHARACTERS).toWellFormed(),
    cost: row.costUsd === null ? null : Number(row.costUsd),
    latencyMs: row.latencyMs,
  };
}
