import { createHmac, randomBytes } from "node:crypto";
import type { EvaluationProof, EvaluationStatement } from "@stoa/contract";
import type { TestCase } from "@stoa/evaluation";
import { listJudgedAssertions } from "@stoa/evaluation/judge-prompt";
import { CompactSign } from "jose";
import { findVisibleProduct } from "../../catalog/products/detail.ts";
import { publicHashOf, type StoredTestSet } from "../../catalog/test-sets/test-sets.ts";
import { canonicalJson } from "../../core/canonical-json.ts";
import { type Caller, type Context, isMember } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { RECEIPT_KEYS_PATH } from "../run-receipts/pages.ts";
import { createRunReceipt } from "../run-receipts/run-receipt.ts";
import { findOrCreateSigningKey, RECEIPT_ALGORITHM } from "../run-receipts/signing-keys.ts";
import { runCaller } from "../workflow-runs/run-caller.ts";
import { listPlaces } from "./column-run.ts";
import { mustFindTestSet } from "./evaluations.ts";
import {
  type ColumnRow,
  type EvaluationRow,
  findEvaluation,
  findProof,
  findScores,
  type JudgmentRow,
  listColumns,
  listJudgments,
  listResults,
  type ResultRow,
  storeProof,
} from "./queries.ts";
import { openJudgmentTexts, openResultTexts } from "./results.ts";
import { findScoreCard } from "./score-card.ts";
import { keyOf } from "./score-models.ts";
import { listRunInputs } from "./tested-cases.ts";

const TYPE = "stoa-evaluation";
const SALT_BYTES = 32;

/** Created by the first request: salts and receipts must not change afterwards. */
export async function readProof(
  ctx: Context,
  caller: Caller,
  evaluationId: string,
): Promise<EvaluationProof> {
  const evaluation = await mustFindProvable(ctx, caller, evaluationId);
  const stored = await findProof(ctx.db, evaluation.id);
  if (stored) return stored;
  await storeProof(ctx.db, evaluation.id, await createProof(ctx, evaluation));
  return required(await findProof(ctx.db, evaluation.id), "the proof");
}

async function mustFindProvable(ctx: Context, caller: Caller, evaluationId: string): Promise<EvaluationRow> {
  const id = toUuid("eval", evaluationId);
  const evaluation = id ? await findEvaluation(ctx.db, id) : undefined;
  if (evaluation?.status !== "completed" || !(await maySee(ctx, caller, evaluation)))
    throw new ApiError("EVALUATION_NOT_FOUND");
  return evaluation;
}

async function maySee(
  ctx: Context,
  caller: Caller,
  { id, userId, productId }: EvaluationRow,
): Promise<boolean> {
  if (isMember(caller) && caller.userId === userId) return true;
  const product = await findVisibleProduct(ctx, caller, toId("prod", productId)).catch(nullIfInvisible);
  const card = product && (await findScoreCard(ctx, product));
  // A regression names the evaluation before it, whose numbers readers of the card may verify, too.
  const shown = [card?.evaluationId, ...(card?.regressions ?? []).map(({ before }) => before.evaluationId)];
  return shown.includes(toId("eval", id));
}

function nullIfInvisible(error: unknown): null {
  if (error instanceof ApiError && error.code === "PRODUCT_NOT_FOUND") return null;
  throw error;
}

async function createProof(ctx: Context, evaluation: EvaluationRow): Promise<EvaluationProof> {
  const testSet = await mustFindTestSet(ctx.db, evaluation);
  const columns = await listColumns(ctx.db, [evaluation.id]);
  const results = await listResults(ctx.db, evaluation.id);
  const judgments = await listJudgments(ctx.db, evaluation.id);
  const receipts: (string | null)[] = [];
  for (const column of columns) receipts.push(await findReceipt(ctx, evaluation, column));
  const cases = testSet.cases.map((one) => ({ salt: newSalt(), one }));
  const runs = results.map((row) => ({ salt: newSalt(), row, ...openResultTexts(ctx, row) }));
  const isVisible = (caseN: number) => testSet.cases[caseN]?.isHidden === false;
  const statement: EvaluationStatement = {
    ...toHeader(ctx, evaluation),
    testSet: {
      hash: publicHashOf(testSet),
      cases: cases.map(({ salt, one }) => ({
        isHidden: one.isHidden,
        hash: hashed(salt, canonicalJson(one)),
        judgedAssertions: listJudgedAssertions(one as TestCase, evaluation.judge ?? {}).length,
      })),
    },
    ...(evaluation.judge && { judge: evaluation.judge }),
    columns: columns.map((column, index) => toColumn(column, receipts[index] ?? null)),
    results: await toResults(ctx, { evaluation, testSet, columns, judgments }, runs),
    models: required(await findScores(ctx.db, evaluation.id), "the scores of a completed evaluation"),
  };
  return {
    statement: await sign(ctx, statement),
    receipts,
    testSetSalt: testSet.hiddenCases === 0 ? toText(testSet.salt) : null,
    cases: cases.flatMap(({ salt, one }, index) =>
      one.isHidden ? [] : [{ index, salt: toText(salt), case: { ...one } }],
    ),
    outputs: runs.flatMap(({ salt, row, output }) =>
      isVisible(row.caseN) && output !== null
        ? [{ column: row.columnN, case: row.caseN, repeat: row.repeatN, salt: toText(salt), output }]
        : [],
    ),
    keysUrl: ctx.links.origin() + RECEIPT_KEYS_PATH,
  };
}

