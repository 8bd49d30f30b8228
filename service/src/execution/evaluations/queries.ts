import type {
  EmbeddingProvider,
  EvaluationProof,
  EvaluationStarter,
  EvaluationStatus,
  Regression,
  ScoreCard,
} from "@stoa/contract";
import type { Judgment } from "@stoa/evaluation";
import { sql } from "kysely";
import type { VersionDefinition } from "../../catalog/products/score-card.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { prepared } from "../../platform/db/prepared.ts";
import type { ModelPrice } from "./model-prices.ts";
import type { ComparableEvaluation } from "./regressions.ts";

/** The model that decides judged assertions. */
export interface StoredJudge {
  provider: string;
  model: string;
  isSandbox: boolean;
  rubricsHash: string;
  /** Its system message. */
  instructions: string;
  /** Absent: assertions that compare embeddings have no verdict. */
  embedding?: StoredEmbedding;
}

export interface StoredEmbedding {
  provider: EmbeddingProvider;
  model: string;
  isSandbox: boolean;
  /** The system message by which the judge writes questions. */
  instructions: string;
}

export interface EvaluationRow {
  id: string;
  productId: string;
  userId: string;
  version: string;
  /** What buyers see. It says nothing about variables. */
  contentSha256: string;
  /** Of everything that the version runs: content, format and variables. */
  definitionSha256: string;
  testSetId: string;
  repeats: number;
  maxCostUsd: string;
  priceList: string;
  /** null: judged assertions have no verdict. */
  judge: StoredJudge | null;
  startedBy: EvaluationStarter;
  /** At the beginning. */
  modelPrices: ModelPrice[];
  regressions: Regression[];
  status: EvaluationStatus;
  errorCode: string | null;
  errorMessage: string | null;
  createdAt: Date;
  completedAt: Date | null;
}

export interface ColumnRow {
  evaluationId: string;
  n: number;
  kind: "product" | "baseline" | "judge";
  /** Of a judge: the column that it judges. */
  judgedColumnN: number | null;
  provider: string | null;
  model: string | null;
  isSandbox: boolean;
  apiKeys: Record<string, string>;
  status: "pending" | "running" | "completed" | "failed" | "canceled";
  executionId: string | null;
  costUsd: string;
}

export interface ResultRow {
  evaluationId: string;
  columnN: number;
  caseN: number;
  repeatN: number;
  status: "completed" | "failed";
  errorCode: string | null;
  /** null: the case has no deterministic assertion. */
  isPassed: boolean | null;
  score: number | null;
  costUsd: string | null;
  latencyMs: number | null;
  sealedTexts: string;
}

export interface JudgmentRow {
  evaluationId: string;
  /** Of the run that was judged. */
  columnN: number;
  caseN: number;
  repeatN: number;
  outcome: Judgment["outcome"];
  score: number | null;
  sealedTexts: string;
}

export type NewEvaluation = Omit<
  EvaluationRow,
  "status" | "errorCode" | "errorMessage" | "completedAt" | "maxCostUsd" | "regressions"
> & {
  maxCostUsd: number;
};

/** False: an evaluation of the product runs already. */
export async function insertEvaluation(
  tx: Tx,
  { modelPrices, judge, ...evaluation }: NewEvaluation,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto("evaluations")
    .values({
      ...evaluation,
      modelPrices: JSON.stringify(modelPrices),
      judge: judge && JSON.stringify(judge),
    })
    .onConflict((conflict) => conflict.column("productId").where("status", "=", "running").doNothing())
    .executeTakeFirst();
  return (numInsertedOrUpdatedRows ?? 0n) > 0n;
}

export const insertColumns = (
  tx: Tx,
  columns: Pick<
    ColumnRow,
    "evaluationId" | "n" | "kind" | "judgedColumnN" | "provider" | "model" | "isSandbox" | "apiKeys"
  >[],
) =>
  tx
    .insertInto("evaluationColumns")
    .values(columns.map(({ apiKeys, ...column }) => ({ ...column, apiKeys: JSON.stringify(apiKeys) })))
    .execute();

/** Without scores and proof, which are large. */
const COLUMNS = [
  ...([
    "id",
    "productId",
    "userId",
    "version",
    "contentSha256",
    "definitionSha256",
    "testSetId",
    "repeats",
    "maxCostUsd",
  ] as const),
  ...(["priceList", "judge", "startedBy", "modelPrices", "regressions"] as const),
  ...(["status", "errorCode", "errorMessage", "createdAt", "completedAt"] as const),
] as const;

