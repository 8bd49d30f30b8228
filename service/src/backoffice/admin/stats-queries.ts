import { sql } from "kysely";
import { minUuidAt } from "../../core/ids.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

export interface CountRow {
  what: "role" | "plan" | "banned" | "closed" | "product" | "order";
  name: string;
  count: number;
}

/** One statement, so that the numbers are consistent. */
export async function countAll(db: Queries): Promise<CountRow[]> {
  const { rows } = await sql<CountRow>`
    with people as materialized (
      select role, plan, banned_at is not null as banned, closed_at is not null as closed, count(*) as count
        from users group by 1, 2, 3, 4)
    select 'role' as what, role as name, sum(count)::bigint as count from people where not closed group by role
    union all select 'plan', plan, sum(count)::bigint from people where not closed group by plan
    union all select 'banned', 'banned', coalesce(sum(count), 0)::bigint from people where banned and not closed
    union all select 'closed', 'closed', coalesce(sum(count), 0)::bigint from people where closed
    union all select 'product', status, count(*) from products group by status
    union all select 'order', status, count(*) from orders group by status`.execute(db);
  return rows;
}

/** From `from` until before `until`. */
export interface TimeRange {
  from: Date;
  until: Date;
}

// Ids are ordered by time, so a time range is a range of the primary key.
const isCreatedIn = ({ from, until }: TimeRange, id = "id") =>
  sql`${sql.ref(id)} >= ${minUuidAt(from)} and ${sql.ref(id)} < ${minUuidAt(until)}`;

interface Funnel {
  views: number;
  orders: number;
  paid: number;
}

/** `days`: UTC dates, both included. */
export async function countFunnel(
  db: Queries,
  time: TimeRange,
  days: { startDate: string; endDate: string },
) {
  const { rows } = await sql<Funnel>`
    select (select coalesce(sum(views), 0)::bigint from author_daily_views
             where day between ${days.startDate}::date and ${days.endDate}::date) as views,
           count(*) as orders, count(completed_at) as paid
      from orders where ${isCreatedIn(time)}`.execute(db);
  return firstOf(rows);
}

interface RunCount {
  status: string;
  code: string | null;
  count: number;
}

export async function countRuns(db: Queries, time: TimeRange): Promise<RunCount[]> {
  const { rows } = await sql<RunCount>`
    select status, case when status = 'failed' then error_code end as code, count(*) as count
      from executions where ${isCreatedIn(time)} group by 1, 2 order by 3 desc, 2`.execute(db);
  return rows;
}

export interface ProviderUse {
  provider: string;
  calls: number;
  failed: number;
  promptTokens: number;
  completionTokens: number;
  cost: number;
}

/** A workflow has no provider of its own; its steps have. */
export async function listProviderUse(db: Queries, time: TimeRange): Promise<ProviderUse[]> {
  const { rows } = await sql<ProviderUse>`
    select provider, count(*) as calls, count(*) filter (where status = 'failed') as failed,
           coalesce(sum(prompt_tokens), 0)::bigint as "promptTokens",
           coalesce(sum(completion_tokens), 0)::bigint as "completionTokens",
           coalesce(sum(cost_usd), 0)::float8 as cost
      from (select provider, status, prompt_tokens, completion_tokens, cost_usd
              from executions where ${isCreatedIn(time)}
            union all
            select provider, status, prompt_tokens, completion_tokens, cost_usd
              from execution_steps where ${isCreatedIn(time, "executionId")}) as call
     where provider is not null group by provider order by calls desc, provider`.execute(db);
  return rows;
}
