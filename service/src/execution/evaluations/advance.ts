import type { TestCase } from "@stoa/evaluation";
import { listJudgedAssertions } from "@stoa/evaluation/judge-prompt";
import { updateListedScores } from "../../catalog/search/listing.ts";
import { findStoredTestSet, type StoredTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { toDraftVersion } from "../executions/draft-version.ts";
import type { Product } from "../prompt-runs/prepare-run.ts";
import { roundUsd } from "../provider-keys/cost.ts";
import { type EndedItem, listEndedItems } from "../workflow-runs/ended-items.ts";
import { engine } from "../workflow-runs/engine.ts";
import { placeFinder, toColumnRun } from "./column-run.ts";
import { toRunInput } from "./evaluation-plan.ts";
import { type Grade, gradeInProcess } from "./grading-process.ts";
import { listCallsOfJudge, storeJudgments } from "./judge-outputs.ts";
import { isEmbeddingStep, type JudgeCall, toJudgeRun } from "./judge-run.ts";
import {
  type CompletedEvaluation,
  notifyOfCompletion,
  notifyOfFailure,
  reportRegressions,
} from "./notifications.ts";
import {
  type ColumnRow,
  type ColumnRun,
  countStored,
  type EvaluationRow,
  endColumn,
  endEvaluation,
  findColumnRun,
  findEvaluation,
  findReleaseOf,
  hashDefinition,
  insertResults,
  listColumns,
  listComparable,
  listGraded,
  listJudgments,
  listResults,
  listToAdvance,
  lockEvaluation,
  lockProductOf,
  type ResultRow,
  startColumn,
} from "./queries.ts";
import { type FoundRegression, findRegressions } from "./regressions.ts";
import { type ResultTexts, sealResultTexts } from "./results.ts";
import { scoreModels } from "./score-models.ts";
import { findTestedVersion, listRunInputs } from "./tested-cases.ts";

export const advanceEvaluationJob: JobDefinition = {
  name: "advance-evaluation",
  retries: 10,
  retryDelaySeconds: 5,
  maxRetryDelaySeconds: 600,
  attemptTimeoutSeconds: 900,
};

const STORED_AT_ONCE = 10;
/** These concern the key or the product and say nothing about a model: the evaluation ends. */
const FATAL_CODES: ReadonlySet<string> = new Set([
  "KEY_BUDGET_EXCEEDED",
  "PROVIDER_KEY_NOT_FOUND",
  "PROVIDER_KEY_INVALID",
  "PROVIDER_NOT_SUPPORTED",
  "PRODUCT_NOT_FOUND",
  "PRODUCT_UNAVAILABLE",
  "UNAUTHORIZED",
  "INTERNAL_ERROR",
]);

interface EndReason {
  status: "completed" | "failed" | "canceled";
  errorCode: string | null;
  errorMessage: string | null;
}

const COMPLETED: EndReason = { status: "completed", errorCode: null, errorMessage: null };
const CANCELED: EndReason = { status: "canceled", errorCode: null, errorMessage: null };
const failedBy = (errorCode: string, errorMessage: string): EndReason => ({
  status: "failed",
  errorCode,
  errorMessage,
});

/** The net below the jobs that ends of runs request. */
export async function advanceEvaluations(ctx: Context): Promise<void> {
  await forEachRow(
    await listToAdvance(ctx.db),
    (id) => advanceEvaluation(ctx, id),
    (id, error) => ctx.log.error({ err: error, evaluation: id }, "advance an evaluation"),
  );
}

/**
 * Stores the results of the column whose run has ended, and starts the next column in the transaction that ends this one. May run twice:
 * the first result of a place stays, and of two processes one ends the column.
 */
export async function advanceEvaluation(ctx: Context, id: string): Promise<void> {
  const evaluation = await findEvaluation(ctx.db, id);
  if (!evaluation) return;
  const columns = await listColumns(ctx.db, [id]);
  const column = columns.find(({ status }) => status === "running");
  if (!column?.executionId) return;
  const run = await findColumnRun(ctx.db, column.executionId);
  if (run && !run.hasEnded) return;
  const testSet = required(await findStoredTestSet(ctx.db, evaluation.testSetId), "the test set");
  const ended = run ? await listEndedItems(ctx, { id: column.executionId, userId: evaluation.userId }) : [];
  // The item that the limit refused was no run.
  const items = ended.filter(({ error }) => !isStoppedByCost(run) || error?.code !== "VALIDATION_ERROR");
  const judge = evaluation.judge ?? undefined;
  if (column.kind === "judge")
    await storeJudgments(ctx, { column, testSet, items, judge: required(judge, "the judge of a column") });
  else await storeResults(ctx, { evaluation, column, testSet, items });
  // Before the transaction: it reads all outputs of the column, and these never change.
  const next = columns.find(({ status }) => status === "pending");
  const judgeCalls =
    next?.kind === "judge" && judge ? await listCallsOfJudge(ctx, { column: next, testSet, judge }) : [];
  await ctx.db.transaction().execute(async (tx) => {
    // Before the evaluation, as a release locks them: of the two, the second one sees what the first one wrote.
    if (column.n === columns.length - 1) await lockProductOf(tx, evaluation.productId);
    await endColumnAndGoOn(ctx, tx, { id, column, testSet, judgeCalls, items });
  });
}

async function endColumnAndGoOn(
  ctx: Context,
  tx: Tx,
  {
    id,
    column,
    testSet,
    judgeCalls,
    items,
  }: {
    id: string;
    column: ColumnRow;
    testSet: StoredTestSet;
    /** Of the next column. */
    judgeCalls: JudgeCall[];
    items: EndedItem[];
  },
): Promise<void> {
  const evaluation = await lockEvaluation(tx, id);
  const columns = await listColumns(tx, [id]);
  if (!evaluation || columns[column.n]?.status !== "running") return;
  // Again: its owner may have deleted or retried it while its items were read.
  const run = column.executionId === null ? undefined : await findColumnRun(tx, column.executionId);
  if (run && !run.hasEnded) return;
  const fault = endReasonOf(run, items, column);
  const isWhole = !fault && (await hasAllResults(tx, evaluation, column, testSet));
  await endColumn(tx, column, {
    status: fault?.status ?? (isWhole ? "completed" : "failed"),
    costUsd: Number(run?.costUsd ?? 0),
  });
  if (evaluation.status !== "running") return;
  if (fault) return end(ctx, tx, evaluation, fault);
  if (isWhole && column.n === columns.length - 1) return end(ctx, tx, evaluation, COMPLETED);
  const product = await findTestedVersion(tx, evaluation, columns);
  if (!product || (await hashDefinition(tx, product)) !== evaluation.definitionSha256)
    return end(
      ctx,
      tx,
      evaluation,
      failedBy("CONTENT_CHANGED", "The content or the variables of the draft changed. Evaluate it again."),
    );
  if (!isWhole)
    return end(
      ctx,
      tx,
      evaluation,
      failedBy("EXECUTION_NOT_FOUND", "The execution of a column lost results. Evaluate the version again."),
    );
  await startNextColumn(ctx, tx, evaluation, await listColumns(tx, [id]), { product, testSet, judgeCalls });
}

/** Of a run that completed: each of its runs, or each one that a judge decides about, has a row. */
async function hasAllResults(
  tx: Tx,
  { repeats, judge }: EvaluationRow,
  column: ColumnRow,
  { cases }: StoredTestSet,
): Promise<boolean> {
  const tested =
    column.kind === "judge"
      ? cases.filter((one) => listJudgedAssertions(one as TestCase, judge ?? {}).length > 0)
      : cases;
  return (await countStored(tx, column)) === tested.length * repeats;
}

/** Items continue after an error, so that only the limit fails a run with this code. */
const isStoppedByCost = (run: ColumnRun | undefined): boolean =>
  run?.status === "failed" && run.errorCode === "VALIDATION_ERROR";

/** null: the run completed. */
function endReasonOf(
  run: ColumnRun | undefined,
  items: EndedItem[],
  { kind }: Pick<ColumnRow, "kind">,
): EndReason | null {
  if (!run || run.isDeleted)
    return failedBy("EXECUTION_NOT_FOUND", "The execution of a column was deleted before it was graded.");
  if (run.status === "canceled") return CANCELED;
  const fatal = items.find(({ error }) => error && FATAL_CODES.has(error.code));
  if (fatal?.error) return failedBy(fatal.error.code, fatal.error.message);
  if (isStoppedByCost(run))
    return failedBy("MAX_COST_REACHED", "The next call was expected to exceed maxCost. Send a higher one.");
  if (run.status === "failed")
    return failedBy(run.errorCode ?? "INTERNAL_ERROR", "The run of a column failed.");
  return kind === "judge" ? findJudgeFailure(items) : null;
}

/** "0 of n" would replace a card with verdicts, although no judge read anything, or no text was compared. */
function findJudgeFailure(items: EndedItem[]): EndReason | null {
  // Without questions, there is nothing to compare: their own step has the error.
  const embedded = items.filter((item) => isEmbeddingStep(item) && item.error?.code !== "EXPRESSION_FAILED");
  for (const [calls, name] of [
    [items.filter((item) => !isEmbeddingStep(item)), "call of the judge"],
    [embedded, "embedding"],
  ] as const) {
    const [first] = calls;
    if (first?.error && calls.every(({ error }) => error))
      return failedBy(first.error.code, `Every ${name} failed. ${first.error.message}`);
  }
  return null;
}

async function end(ctx: Context, tx: Tx, evaluation: EvaluationRow, reason: EndReason): Promise<void> {
  const { id } = evaluation;
  const completedAt = ctx.now();
  if (reason.status !== "completed") {
    await endEvaluation(tx, id, { ...reason, completedAt, scores: null });
    if (reason.errorCode !== null) await notifyOfFailure(ctx, tx, evaluation, reason.errorCode);
    return;
  }
  const scores = scoreModels(
    await listColumns(tx, [id]),
    await listResults(tx, id),
    await listJudgments(tx, id),
    evaluation,
  );
  const completed = { ...evaluation, completedAt, scores };
  const found = await compareWithEarlier(tx, completed);
  const regressions = found.map(({ isNew: _, ...regression }) => regression);
  await endEvaluation(tx, id, { ...reason, completedAt, scores, regressions });
  await updateListedScores(tx, evaluation.productId);
  await publishCompletion(ctx, tx, completed);
  await notifyOfCompletion(ctx, tx, completed);
  const isNew = found.some((regression) => regression.isNew);
  if (isNew) await reportRegressions(ctx, tx, completed, regressions);
}

/** A version that is not on sale is compared when it goes on sale. */
async function compareWithEarlier(tx: Tx, evaluation: CompletedEvaluation): Promise<FoundRegression[]> {
  const release = await findReleaseOf(tx, evaluation);
  if (!release) return [];
  return findRegressions({ ...evaluation, ...release }, await listComparable(tx, evaluation));
}

const publishCompletion = (ctx: Context, tx: Tx, evaluation: CompletedEvaluation) =>
  publishEvent(ctx, tx, [evaluation.userId], "evaluation.completed", {
    evaluation: {
      id: toId("eval", evaluation.id),
      productId: toId("prod", evaluation.productId),
      version: evaluation.version,
      models: evaluation.scores.map(({ provider, model, passed, n }) => ({ provider, model, passed, n })),
      completedAt: evaluation.completedAt.toISOString(),
    },
  });

interface Tested {
  product: Pick<Product, "type" | "content" | "variables">;
  testSet: StoredTestSet;
  /** Of the next column, if it is a judge's. */
  judgeCalls?: JudgeCall[];
}

/** In the transaction that stores the end of the column before. */
export async function startNextColumn(
  ctx: Context,
  tx: Tx,
  evaluation: EvaluationRow,
  columns: ColumnRow[],
  tested: Tested,
): Promise<void> {
  const next = required(
    columns.find(({ status }) => status === "pending"),
    "the next column of an evaluation",
  );
  const spentUsd = columns.reduce((sum, { costUsd }) => sum + Number(costUsd), 0);
  const executionId = await engine.startIn(ctx, tx, evaluation.userId, {
    ...toRun(evaluation, next, tested),
    productId: evaluation.productId,
    version: toDraftVersion(evaluation.version),
    apiKeys: next.apiKeys,
    maxCost: Math.max(0, roundUsd(Number(evaluation.maxCostUsd) - spentUsd)),
    callbackId: null,
    isEvaluation: true,
    endJob: { name: advanceEvaluationJob.name, data: { evaluationId: evaluation.id } },
    depth: 1,
    parent: null,
  });
  await startColumn(tx, evaluation.id, next.n, executionId);
}

function toRun(evaluation: EvaluationRow, column: ColumnRow, { product, testSet, judgeCalls }: Tested) {
  if (column.kind === "judge")
    return toJudgeRun(
      required(evaluation.judge, "the judge of an evaluation"),
      required(judgeCalls, "the calls of a judge"),
    );
  const cases = testSet.cases.map(({ input }) => ({ input: toRunInput(product, input) }));
  return toColumnRun(column, { ...evaluation, cases });
}

interface Graded {
  evaluation: EvaluationRow;
  column: ColumnRow;
  testSet: StoredTestSet;
  items: EndedItem[];
}

async function storeResults(ctx: Context, { evaluation, column, testSet, items }: Graded): Promise<void> {
  const cases = await listRunInputs(ctx.db, evaluation, testSet, [column]);
  const placeOf = placeFinder(column, { ...evaluation, cases });
  const graded = await listGraded(ctx.db, evaluation.id, column.n);
  const open = items.flatMap((item) => {
    const place = placeOf(item);
    return place && !graded.has(`${place.caseN} ${place.repeatN}`) ? [{ item, place }] : [];
  });
  if (open.length === 0) return;
  await gradeInProcess(async (grade) => {
    for (let at = 0; at < open.length; at += STORED_AT_ONCE) {
      const rows: Parameters<typeof insertResults>[1] = [];
      for (const { item, place } of open.slice(at, at + STORED_AT_ONCE)) {
        const ref = { evaluationId: evaluation.id, columnN: column.n, ...place };
        const { texts, ...row } = await gradeItem(grade, testSet, item, place.caseN);
        rows.push({ ...ref, ...row, sealedTexts: sealResultTexts(ctx, ref, texts) });
      }
      await insertResults(ctx.db, rows);
    }
  });
}

type GradedItem = Pick<ResultRow, "status" | "errorCode" | "isPassed" | "score" | "latencyMs"> & {
  costUsd: number | null;
  texts: ResultTexts;
};

async function gradeItem(
  grade: Grade,
  { cases }: StoredTestSet,
  item: EndedItem,
  caseN: number,
): Promise<GradedItem> {
  const { costUsd, latencyMs } = item;
  const testCase = required(cases[caseN], "a case of the test set") as TestCase;
  const verdict = await grade(testCase, { output: item.output, costUsd, latencyMs });
  if (item.error) {
    const fails = verdict.isPassed !== null;
    return {
      ...{ status: "failed", errorCode: item.error.code, costUsd, latencyMs },
      ...{ isPassed: fails ? false : null, score: fails ? 0 : null },
      texts: { output: null, verdicts: [] },
    };
  }
  return {
    ...{ status: "completed", errorCode: null, isPassed: verdict.isPassed, score: verdict.score },
    ...{ costUsd, latencyMs },
    texts: { output: item.output, verdicts: verdict.assertions },
  };
}