export const findEvaluation = (db: Queries, id: string): Promise<EvaluationRow | undefined> =>
  db
    .selectFrom("evaluations")
    .select(COLUMNS)
    .where("id", "=", id)
    .$castTo<EvaluationRow>()
    .executeTakeFirst();

/** The lock under which an evaluation goes on to its next column or ends. */
export const lockEvaluation = (tx: Tx, id: string): Promise<EvaluationRow | undefined> =>
  tx
    .selectFrom("evaluations")
    .select(COLUMNS)
    .where("id", "=", id)
    .forUpdate()
    .$castTo<EvaluationRow>()
    .executeTakeFirst();

/** The lock of a release. Take it before that of an evaluation. */
export const lockProductOf = (tx: Tx, productId: string) =>
  sql`select from products where id = ${productId} for no key update`.execute(tx);

export async function listOfProduct(
  db: Queries,
  productId: string,
  paging: Paging,
): Promise<Page<EvaluationRow>> {
  const all = () => db.selectFrom("evaluations").where("productId", "=", productId);
  const items = await all()
    .select(COLUMNS)
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .$castTo<EvaluationRow>()
    .execute();
  return { items, ...(await countRows(db, all().select("id"))) };
}

export const listColumns = (db: Queries, evaluationIds: string[]): Promise<ColumnRow[]> =>
  db
    .selectFrom("evaluationColumns")
    .selectAll()
    .where("evaluationId", "in", evaluationIds)
    .orderBy("evaluationId")
    .orderBy("n")
    .$castTo<ColumnRow>()
    .execute();

export interface ColumnCount {
  evaluationId: string;
  columnN: number;
  passed: number;
  n: number;
  undecided: number;
}

export async function countResults(db: Queries, evaluationIds: string[]): Promise<ColumnCount[]> {
  const { rows } = await sql<ColumnCount>`
    select evaluation_id as "evaluationId", column_n as "columnN", count(is_passed)::int as n,
           (count(*) filter (where is_passed))::int as passed, 0 as undecided
      from evaluation_results where evaluation_id = any(${evaluationIds}::uuid[]) group by 1, 2
    union all
    select c.evaluation_id, c.n, count(*)::int, (count(*) filter (where j.outcome = 'passed'))::int,
           (count(*) filter (where j.outcome = 'undecided'))::int
      from evaluation_columns c
           join evaluation_judgments j on j.evaluation_id = c.evaluation_id and j.column_n = c.judged_column_n
     where c.evaluation_id = any(${evaluationIds}::uuid[]) group by 1, 2`.execute(db);
  return rows;
}

/** The stored results of a column, or the judgments of a judge's column. */
export async function countStored(
  db: Queries,
  { evaluationId, n, judgedColumnN }: Pick<ColumnRow, "evaluationId" | "n" | "judgedColumnN">,
): Promise<number> {
  const { total } = await db
    .selectFrom(judgedColumnN === null ? "evaluationResults" : "evaluationJudgments")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("evaluationId", "=", evaluationId)
    .where("columnN", "=", judgedColumnN ?? n)
    .executeTakeFirstOrThrow();
  return total;
}

/** Of one column, or of all. */
export const listResults = (db: Queries, evaluationId: string, columnN?: number): Promise<ResultRow[]> =>
  db
    .selectFrom("evaluationResults")
    .selectAll()
    .where("evaluationId", "=", evaluationId)
    .$if(columnN !== undefined, (query) => query.where("columnN", "=", columnN ?? 0))
    .orderBy("columnN")
    .orderBy("caseN")
    .orderBy("repeatN")
    .$castTo<ResultRow>()
    .execute();

/** Places of a column that have a result, as `case repeat`. */
export async function listGraded(db: Queries, evaluationId: string, columnN: number): Promise<Set<string>> {
  const rows = await db
    .selectFrom("evaluationResults")
    .select(["caseN", "repeatN"])
    .where("evaluationId", "=", evaluationId)
    .where("columnN", "=", columnN)
    .execute();
  return new Set(rows.map(({ caseN, repeatN }) => `${caseN} ${repeatN}`));
}

/** The first result of a place stays. */
export const insertResults = (
  db: Queries,
  results: (Omit<ResultRow, "costUsd"> & { costUsd: number | null })[],
) =>
  db
    .insertInto("evaluationResults")
    .values(results)
    .onConflict((conflict) => conflict.doNothing())
    .execute();

export const listJudgments = (db: Queries, evaluationId: string): Promise<JudgmentRow[]> =>
  db
    .selectFrom("evaluationJudgments")
    .selectAll()
    .where("evaluationId", "=", evaluationId)
    .$castTo<JudgmentRow>()
    .execute();

