import { sql } from "kysely";
import { required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

/** Concurrent first reads insert one code. */
export async function insertOrFindCode(
  db: Queries,
  code: { userId: string; code: string; createdAt: Date },
): Promise<string> {
  const findCode = () =>
    db.selectFrom("referralCodes").select("code").where("userId", "=", code.userId).executeTakeFirst();
  const found = await findCode();
  if (found) return found.code;
  await db
    .insertInto("referralCodes")
    .values(code)
    .onConflict((conflict) => conflict.column("userId").doNothing())
    .execute();
  return required(await findCode(), "the code of a referrer").code;
}

export const findCodeOwner = (db: Queries, code: string) =>
  db
    .selectFrom("referralCodes as r")
    .innerJoin("users as u", "u.id", "r.userId")
    .select(["r.userId", "r.code"])
    .select((row) =>
      row.or([row("u.closedAt", "is not", null), row("u.bannedAt", "is not", null)]).as("isGone"),
    )
    .where("r.code", "=", code)
    .executeTakeFirst();

/** By currency, without failed and returned payouts. */
export async function sumPaidCommissions(db: Queries, userId: string): Promise<Map<string, bigint>> {
  const { rows } = await sql<{ currency: string; paid: string }>`
    select currency, sum(commission_minor)::text as paid from payouts
     where seller_id = ${userId} and status in ('pending', 'in_transit', 'completed') group by currency`.execute(
    db,
  );
  return new Map(rows.map(({ currency, paid }) => [currency, BigInt(paid)]));
}

export async function countReferred(db: Queries, userId: string): Promise<number> {
  const { count } = await db
    .selectFrom("orders")
    .where("referrerId", "=", userId)
    .where("status", "in", ["completed", "partially_refunded", "disputed"])
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}
