import type { ErrorCode, Provider } from "@stoa/contract";
import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

export interface TryOutRow {
  productId: string;
  /** null: the sandbox. */
  providerKeyId: string | null;
  provider: Provider;
  model: string | null;
  maxPerDay: number;
  maxPerVisitorPerDay: number;
  monthlyBudgetUsd: string;
  maxOutputTokens: number;
  updatedAt: Date;
}

export const findTryOut = (db: Queries, productId: string): Promise<TryOutRow | undefined> =>
  db
    .selectFrom("tryOuts")
    .selectAll()
    .where("productId", "=", productId)
    .$castTo<TryOutRow>()
    .executeTakeFirst();

export const upsertTryOut = (db: Queries, { monthlyBudgetUsd, ...row }: TryOutRow) => {
  const { productId, ...values } = { ...row, monthlyBudgetUsd: Number(monthlyBudgetUsd) };
  return db
    .insertInto("tryOuts")
    .values({ productId, ...values })
    .onConflict((conflict) => conflict.column("productId").doUpdateSet(values))
    .execute();
};

/** Returns whether there was one. */
export async function deleteTryOut(db: Queries, productId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("tryOuts")
    .where("productId", "=", productId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

interface UsedTries {
  today: { tries: number; completed: number; withheld: number; failed: number };
  month: { tries: number; cost: number };
  lastFailure: { code: string; at: Date } | null;
}

export async function findUsedTries(
  db: Queries,
  productId: string,
  { today, monthStart }: { today: string; monthStart: string },
): Promise<UsedTries> {
  const { rows } = await sql<UsedTries["today"] & { monthTries: number; cost: number }>`
    select coalesce(sum(tries) filter (where day = ${today}), 0)::int as tries,
           coalesce(sum(completed) filter (where day = ${today}), 0)::int as completed,
           coalesce(sum(withheld) filter (where day = ${today}), 0)::int as withheld,
           coalesce(sum(failed) filter (where day = ${today}), 0)::int as failed,
           coalesce(sum(tries), 0)::int as month_tries, coalesce(sum(cost_usd), 0)::float8 as cost
      from try_out_days where product_id = ${productId} and day >= ${monthStart}`.execute(db);
  const { monthTries, cost, ...counts } = firstOf(rows);
  const failure = await db
    .selectFrom("tries")
    .select(["errorCode as code", "startedAt as at"])
    .where("productId", "=", productId)
    .where("status", "=", "failed")
    .orderBy("startedAt", "desc")
    .limit(1)
    .$castTo<{ code: string; at: Date }>()
    .executeTakeFirst();
  return { today: counts, month: { tries: monthTries, cost }, lastFailure: failure ?? null };
}

/** A digest of a visitor or network, and how many visitors it may stand for. */
export interface VisitorCount {
  visitor: string;
  factor: number;
}

export interface NewTry {
  id: string;
  productId: string;
  today: string;
  monthStart: string;
  visitors: VisitorCount[];
  expectedUsd: number;
  abandonedUsd: number;
  startedAt: Date;
  leaseUntil: Date;
}

export type TryRefusal = "off" | "day" | "visitor" | "budget";

export async function reserveTry(
  db: Queries,
  { id, productId, ...rest }: NewTry,
): Promise<{ refusedBy: TryRefusal } | { refusedBy?: undefined; triesLeft: number }> {
  const { rows } = await sql<{ reserved: { refusedBy: TryRefusal } | { triesLeft: number } }>`
    select reserve_try(${id}, ${productId}, ${rest.today}, ${rest.monthStart}, ${JSON.stringify(rest.visitors)}::jsonb,
                       ${rest.expectedUsd}, ${rest.abandonedUsd}, ${rest.startedAt}, ${rest.leaseUntil}) as reserved`.execute(
    db,
  );
  return firstOf(rows).reserved;
}

export interface TryEnd {
  id: string;
  status: "completed" | "withheld" | "failed";
  costUsd: number;
  errorCode: ErrorCode | null;
  endedAt: Date;
  /** They may try again, because a failure was not theirs. */
  freed: VisitorCount[];
}

/** A second write of the same end changes nothing. */
export const endTry = (db: Queries, { id, status, costUsd, errorCode, endedAt, freed }: TryEnd) =>
  sql`
    with ended as (
      update tries set status = ${status}, cost_usd = ${costUsd}, error_code = ${errorCode}, ended_at = ${endedAt}
       where id = ${id} and status = 'running' returning product_id, day),
    freed as (
      update try_out_visitors c set tries = c.tries - 1
        from ended e, jsonb_to_recordset(${JSON.stringify(freed)}::jsonb) v (visitor text)
       where c.product_id = e.product_id and c.day = e.day and c.visitor = decode(v.visitor, 'hex'))
    update try_out_days d
       set completed = d.completed + (${status} = 'completed')::int, withheld = d.withheld + (${status} = 'withheld')::int,
           failed = d.failed + (${status} = 'failed')::int, cost_usd = d.cost_usd + ${costUsd}::numeric
      from ended e where d.product_id = e.product_id and d.day = e.day`.execute(db);

export const deleteVisitorsBefore = (db: Queries, day: string) =>
  sql`delete from try_out_visitors where day < ${day}`.execute(db);

export const deleteTriesBefore = (db: Queries, startedAt: Date) =>
  db.deleteFrom("tries").where("startedAt", "<", startedAt).where("status", "<>", "running").execute();