/** The first judgment of a run stays. */
export const insertJudgments = (db: Queries, judgments: JudgmentRow[]) =>
  db
    .insertInto("evaluationJudgments")
    .values(judgments)
    .onConflict((conflict) => conflict.doNothing())
    .execute();

export const startColumn = (tx: Tx, evaluationId: string, n: number, executionId: string) =>
  tx
    .updateTable("evaluationColumns")
    .set({ status: "running", executionId })
    .where("evaluationId", "=", evaluationId)
    .where("n", "=", n)
    .execute();

export const endColumn = (
  tx: Tx,
  { evaluationId, n }: Pick<ColumnRow, "evaluationId" | "n">,
  end: { status: ColumnRow["status"]; costUsd: number },
) =>
  tx
    .updateTable("evaluationColumns")
    .set(end)
    .where("evaluationId", "=", evaluationId)
    .where("n", "=", n)
    .execute();

/** Ends a running evaluation. False: it has ended. */
export async function endEvaluation(
  tx: Queries,
  id: string,
  {
    scores,
    regressions = [],
    ...end
  }: Pick<EvaluationRow, "status" | "errorCode" | "errorMessage"> & {
    completedAt: Date;
    /** null: it did not complete. */
    scores: ScoreCard["models"] | null;
    regressions?: Regression[];
  },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("evaluations")
    .set({ ...end, scores: scores && JSON.stringify(scores), regressions: JSON.stringify(regressions) })
    .where("id", "=", id)
    .where("status", "=", "running")
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Of a completed evaluation. */
export const storeRegressions = (tx: Tx, id: string, regressions: Regression[]) =>
  tx
    .updateTable("evaluations")
    .set({ regressions: JSON.stringify(regressions) })
    .where("id", "=", id)
    .execute();

export interface ColumnRun {
  status: string;
  hasEnded: boolean;
  isDeleted: boolean;
  errorCode: string | null;
  costUsd: string | null;
}

export async function findColumnRun(db: Queries, executionId: string): Promise<ColumnRun | undefined> {
  const { rows } = await sql<ColumnRun>`
    select status, completed_at is not null as "hasEnded", deleted_at is not null as "isDeleted",
           error_code as "errorCode", cost_usd as "costUsd"
      from executions where id = ${executionId}`.execute(db);
  return rows[0];
}

/** Evaluations with a column whose run has ended, or is gone. */
export async function listToAdvance(db: Queries): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select c.evaluation_id as id
      from evaluation_columns c left join executions e on e.id = c.execution_id
     where c.status = 'running' and (e.id is null or e.completed_at is not null)
     order by 1`.execute(db);
  return rows.map(({ id }) => id);
}

interface Released {
  productId: string;
  version: string;
}

export type CardRow = Omit<EvaluationRow, "completedAt"> & {
  completedAt: Date;
  scores: ScoreCard["models"];
};

/** Filters the products to those with a completed evaluation. */
export async function listEvaluated(db: Queries, productIds: string[]): Promise<Set<string>> {
  const { rows } = await sql<{ id: string }>`${prepared("list_evaluated")}
    select given.id from unnest(${productIds}::uuid[]) as given (id)
     where exists (select from evaluations e where e.product_id = given.id and e.status = 'completed' offset 0)`.execute(
    db,
  );
  return new Set(rows.map(({ id }) => id));
}

/** The newest completed one of a version, unless it was another draft then. */
export async function findCardEvaluation(
  db: Queries,
  { productId, version }: Released,
): Promise<CardRow | undefined> {
  const { rows } = await sql<CardRow>`${prepared("find_card_evaluation")}
    select e.id, e.product_id, e.user_id, e.version, e.content_sha256, e.definition_sha256, e.test_set_id, e.repeats,
           e.max_cost_usd, e.price_list, e.judge, e.started_by, e.model_prices, e.regressions, e.status, e.error_code, e.error_message,
           e.created_at, e.completed_at, e.scores
      from evaluations e join product_versions v on v.product_id = e.product_id and v.version = e.version
     where e.product_id = ${productId} and e.version = ${version} and e.status = 'completed'
       and e.definition_sha256 = definition_hash(v.content, v.content_format, v.variables)
     order by e.id desc limit 1`.execute(db);
  return rows[0];
}

export async function hashDefinition(
  db: Queries,
  { content, contentFormat, variables }: VersionDefinition,
): Promise<string> {
  const { rows } = await sql<{ hash: string }>`
    select definition_hash(${content}, ${contentFormat}, ${JSON.stringify(variables)}::jsonb) as hash`.execute(
    db,
  );
  return firstOf(rows).hash;
}

/** The newest completed one of any version with this definition. */
export async function findNewestOfDefinition(db: Queries, productId: string, definitionSha256: string) {
  const { rows } = await sql<Pick<CardRow, "id" | "testSetId" | "definitionSha256" | "scores">>`
    select id, test_set_id, definition_sha256, scores from evaluations
     where product_id = ${productId} and definition_sha256 = ${definitionSha256} and status = 'completed'
     order by id desc limit 1`.execute(db);
  return rows[0];
}

const MAX_COMPARED = 200;

/**
 * Completed evaluations of released versions by the same test set, the oldest first, without the given one: the newest of the same
 * definition, the newest of others, and the first of the same definition that measured each model.
 */
export async function listComparable(
  db: Queries,
  {
    id,
    productId,
    version,
    testSetId,
    definitionSha256,
  }: Pick<EvaluationRow, "id" | "productId" | "version" | "testSetId" | "definitionSha256">,
): Promise<ComparableEvaluation[]> {
  const { rows } = await sql<ComparableEvaluation>`
    with comparable as materialized (
      select e.id, v.numbers, e.definition_sha256 = ${definitionSha256} as is_same,
             row_number() over (partition by e.definition_sha256 = ${definitionSha256} order by e.id desc) as age
        from evaluations e
        join products p on p.id = e.product_id
        join product_versions v on v.product_id = e.product_id and v.version = e.version
        join test_sets t on t.id = e.test_set_id
       where e.product_id = ${productId} and e.id <> ${id} and e.status = 'completed' and v.numbers <= p.released
         and t.sha256 = (select sha256 from test_sets where id = ${testSetId})),
    first_of_model as (
      select distinct on (m.provider, m.model) c.id
        from comparable c
        join evaluations e on e.id = c.id
       cross join json_to_recordset(e.scores) as m (provider text, model text, rate json)
       where c.is_same and m.rate is not null
       order by m.provider, m.model, c.id)
    select e.id, e.version, e.definition_sha256, e.completed_at, e.scores, e.regressions,
           c.numbers < (select numbers from product_versions
                         where product_id = e.product_id and version = ${version}) as is_older
      from comparable c join evaluations e on e.id = c.id
     where c.age <= ${MAX_COMPARED} or c.id in (select id from first_of_model)
     order by e.id`.execute(db);
  return rows;
}

/** null: buyers do not get this version. `isAcknowledged`: the changelog of a version that runs the same says that it passes less. */
export async function findReleaseOf(
  db: Queries,
  { productId, version }: Released,
): Promise<{ major: number; isAcknowledged: boolean } | null> {
  const { rows } = await sql<{ major: number; isAcknowledged: boolean }>`
    select v.numbers[1] as major,
           exists (select from product_versions o where o.product_id = v.product_id and o.acknowledges_regression
                     and (o.content, o.content_format, o.variables) = (v.content, v.content_format, v.variables)) as is_acknowledged
      from product_versions v join products p on p.id = v.product_id and p.released = v.numbers
     where v.product_id = ${productId} and v.version = ${version}`.execute(db);
  return rows[0] ?? null;
}

export async function findScores(db: Queries, id: string): Promise<ScoreCard["models"] | null> {
  const row = await db.selectFrom("evaluations").select("scores").where("id", "=", id).executeTakeFirst();
  return (row?.scores ?? null) as ScoreCard["models"] | null;
}

export async function findProof(db: Queries, id: string): Promise<EvaluationProof | null> {
  const row = await db.selectFrom("evaluations").select("proof").where("id", "=", id).executeTakeFirst();
  return (row?.proof ?? null) as EvaluationProof | null;
}

/** The first proof stays. */
export const storeProof = (db: Queries, id: string, proof: EvaluationProof) =>
  db
    .updateTable("evaluations")
    .set({ proof: JSON.stringify(proof) })
    .where("id", "=", id)
    .where("proof", "is", null)
    .execute();

export async function countEvaluations(db: Queries, { productId, version }: Released): Promise<number> {
  const { total } = await db
    .selectFrom("evaluations")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("productId", "=", productId)
    .where("version", "=", version)
    .executeTakeFirstOrThrow();
  return total;
}

export async function deleteOfUser(tx: Tx, userId: string): Promise<void> {
  // Before the evaluations, as the end of one locks them.
  await sql`select from products where author_id = ${userId} order by id for no key update`.execute(tx);
  await tx.deleteFrom("evaluations").where("userId", "=", userId).execute();
  await tx
    .deleteFrom("reEvaluations")
    .where("productId", "in", (products) =>
      products.selectFrom("products").select("id").where("authorId", "=", userId),
    )
    .execute();
}
