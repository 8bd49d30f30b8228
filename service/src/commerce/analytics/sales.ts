import type { Context } from "../../core/context.ts";
import { type MinorUnits, roundHalfUp } from "../../core/money/amount.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { saleSums } from "../ledger/sales-sums.ts";
import { type DateRange, rangeBounds } from "./date-range.ts";
import { listCurrencies } from "./queries.ts";
import { grainOfTotals, type SumName, type Sums, sumBuckets, sumRange } from "./range-sums-queries.ts";

export const ZERO_SUMS: Sums = {
  sales: 0n,
  gross: 0n,
  discounts: 0n,
  refunds: 0n,
  disputes: 0n,
  tax: 0n,
  fees: 0n,
  commissions: 0n,
  net: 0n,
};

export interface SalesScope {
  sellerId: string;
  productId?: string | undefined;
}

const toSumScope = ({ sellerId, productId }: SalesScope) =>
  productId === undefined
    ? { sellerId, scope: "all" as const }
    : { sellerId, scope: "product" as const, ofId: productId };

/** Returns the requested currency, else the one with the most sales, else the default; and all currencies with sales. */
export async function chooseCurrency(
  ctx: Context,
  db: Queries,
  sellerId: string,
  requested: string | undefined,
) {
  const currencies = await listCurrencies(db, sellerId);
  return { currency: requested ?? currencies[0] ?? ctx.config.currency, currencies };
}

export async function readTotals(
  tx: Tx,
  subject: SalesScope,
  currencies: string[],
  span: DateRange,
): Promise<Map<string, Sums>> {
  const edges = rangeBounds(span);
  const query = { ...toSumScope(subject), currencies, edges, by: grainOfTotals(edges) };
  const rows = await sumRange(tx, query, saleSums);
  return new Map(rows.filter(hasMoved).map((row) => [row.currency, row]));
}

export const hasMoved = (row: Partial<Sums>) => saleSums.some((name) => (row[name] ?? 0n) !== 0n);

/** Returns one row for each bucket, with zeros if nothing moved. */
export function readTimeline<Name extends SumName>(
  tx: Tx,
  subject: SalesScope,
  { currency, span, names }: { currency: string; span: DateRange; names: readonly Name[] },
): Promise<Record<Name, MinorUnits>[]> {
  const by = span.interval === "month" ? "month" : "day";
  return sumBuckets(tx, { ...toSumScope(subject), currency, edges: span.edges, by }, names);
}

export const averageOrderValue = ({ gross, sales }: Sums): bigint =>
  sales === 0n ? 0n : roundHalfUp(gross, sales);

const RATE_SCALE = 10_000n;

/** Rounded to four decimals; 0 if `whole` is 0. */
export const toRate = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number(roundHalfUp(part * RATE_SCALE, whole)) / Number(RATE_SCALE);
