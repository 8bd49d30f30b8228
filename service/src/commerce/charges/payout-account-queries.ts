import type { Queries, Tx } from "../../platform/db/database.ts";

export async function findPayoutAccount(db: Queries, userId: string): Promise<string | null> {
  const row = await db
    .selectFrom("paymentCustomers")
    .select("payoutAccountId as account")
    .where("userId", "=", userId)
    .executeTakeFirst();
  return row?.account ?? null;
}

export const upsertPayoutAccount = (tx: Tx, userId: string, account: string) =>
  tx
    .insertInto("paymentCustomers")
    .values({ userId, payoutAccountId: account })
    .onConflict((conflict) => conflict.column("userId").doUpdateSet({ payoutAccountId: account }))
    .execute();