/** null: the author deleted the execution. */
async function findReceipt(ctx: Context, { userId }: EvaluationRow, { executionId }: ColumnRow) {
  if (!executionId) return null;
  try {
    return (await createRunReceipt(ctx, runCaller(userId), toId("exec", executionId))).receipt;
  } catch (error) {
    if (error instanceof ApiError && error.code === "EXECUTION_NOT_FOUND") return null;
    throw error;
  }
}

const toHeader = (ctx: Context, evaluation: EvaluationRow) => ({
  iss: ctx.links.origin(),
  iat: Math.floor(ctx.now().getTime() / 1_000),
  evaluation: {
    id: toId("eval", evaluation.id),
    repeats: evaluation.repeats,
    createdAt: evaluation.createdAt.toISOString(),
    completedAt: required(evaluation.completedAt, "the end of an evaluation").toISOString(),
    prices: evaluation.priceList,
  },
  product: {
    id: toId("prod", evaluation.productId),
    version: evaluation.version,
    contentSha256: evaluation.contentSha256,
  },
});

const toColumn = (column: ColumnRow, receipt: string | null): EvaluationStatement["columns"][number] => ({
  ...(column.judgedColumnN !== null && { judgedColumn: column.judgedColumnN }),
  ...{ kind: column.kind, provider: column.provider, model: column.model, isSandbox: column.isSandbox },
  executionId: column.executionId && toId("exec", column.executionId),
  receiptSha256: receipt && digestOf(receipt).toString("hex"),
});

interface Evaluated {
  evaluation: EvaluationRow;
  testSet: StoredTestSet;
  columns: ColumnRow[];
  judgments: JudgmentRow[];
}

type SaltedRun = ReturnType<typeof openResultTexts> & { salt: Buffer; row: ResultRow };

async function toResults(
  ctx: Context,
  { evaluation, testSet, columns, judgments }: Evaluated,
  runs: SaltedRun[],
): Promise<EvaluationStatement["results"]> {
  const cases = await listRunInputs(ctx.db, evaluation, testSet, columns);
  const steps = columns.map(
    (column) =>
      new Map(
        (column.kind === "judge" ? [] : listPlaces(column, { ...evaluation, cases })).map(
          ({ stepId, item, place }) => [`${place.caseN} ${place.repeatN}`, { id: stepId, item }],
        ),
      ),
  );
  const judged = new Map(judgments.map((row) => [keyOf(row), toJudgment(ctx, row)]));
  return runs.map(({ salt, row, output, verdicts }) => ({
    ...{ column: row.columnN, case: row.caseN, repeat: row.repeatN },
    step: required(steps[row.columnN]?.get(`${row.caseN} ${row.repeatN}`), "the step of a result"),
    ...{ status: row.status, errorCode: row.errorCode, isPassed: row.isPassed, score: row.score },
    verdicts: verdicts.map(({ type, isPassed, score }) => ({ type, isPassed, score })),
    cost: row.costUsd === null ? null : Number(row.costUsd),
    latencyMs: row.latencyMs,
    outputHash:
      output === null ? null : hashed(salt, typeof output === "string" ? output : canonicalJson(output)),
    ...(evaluation.judge && { judgment: judged.get(keyOf(row)) ?? null }),
  }));
}

/** Without the judge's reasons, which may quote a hidden case. */
const toJudgment = (
  ctx: Context,
  row: JudgmentRow,
): NonNullable<EvaluationStatement["results"][number]["judgment"]> => ({
  ...{ outcome: row.outcome, score: row.score },
  calls: openJudgmentTexts(ctx, row).calls.map(({ questions, answer, ...call }) => ({
    ...toSignedStep(call),
    answer,
    ...(questions && { questions: toSignedStep(questions) }),
  })),
});

const toSignedStep = <Step>({
  step,
  costUsd,
  latencyMs,
}: {
  step: Step;
  costUsd: number | null;
  latencyMs: number | null;
}) => ({ step, cost: costUsd, latencyMs });

const newSalt = () => randomBytes(SALT_BYTES);
const toText = (salt: Buffer) => salt.toString("base64url");
const hashed = (salt: Buffer, text: string) => createHmac("sha256", salt).update(text).digest("hex");

async function sign(ctx: Context, statement: EvaluationStatement): Promise<string> {
  const { kid, key } = await findOrCreateSigningKey(ctx);
  return new CompactSign(new TextEncoder().encode(JSON.stringify(statement)))
    .setProtectedHeader({ alg: RECEIPT_ALGORITHM, kid, typ: TYPE })
    .sign(key);
}
