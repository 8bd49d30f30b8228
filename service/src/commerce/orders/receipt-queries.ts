import { toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries } from "../../platform/db/database.ts";

/** Oldest first. */
export async function listSucceededRefunds(
  db: Queries,
  orderId: string,
): Promise<{ at: Date; amountMinor: bigint }[]> {
  const rows = await db
    .selectFrom("refunds")
    .select(["completedAt as at", "amountMinor"])
    .where("orderId", "=", orderId)
    .where("status", "=", "succeeded")
    .where("completedAt", "is not", null)
    .orderBy("completedAt")
    .orderBy("id")
    .$castTo<{ at: Date; amountMinor: number }>()
    .execute();
  return rows.map((row) => toBigintAmounts(row));
}
