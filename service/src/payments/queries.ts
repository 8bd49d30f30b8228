import type { Queries } from "../db/database.ts";

/** The method that somebody chose; null when they chose none, or removed it. */
export async function findDefaultMethod(db: Queries, userId: string): Promise<string | null> {
  const row = await db
    .selectFrom("payment_customers")
    .select("default_method_id as methodId")
    .where("user_id", "=", userId)
    .executeTakeFirst();
  return row?.methodId ?? null;
}
