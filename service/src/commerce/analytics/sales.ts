import type { Context } from "../../core/context.ts";
import { roundHalfUp } from "../../core/money/amount.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { saleSums } from "../ledger/sales-sums.ts";
import { type DateRange, rangeBounds } from "./date-range.ts";
import { listCurrencies } from "./queries.ts";
import { type SumName, type Sums, sumRange } from "./range-sums-queries.ts";

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

/** All that is read for one answer, of one moment: its parts add up, whatever is sold meanwhile. */
export const inSnapshot = <T>({ db }: Context, work: (tx: Tx) => Promise<T>): Promise<T> =>
  db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(work);

/** All sales of a seller, or of one product. */
export interface SalesScope {
  sellerId: string;
  productId?: string | undefined;
}

const toSumScope = ({ sellerId, productId }: SalesScope) =>
  productId === undefined
    ? { sellerId, scope: "all" as const }
    : { sellerId, scope: "product" as const, ofId: productId };

/** The currency that is asked for, else that with the most sales, else the shop's; and every one in which something was sold. */
export async function chooseCurrency(ctx: Context, db: Queries, sellerId: string, asked: string | undefined) {
  const currencies = await listCurrencies(db, sellerId);
  return { currency: asked ?? currencies[0] ?? ctx.config.currency, currencies };
}

/** Of the whole span, by currency; where nothing moved there is none. */
export async function readTotals(
  tx: Tx,
  subject: SalesScope,
  currencies: string[],
  span: DateRange,
): Promise<Map<string, Sums>> {
  const wanted = { ...toSumScope(subject), currencies, edges: rangeBounds(span) };
  const rows = await sumRange(tx, { ...wanted, by: "month" }, saleSums);
  return new Map(rows.filter(hasMoved).map((row) => [row.currency, row]));
}

/** Whether any of the sums that are known is something. */
export const hasMoved = (row: Partial<Sums>) => saleSums.some((name) => (row[name] ?? 0n) !== 0n);

/** For each bucket the sums that are named, nothing where nothing moved. */
export async function readTimeline<Name extends SumName>(
  tx: Tx,
  subject: SalesScope,
  { currency, span, names }: { currency: string; span: DateRange; names: readonly Name[] },
): Promise<Record<Name, bigint>[]> {
  const by = span.interval === "month" ? "month" : "day";
  const wanted = { ...toSumScope(subject), currencies: [currency], edges: span.edges };
  const rows = await sumRange(tx, { ...wanted, by }, names);
  const known = new Map(rows.map((row) => [row.bucket, row]));
  return span.dates.map((_, bucket) => known.get(bucket) ?? ZERO_SUMS);
}

/** In minor units; 0 without sales. */
export const averageOrderValue = ({ gross, sales }: Sums): bigint =>
  sales === 0n ? 0n : roundHalfUp(gross, sales);

const RATE_SCALE = 10_000n;

/** With four decimals; 0 of nothing. */
export const toRate = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number(roundHalfUp(part * RATE_SCALE, whole)) / Number(RATE_SCALE);
