import { sql } from "kysely";
import type { Queries } from "../db/database.ts";
import { exact } from "../db/exact.ts";

/** Keeps the code that is there already: of two first looks at once, one makes it. */
export async function insertOrFindCode(
  db: Queries,
  code: { user_id: string; code: string; created_at: Date },
): Promise<string> {
  const known = () =>
    db.selectFrom("referral_codes").select("code").where("user_id", "=", code.user_id).executeTakeFirst();
  const found = await known();
  if (found) return found.code;
  await db
    .insertInto("referral_codes")
    .values(code)
    .onConflict((conflict) => conflict.column("user_id").doNothing())
    .execute();
  return (await known())!.code;
}

export const findOwner = (db: Queries, code: string) =>
  db
    .selectFrom("referral_codes as r")
    .innerJoin("users as u", "u.id", "r.user_id")
    .select(["r.user_id as userId", "r.code"])
    .select((row) =>
      row.or([row("u.closed_at", "is not", null), row("u.banned_at", "is not", null)]).as("isGone"),
    )
    .where("r.code", "=", code)
    .executeTakeFirst();

export interface EarningsRow {
  currency: string;
  totalMinor: bigint;
  pendingMinor: bigint;
  availableMinor: bigint;
}

/** By currency, derived from the ledger: what was paid out lowers what is available, and no total. */
export async function sumEarnings(db: Queries, userId: string, now: Date): Promise<EarningsRow[]> {
  const { rows } = await sql<{
    currency: string;
    totalMinor: number;
    pendingMinor: number;
    availableMinor: number;
  }>`
    select e.currency,
           coalesce(sum(e.amount_minor) filter (where t.kind not like 'payout%'), 0)::bigint as "totalMinor",
           coalesce(sum(e.amount_minor) filter (where e.matures_at > ${now}), 0)::bigint as "pendingMinor",
           coalesce(sum(e.amount_minor) filter (where e.matures_at <= ${now}), 0)::bigint as "availableMinor"
      from ledger_entries e join ledger_transactions t on t.id = e.transaction_id
     where e.owner_id = ${userId} and e.account = 'referrer'
     group by e.currency order by e.currency`.execute(db);
  return rows.map((row) => exact(row));
}

export async function countReferred(db: Queries, userId: string): Promise<number> {
  const { count } = await db
    .selectFrom("orders")
    .where("referrer_id", "=", userId)
    .where("status", "in", ["completed", "partially_refunded", "disputed"])
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}
