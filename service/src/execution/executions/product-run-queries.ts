import type { ProductRunCounts, ProductRuns, SaleRuns } from "@stoa/contract";
import { sql } from "kysely";
import type { CountSellerRuns } from "../../catalog/products/checks.ts";
import type { CountRunFailures, RunFailures } from "../../commerce/refunds/run-failures.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

/** Counts the runs of all users but the author, including deleted executions. */
export async function countProductRuns(db: Queries, product: { id: string; authorId: string }, since: Date) {
  const { rows } = await sql<ProductRuns>`
    select count(*)::int as total,
           (count(*) filter (where status = 'completed'))::int as completed,
           (count(*) filter (where status = 'failed'))::int as failed,
           (count(*) filter (where status = 'canceled'))::int as canceled,
           (count(distinct user_id))::int as buyers,
           (count(*) filter (where created_at >= ${since}))::int as "last30Days"
      from executions where product_id = ${product.id} and user_id <> ${product.authorId}`.execute(db);
  return firstOf(rows);
}

interface CountFilter extends Paging {
  /** Absent: all. */
  productIds?: string[] | undefined;
  sort: "runs" | "failures";
  since: Date;
}

export interface CountsRow extends Omit<ProductRunCounts, "product"> {
  productId: string;
  title: string;
  type: string;
}

/**
 * Of the products of one author that others ran. Ranks all of them by counts from indexes alone, and reads the titles, the buyers and the
 * errors of the page only: rows of products are wide, and buyers and errors need a sort.
 */
export async function listRunCounts(
  db: Queries,
  authorId: string,
  { productIds, sort, since, ...paging }: CountFilter,
): Promise<Page<CountsRow>> {
  const chosen = productIds ? sql`and p.id = any(${productIds}::uuid[])` : sql``;
  const first =
    sort === "failures" ? sql`"failed30Days" desc, failed desc,` : sql`"last30Days" desc, total desc,`;
  const { rows } = await sql<CountsRow & { all: number }>`
    with page as (
      select p.id as product_id, c.*, (count(*) over ())::int as "all"
        from products p
       cross join lateral (
         select count(*)::int as total,
                (count(*) filter (where e.status = 'completed'))::int as completed,
                (count(*) filter (where e.status = 'failed'))::int as failed,
                (count(*) filter (where e.status = 'canceled'))::int as canceled,
                (count(*) filter (where e.created_at >= ${since}))::int as "last30Days",
                (count(*) filter (where e.created_at >= ${since} and e.status = 'failed'))::int as "failed30Days"
           from executions e where e.product_id = p.id and e.user_id <> ${authorId}) as c
       where p.author_id = ${authorId} and p.status <> 'deleted' and c.total > 0 ${chosen}
       order by ${first} p.id desc limit ${paging.limit} offset ${offsetOf(paging)})
    select page.*, p.title, p.type,
           (select count(distinct e.user_id)::int from executions e
             where e.product_id = page.product_id and e.user_id <> ${authorId}) as buyers,
           coalesce((select jsonb_agg(jsonb_build_object('code', code, 'runs', runs) order by runs desc, code)
                       from (select coalesce(e.error_code, 'UNKNOWN') as code, count(*) as runs from executions e
                              where e.product_id = page.product_id and e.user_id <> ${authorId}
                                and e.created_at >= ${since} and e.status = 'failed' group by 1) as f),
                    '[]') as "failures30Days"
      from page join products p on p.id = page.product_id order by ${first} page.product_id desc`.execute(db);
  return { items: rows.map(({ all: _, ...row }) => row), total: rows[0]?.all ?? 0 };
}

export async function countRunsOfSale(
  db: Queries,
  { buyerId, productId, since }: { buyerId: string; productId: string; since: Date },
): Promise<Omit<SaleRuns, "lastAt"> & { lastAt: Date | null }> {
  const { rows } = await sql<Omit<SaleRuns, "lastAt"> & { lastAt: Date | null }>`
    with runs as (
      select status, created_at, coalesce(error_code, 'UNKNOWN') as code
        from executions where user_id = ${buyerId} and product_id = ${productId} and created_at >= ${since})
    select count(*)::int as total,
           (count(*) filter (where status = 'completed'))::int as completed,
           (count(*) filter (where status = 'failed'))::int as failed,
           (count(*) filter (where status = 'canceled'))::int as canceled,
           max(created_at) as "lastAt",
           coalesce((select jsonb_agg(jsonb_build_object('code', code, 'runs', runs) order by runs desc, code)
                       from (select code, count(*) as runs from runs where status = 'failed' group by code) f),
                    '[]') as failures
      from runs`.execute(db);
  return firstOf(rows);
}

