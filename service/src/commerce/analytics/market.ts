import type { Stats } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import { toDecimalSum } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type DayRange, listTopSellers, sumMarket } from "./market-queries.ts";
import type { Sums } from "./range-sums-queries.ts";

const TOP_SELLERS = 10;

export async function readMarketSales(tx: Tx, days: DayRange): Promise<Stats["currencies"]> {
  const totals = await sumMarket(tx, days);
  const top = await listTopSellers(tx, days, TOP_SELLERS);
  return [...totals].map(([currency, sums]) => ({
    currency,
    ...toSold(sums, currency),
    ...toRest(sums, currency),
    topSellers: top
      .filter((seller) => seller.currency === currency)
      .map((seller) => ({ id: toUserId(seller.id), name: seller.name, ...toSold(seller, currency) })),
  }));
}

const toSold = (sums: Sums, currency: string) => ({
  sales: Number(sums.sales),
  grossRevenue: toDecimalSum(sums.gross, currency),
  platformFees: toDecimalSum(sums.fees, currency),
  netRevenue: toDecimalSum(sums.net, currency),
});

const toRest = (sums: Sums, currency: string) => ({
  discounts: toDecimalSum(sums.discounts, currency),
  tax: toDecimalSum(sums.tax, currency),
  refunds: toDecimalSum(sums.refunds, currency),
  disputes: toDecimalSum(sums.disputes, currency),
  referralCommissions: toDecimalSum(sums.commissions, currency),
});
