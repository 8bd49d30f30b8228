import type { ProductRunCounts, ProductRuns, SaleRuns } from "@stoa/contract";
import { type RawBuilder, sql } from "kysely";
import type { CountSellerRuns } from "../../catalog/products/checks.ts";
import type { CountRunFailures, RunFailures } from "../../commerce/refunds/run-failures.ts";
import { DAY_MS, dayOf } from "../../core/dates.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

interface CountScope {
  authorId: string;
  /** Absent: all. */
  productIds?: string[] | undefined;
  since: Date;
}

const FOLDED_UNTIL = sql`(select folded_until from run_folds)`;

/** The first day in UTC that begins at a time or after it. */
const wholeDayFrom = (since: Date) => new Date(Math.ceil(since.getTime() / DAY_MS) * DAY_MS);

/** The sums of days before `folded_until`, and the runs that these lack: docs/decisions/0093-sums-of-runs.md */
function countParts({ authorId, productIds, since }: CountScope) {
  const ofProducts = (column: string) =>
    productIds ? sql`and ${sql.ref(column)} = any(${productIds}::uuid[])` : sql``;
  const day = wholeDayFrom(since);
  return sql`
    with own as materialized (select count(*) as products from products where author_id = ${authorId} ${ofProducts("id")}),
    -- The runs of all sellers since the last fold. If they are more than the seller has products, these are looked up one by one.
    latest as materialized (
      select product_id, user_id, status, created_at from executions
       where id >= ${FIRST_LATEST_ID} order by id limit (select products from own)),
    coverage as materialized (select (select count(*) from latest) < (select products from own) as is_complete)
    -- The sums of all days.
    select product_id, completed + failed + canceled as total, completed, failed, canceled, 0::bigint as recent, 0::bigint as recent_completed,
           0::bigint as recent_failed
      from run_totals where author_id = ${authorId} ${ofProducts("product_id")}
    union all
    -- The sums of the last 30 days.
    select product_id, 0, 0, 0, 0, sum(runs::int), coalesce(sum(runs::int) filter (where status = 'completed'), 0),
           coalesce(sum(runs::int) filter (where status = 'failed'), 0)
      from run_sums where author_id = ${authorId} and day >= ${dayOf(day)}::date ${ofProducts("product_id")} group by product_id
    union all
    -- The part of a day with which the last 30 days begin.
    select t.product_id, 0, 0, 0, 0, e.runs, e.completed, e.failed
      from (select product_id from run_sums where author_id = ${authorId} and day = ${dayOf(since)}::date
            union
            select e.product_id from unfolded_runs u join executions e on e.id = u.execution_id where u.author_id = ${authorId}) t
     cross join lateral (
       select count(*) as runs, count(*) filter (where status = 'completed') as completed,
              count(*) filter (where status = 'failed') as failed
         from executions e
        where e.product_id = t.product_id and e.user_id <> ${authorId}
          and e.created_at >= ${since} and e.created_at < least(${day}, ${FOLDED_UNTIL})) e
     where true ${ofProducts("t.product_id")}
    union all
    -- Days that are not folded yet.
    select e.product_id, ${runCounts(since)}
      from (select latest.* from latest join products p on p.id = latest.product_id
             where (select is_complete from coverage) and p.author_id = ${authorId}
            union all
            select e.product_id, e.user_id, e.status, e.created_at
              from products p
             cross join lateral (select * from executions e where e.product_id = p.id and e.created_at >= ${FOLDED_UNTIL} offset 0) e
             where not (select is_complete from coverage) and p.author_id = ${authorId} ${ofProducts("p.id")}) e
     where e.user_id <> ${authorId} and e.created_at >= ${FOLDED_UNTIL} ${ofProducts("e.product_id")} group by e.product_id
    union all
    -- Runs of folded days that had not ended.
    select e.product_id, ${runCounts(day)}
      from unfolded_runs u join executions e on e.id = u.execution_id
     where u.author_id = ${authorId} ${ofProducts("e.product_id")} group by e.product_id`;
}

/**
 * The lower bound of the ids of runs since the last fold, as `minUuidAt` makes it: in SQL, because a fold may commit between two
 * statements. A run gets its id before its `created_at`; a fold waits for the same hour.
 */
const FIRST_LATEST_ID = sql`(
  select lpad(to_hex((extract(epoch from greatest(folded_until - interval '1 hour', 'epoch')) * 1000)::bigint), 12, '0')
         || '70008000000000000000' from run_folds)::uuid`;

/** In the order of the columns of `countParts`. */
const runCounts = (since: Date) => sql`
  count(*), count(*) filter (where e.status = 'completed'), count(*) filter (where e.status = 'failed'),
  count(*) filter (where e.status = 'canceled'), count(*) filter (where e.created_at >= ${since}),
  count(*) filter (where e.created_at >= ${since} and e.status = 'completed'),
  count(*) filter (where e.created_at >= ${since} and e.status = 'failed')`;

