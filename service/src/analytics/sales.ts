import type { Context } from "../context.ts";
import type { Queries, Tx } from "../db/database.ts";
import { saleSums } from "../ledger/sold.ts";
import { roundHalfUp } from "../money/amount.ts";
import { listCurrencies, type Sums, sumSpan } from "./queries.ts";
import type { Span } from "./span.ts";

const NOTHING: Sums = {
  ...{ sales: 0n, gross: 0n, discounts: 0n, refunds: 0n, disputes: 0n },
  ...{ tax: 0n, fees: 0n, commissions: 0n, net: 0n },
};

/** All that is read for one answer, of one moment: its parts add up, whatever is sold meanwhile. */
export const atOneMoment = <T>({ db }: Context, work: (tx: Tx) => Promise<T>): Promise<T> =>
  db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(work);

/** What is summed: all that somebody sold, or one product. */
export interface Subject {
  sellerId: string;
  productId?: string | undefined;
}

const scopeOf = ({ sellerId, productId }: Subject) =>
  productId === undefined
    ? { sellerId, scope: "all" as const }
    : { sellerId, scope: "product" as const, ofId: productId };

/** The currency that is asked for, else that with the most sales, else the shop's; and every one in which something was sold. */
export async function currenciesOf(ctx: Context, db: Queries, sellerId: string, asked: string | undefined) {
  const currencies = await listCurrencies(db, sellerId);
  return { currency: asked ?? currencies[0] ?? ctx.config.currency, currencies };
}

/** From the first day to the last. */
export const endsOf = ({ edges }: Span): Date[] => [edges[0]!, edges.at(-1)!];

/** Of the whole span, by currency; where nothing moved there is none. */
export async function totalsOf(
  tx: Tx,
  subject: Subject,
  currencies: string[],
  span: Span,
): Promise<Map<string, Sums>> {
  const rows = await sumSpan(tx, { ...scopeOf(subject), currencies, edges: endsOf(span), by: "month" });
  return new Map(rows.filter(hasMoved).map((row) => [row.currency, row]));
}

const hasMoved = (row: Sums) => saleSums.some((name) => row[name] !== 0n);

/** A sum for each bucket, nothing where nothing moved. */
export async function timelineOf(tx: Tx, subject: Subject, currency: string, span: Span): Promise<Sums[]> {
  const by = span.interval === "month" ? "month" : "day";
  const rows = await sumSpan(tx, { ...scopeOf(subject), currencies: [currency], edges: span.edges, by });
  const known = new Map(rows.map((row) => [row.bucket, row]));
  return span.dates.map((_, bucket) => known.get(bucket) ?? NOTHING);
}

/** Those that moved, that with the most revenue first; of equals that with the most sales, then the earlier key. */
export const ranked = <Row extends Sums & { key: string }>(rows: Row[]): Row[] =>
  rows
    .filter(hasMoved)
    .toSorted(
      (a, b) => descending(a.gross, b.gross) || descending(a.sales, b.sales) || (a.key < b.key ? -1 : 1),
    );

const descending = (a: bigint, b: bigint) => (a === b ? 0 : a > b ? -1 : 1);

/** In minor units; 0 without sales. */
export const averageOf = ({ gross, sales }: Sums): bigint => (sales === 0n ? 0n : roundHalfUp(gross, sales));

const RATE_PARTS = 10_000n;

/** With four decimals; 0 of nothing. */
export const rateOf = (part: bigint, whole: bigint): number =>
  whole === 0n ? 0 : Number(roundHalfUp(part * RATE_PARTS, whole)) / Number(RATE_PARTS);

export const sumOf = (rows: Iterable<Sums>): Sums => {
  const sum = { ...NOTHING };
  for (const row of rows) for (const name of saleSums) sum[name] += row[name];
  return sum;
};