/** Of all products of the seller, deleted ones too. */
export const countSellerRuns: CountSellerRuns = async (db, sellerId, since) => {
  const { rows } = await sql<Awaited<ReturnType<CountSellerRuns>>>`
    select (count(*) filter (where e.status = 'failed'))::int as failed, count(*)::int as n
      from products p join executions e on e.product_id = p.id
     where p.author_id = ${sellerId} and e.user_id <> ${sellerId} and e.created_at >= ${since}
       and e.status in ('completed', 'failed')`.execute(db);
  return firstOf(rows);
};

/** Failures that the key or the options of the buyer cause. */
const BUYERS_FAILURES = [
  "PROVIDER_KEY_INVALID",
  "PROVIDER_PERMISSION_DENIED",
  "PROVIDER_QUOTA_EXHAUSTED",
  "PROVIDER_RATE_LIMITED",
  "PROVIDER_TIMEOUT",
  "KEY_BUDGET_EXCEEDED",
  "KEY_CONCURRENCY_LIMIT",
];

/** Of a workflow: the buyer also decides its approvals, limits its cost and may delete a key while it runs. */
const BUYERS_WORKFLOW_FAILURES = [
  ...BUYERS_FAILURES,
  "APPROVAL_REJECTED",
  "APPROVAL_TIMEOUT",
  "PROVIDER_KEY_NOT_FOUND",
  "PROVIDER_NOT_SUPPORTED",
  "VALIDATION_ERROR",
];

/** A step of a workflow, or of a workflow that it runs, called a server of the buyer. */
const calledOwnServer = sql`exists (
  with recursive tree as (
    select e.id
    union all
    select w.execution_id from tree join workflow_runs w on w.parent_id = tree.id)
  select from tree join execution_steps s on s.execution_id = tree.id where s.provider = 'openai-compatible')`;

/** The address of an `openai-compatible` key is the buyer's own. Of a workflow, its steps name the providers. */
export const countRunFailures: CountRunFailures = async (
  db,
  { productId, buyerId, sellerId, boughtAt, since },
) => {
  const { rows } = await sql<RunFailures>`
    with runs as (
      select user_id = ${buyerId} as is_buyers, created_at, status = 'failed' as has_failed
        from executions e
       where product_id = ${productId} and user_id <> ${sellerId} and created_at >= ${since < boughtAt ? since : boughtAt}
         and status in ('completed', 'failed')
         and case when type = 'PROMPT'
               then provider <> 'openai-compatible' and coalesce(error_code, '') <> all (${BUYERS_FAILURES}::text[])
               else coalesce(error_code, '') <> all (${BUYERS_WORKFLOW_FAILURES}::text[]) and not ${calledOwnServer} end)
    select jsonb_build_object(
             'runs', count(*) filter (where is_buyers and created_at >= ${boughtAt}),
             'failed', count(*) filter (where is_buyers and created_at >= ${boughtAt} and has_failed)) as buyer,
           jsonb_build_object(
             'runs', count(*) filter (where not is_buyers and created_at >= ${since}),
             'failed', count(*) filter (where not is_buyers and created_at >= ${since} and has_failed)) as others
      from runs`.execute(db);
  return firstOf(rows);
};

/** A prompt that a step of a workflow ran. */
export interface ProductRun {
  userId: string;
  productId: string;
  productVersion: string;
  provider: string;
  model: string;
  status: "completed" | "failed" | "canceled";
  errorCode: string | null;
}

/** Inserts a deleted execution, which only counts for the product: the history shows the workflow run. */
export const insertProductRun = (
  db: Queries,
  { id, userId, status, ...run }: ProductRun & { id: string; now: Date },
) =>
  db
    .insertInto("executions")
    .values({
      id,
      userId,
      productId: run.productId,
      productVersion: run.productVersion,
      provider: run.provider,
      model: run.model,
      mode: "async",
      status,
      errorCode: run.errorCode,
      createdAt: run.now,
      completedAt: run.now,
      deletedAt: run.now,
    })
    .execute();
