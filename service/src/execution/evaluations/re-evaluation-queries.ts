import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { ModelPrice } from "./model-prices.ts";
import type { EvaluationRow } from "./queries.ts";

export interface ReEvaluationRow {
  productId: string;
  maxCostUsd: string;
  monthlyBudgetUsd: string;
  pausedEvaluationId: string | null;
  pausedCode: string | null;
  pausedAt: Date | null;
  updatedAt: Date;
}

export const findReEvaluation = (db: Queries, productId: string): Promise<ReEvaluationRow | undefined> =>
  db
    .selectFrom("reEvaluations")
    .selectAll()
    .where("productId", "=", productId)
    .$castTo<ReEvaluationRow>()
    .executeTakeFirst();

/** The lock under which a repeated evaluation starts, so that the budget of the month holds. */
export const lockReEvaluation = (tx: Tx, productId: string): Promise<ReEvaluationRow | undefined> =>
  tx
    .selectFrom("reEvaluations")
    .selectAll()
    .where("productId", "=", productId)
    .forUpdate()
    .$castTo<ReEvaluationRow>()
    .executeTakeFirst();

/** Ends a pause. */
export const upsertReEvaluation = (
  db: Queries,
  {
    productId,
    ...values
  }: { productId: string; maxCostUsd: number; monthlyBudgetUsd: number; updatedAt: Date },
) => {
  const changed = { ...values, pausedEvaluationId: null, pausedCode: null, pausedAt: null };
  return db
    .insertInto("reEvaluations")
    .values({ productId, ...changed })
    .onConflict((conflict) => conflict.column("productId").doUpdateSet(changed))
    .execute();
};

export const pauseReEvaluation = (
  tx: Tx,
  productId: string,
  pause: { pausedEvaluationId: string; pausedCode: string; pausedAt: Date },
) => tx.updateTable("reEvaluations").set(pause).where("productId", "=", productId).execute();

/** Returns whether there was one. */
export async function deleteReEvaluation(db: Queries, productId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("reEvaluations")
    .where("productId", "=", productId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Products on sale whose sellers allow repeated evaluations, in the order of their ids. */
export async function listReEvaluated(db: Queries, after: string, limit: number): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select r.product_id as id from re_evaluations r join products p on p.id = r.product_id
     where p.status = 'published' and r.product_id > ${after} order by 1 limit ${limit}`.execute(db);
  return rows.map(({ id }) => id);
}

export async function findReleasedVersion(db: Queries, productId: string): Promise<string | null> {
  const { rows } = await sql<{ version: string }>`
    select v.version from products p
      join product_versions v on v.product_id = p.id and v.numbers = p.released
     where p.id = ${productId} and p.status = 'published'`.execute(db);
  return rows[0]?.version ?? null;
}

/** The newest re-evaluation after an evaluation of the same version, however it ended. */
export async function findNewestReEvaluation(
  db: Queries,
  { id, productId, version }: Pick<EvaluationRow, "id" | "productId" | "version">,
) {
  const { rows } = await sql<{ modelPrices: ModelPrice[]; createdAt: Date }>`
    select model_prices, created_at from evaluations
     where product_id = ${productId} and version = ${version} and id > ${id} and started_by <> 'seller'
     order by id desc limit 1`.execute(db);
  return rows[0];
}

/** Of re-evaluations since then. One counts with its limit until its last column has ended. */
export async function sumReEvaluations(
  db: Queries,
  productId: string,
  since: Date,
): Promise<{ evaluations: number; cost: number }> {
  const { rows } = await sql<{ evaluations: number; cost: number }>`
    select count(*)::int as evaluations, coalesce(sum(case
             when e.status = 'running' or c.is_running then e.max_cost_usd else c.cost_usd end), 0)::float8 as cost
      from evaluations e
     cross join lateral (select sum(cost_usd) as cost_usd, bool_or(status = 'running') as is_running
                           from evaluation_columns where evaluation_id = e.id) c
     where e.product_id = ${productId} and e.started_by <> 'seller' and e.created_at >= ${since}`.execute(db);
  return firstOf(rows);
}
