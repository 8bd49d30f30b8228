import { ApiError } from "../../core/errors.ts";
import type { Tx } from "../../platform/db/database.ts";
import { countOpenOrders } from "../orders/queries.ts";
import { countOpenRefundsAndDisputes } from "../refunds/refund-queries.ts";

/** Throws if the account has open orders, as buyer or seller. */
export async function mustHaveNoOpenOrders(tx: Tx, userId: string): Promise<void> {
  const { purchases, sales } = await countOpenOrders(tx, userId);
  const { openRefunds, openDisputes } = await countOpenRefundsAndDisputes(tx, userId);
  if (purchases + sales + openRefunds + openDisputes === 0) return;
  throw new ApiError("INVALID_STATE", describeOpenMoney({ purchases, sales, openRefunds }), {
    current: "money_open",
    openPurchases: purchases,
    openSales: sales,
    openRefunds,
    openDisputes,
  });
}

function describeOpenMoney(open: { purchases: number; sales: number; openRefunds: number }): string {
  if (open.purchases > 0)
    return "A purchase of yours is not settled yet: confirm it, or wait until it is canceled.";
  if (open.sales > 0)
    return "A sale of yours is not settled yet: unpublish your products and wait for its payment.";
  if (open.openRefunds > 0) return "A refund is open: decide it, cancel it, or wait until the money is back.";
  return "A payment is disputed at the bank: wait until it is decided.";
}
