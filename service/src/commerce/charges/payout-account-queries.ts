import type { Queries, Tx } from "../../platform/db/database.ts";

export async function findPayoutAccount(db: Queries, userId: string): Promise<string | null> {
  const row = await db
    .selectFrom("payment_customers")
    .select("payout_account_id as account")
    .where("user_id", "=", userId)
    .executeTakeFirst();
  return row?.account ?? null;
}

export const upsertPayoutAccount = (tx: Tx, userId: string, account: string) =>
  tx
    .insertInto("payment_customers")
    .values({ user_id: userId, payout_account_id: account })
    .onConflict((conflict) => conflict.column("user_id").doUpdateSet({ payout_account_id: account }))
    .execute();
