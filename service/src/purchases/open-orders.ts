import type { Tx } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { countOpenOrders } from "./queries.ts";

/** Whoever leaves must not have orders that may still go either way, as buyer or as seller. */
export async function mustHaveNoOpenOrders(tx: Tx, userId: string): Promise<void> {
  const { purchases, sales } = await countOpenOrders(tx, userId);
  if (purchases + sales === 0) return;
  const why =
    purchases > 0
      ? "A purchase of yours is not settled yet: confirm it, or wait until it is given up."
      : "A sale of yours is not settled yet: unpublish your products and wait for its payment.";
  throw new ApiError("INVALID_STATE", why, {
    current: "money_open",
    openPurchases: purchases,
    openSales: sales,
  });
}
