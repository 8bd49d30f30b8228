import type { AnalyticsEntry, LedgerFigure } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { toDecimalSum } from "../../core/money/amount.ts";
import type { Page, Paging } from "../../platform/db/paging.ts";
import { inPipelinedSnapshot } from "../../platform/db/pipeline.ts";
import { type DateRangeQuery, parseDateRange, rangeBounds } from "./date-range.ts";
import { type EntryRow, type FigureEntries, listEntries } from "./entries-queries.ts";
import { salesScopeOf } from "./products.ts";
import { chooseCurrency } from "./sales.ts";

type Query = Omit<DateRangeQuery, "interval"> &
  Paging & { productId?: string | undefined; figure: LedgerFigure };

/** Reads the ledger, not the sums that the other answers come from: so it proves them. */
export async function listFigureEntries(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<Page<AnalyticsEntry>> {
  const span = await parseDateRange(ctx, { ...query, interval: "month" });
  const subject = await salesScopeOf(ctx, caller, query.productId);
  const [from, until] = rangeBounds(span);
  return inPipelinedSnapshot(ctx.pool, async (tx) => {
    const { currency } = await chooseCurrency(ctx, tx, caller.userId, query.currency);
    const scope = { ...subject, ...figures[query.figure], currency, from, until };
    const { rows, total, sumMinor } = await listEntries(tx, scope, query);
    return {
      items: rows.map((row) => toEntry(row, currency)),
      total,
      sum: toDecimalSum(BigInt(sumMinor), currency),
    };
  });
}

const DISPUTES = ["dispute_opened", "dispute_won", "dispute_lost"];
const MOVEMENTS = ["sale", "refund", ...DISPUTES];
/** The accounts that share what a buyer paid without tax. */
const SHARES = ["seller", "referrer", "platform_revenue"];

/** The same rules as `SALES` in the ledger's sales-sums.ts. */
export const figures: Record<LedgerFigure, FigureEntries> = {
  grossRevenue: { kinds: ["sale"], accounts: SHARES, sign: 1 },
  refunds: { kinds: ["refund"], accounts: SHARES, sign: -1 },
  disputes: { kinds: DISPUTES, accounts: SHARES, sign: -1 },
  tax: { kinds: MOVEMENTS, accounts: ["tax_payable"], sign: 1 },
  platformFees: { kinds: MOVEMENTS, accounts: ["platform_revenue"], sign: 1 },
  referralCommissions: { kinds: MOVEMENTS, accounts: ["referrer"], sign: 1 },
  netRevenue: { kinds: MOVEMENTS, accounts: ["seller"], sign: 1 },
};

const toEntry = (row: EntryRow, currency: string): AnalyticsEntry => ({
  transactionId: row.transactionId,
  kind: row.kind,
  account: row.account,
  amount: toDecimalSum(BigInt(row.minor), currency),
  currency,
  occurredAt: row.occurredAt.toISOString(),
  orderId: toId("ord", row.orderId),
  product: { id: toId("prod", row.productId), title: row.productTitle },
});