const COUNTS = sql`
  sum(total::int)::int as total, sum(completed::int)::int as completed, sum(failed::int)::int as failed,
  sum(canceled::int)::int as canceled, sum(recent::int)::int as "last30Days", sum(recent_failed::int)::int as "failed30Days"`;

/** A scalar subquery for each of the few new runs: an anti-join would read all buyers. */
const buyersOf = (authorId: string, product: RawBuilder<unknown>) => sql`(
  coalesce((select buyers from run_totals where author_id = ${authorId} and product_id = ${product}), 0)
  + (select count(distinct e.user_id) from executions e
      where e.product_id = ${product} and e.user_id <> ${authorId} and e.created_at >= ${FOLDED_UNTIL}
        and (select b.user_id from run_buyers b where b.product_id = e.product_id and b.user_id = e.user_id) is null))::int`;

/** Counts the runs of all users but the author, including deleted executions. */
export async function countProductRuns(
  db: Queries,
  { id, authorId }: { id: string; authorId: string },
  since: Date,
) {
  const { rows } = await sql<ProductRuns>`
    select coalesce(total, 0) as total, coalesce(completed, 0) as completed, coalesce(failed, 0) as failed,
           coalesce(canceled, 0) as canceled, ${buyersOf(authorId, sql`${id}::uuid`)} as buyers, coalesce("last30Days", 0) as "last30Days"
      from (select ${COUNTS} from (${countParts({ authorId, productIds: [id], since })}) as part) as counts`.execute(
    db,
  );
  return firstOf(rows);
}

interface CountFilter extends Paging, Omit<CountScope, "authorId"> {
  sort: "runs" | "failures";
}

export interface CountsRow extends Omit<ProductRunCounts, "product"> {
  productId: string;
  title: string;
  type: string;
}

/** Of the products of one author that others ran. Reads the titles, the buyers and the errors of the page only. */
export async function listRunCounts(
  db: Queries,
  authorId: string,
  { productIds, sort, since, ...paging }: CountFilter,
): Promise<Page<CountsRow>> {
  const day = wholeDayFrom(since);
  const first =
    sort === "failures" ? sql`"failed30Days" desc, failed desc,` : sql`"last30Days" desc, total desc,`;
  const { rows } = await sql<CountsRow & { all: number }>`
    with counts as (
      select product_id, ${COUNTS} from (${countParts({ authorId, productIds, since })}) as part
       group by product_id having sum(total) > 0),
    page as (
      select c.*, (count(*) over ())::int as "all"
        from counts c where product_id not in (select id from products where author_id = ${authorId} and status = 'deleted')
       order by ${first} product_id desc limit ${paging.limit} offset ${offsetOf(paging)}),
    failures as materialized (
      select product_id, error_code as code, runs from run_sums
       where author_id = ${authorId} and day >= ${dayOf(day)}::date and status = 'failed'
         and product_id in (select product_id from page) and runs > 0
      union all
      select e.product_id, e.error_code, 1
        from page join executions e on e.product_id = page.product_id
       where e.user_id <> ${authorId} and e.status = 'failed' and e.created_at >= greatest(${since}, ${FOLDED_UNTIL})
      union all
      select e.product_id, e.error_code, 1
        from page join executions e on e.product_id = page.product_id
       where e.user_id <> ${authorId} and e.status = 'failed'
         and e.created_at >= ${since} and e.created_at < least(${day}, ${FOLDED_UNTIL})
      union all
      select e.product_id, e.error_code, 1
        from unfolded_runs u join executions e on e.id = u.execution_id join page on page.product_id = e.product_id
       where u.author_id = ${authorId} and e.status = 'failed' and e.created_at >= ${day})
    select page.*, p.title, p.type, ${buyersOf(authorId, sql`page.product_id`)} as buyers,
           coalesce((select jsonb_agg(jsonb_build_object('code', code, 'runs', runs) order by runs desc, code)
                       from (select coalesce(nullif(code, ''), 'UNKNOWN') as code, sum(runs)::bigint as runs from failures
                              where failures.product_id = page.product_id group by 1) as f),
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

/** Of all products of the seller, deleted ones too. Only runs that ended, and none that was canceled. */
export const countSellerRuns: CountSellerRuns = async (db, sellerId, since) => {
  const { rows } = await sql<Awaited<ReturnType<CountSellerRuns>>>`
    select coalesce(sum(recent_failed), 0)::int as failed,
           coalesce(sum(recent_failed + recent_completed), 0)::int as n
      from (${countParts({ authorId: sellerId, since })}) as part`.execute(db);
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
