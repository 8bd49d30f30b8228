import type { CustomerAnalytics } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member } from "../../core/context.ts";
import { roundHalfUp, toDecimalSum } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  type Bought,
  type CustomerCounts,
  type CustomerRow,
  countBuyers,
  countCustomers,
  countRetained,
  listCustomers,
} from "./customers-queries.ts";
import { atOneMoment, currenciesOf, rateOf } from "./sales.ts";
import { type Span, type SpanQuery, spanOf } from "./span.ts";
import { sumSpan } from "./span-sums-queries.ts";

const TOP_CUSTOMERS = 10;
/** Before anybody sold anything. */
const FIRST_MOMENT = new Date(0);

/** Who bought of the caller, how often, and who came back. */
export async function customerAnalytics(
  ctx: Context,
  { userId }: Member,
  query: SpanQuery,
): Promise<CustomerAnalytics> {
  const span = await spanOf(ctx, query);
  const months = await spanOf(ctx, { ...query, ...span, interval: "month" });
  return atOneMoment(ctx, async (tx) => {
    const { currency } = await currenciesOf(ctx, tx, userId, query.currency);
    const bought = boughtIn(span, userId, currency);
    const { startDate, endDate, timezone } = span;
    return {
      ...{ currency, startDate, endDate, timezone },
      ...(await summariesOf(tx, bought)),
      timeline: await timelineOf(tx, bought, span),
      topCustomers: await topOf(tx, bought),
      cohorts: await cohortsOf(tx, bought, months),
    };
  });
}

/** What somebody sold in a currency within a span. */
export const boughtIn = ({ edges }: Span, sellerId: string, currency: string): Bought => ({
  ...{ sellerId, currency },
  ...{ from: edges[0]!, until: edges.at(-1)! },
});

async function summariesOf(
  tx: Tx,
  bought: Bought,
): Promise<Pick<CustomerAnalytics, "summary" | "otherCurrencies">> {
  const { currency } = bought;
  const counts = await countCustomers(tx, bought);
  const lost = await lostOf(
    tx,
    bought,
    counts.map((row) => row.currency),
  );
  const summaryIn = (row: CustomerCounts) => toSummary(row, lost.get(row.currency) ?? 0n);
  const asked = counts.find((row) => row.currency === currency) ?? { ...NOBODY, currency };
  const others = counts.filter((row) => row.currency !== currency && row.customers > 0);
  return {
    summary: summaryIn(asked),
    otherCurrencies: others.map((row) => ({ currency: row.currency, ...summaryIn(row) })),
  };
}

/** What refunds and disputes took until the end, by currency. */
async function lostOf(
  tx: Tx,
  { sellerId, until }: Bought,
  currencies: string[],
): Promise<Map<string, bigint>> {
  const edges = [FIRST_MOMENT, until];
  const sums = await sumSpan(tx, { sellerId, scope: "all", currencies, edges, by: "month" }, [
    "refunds",
    "disputes",
  ]);
  return new Map(sums.map(({ currency, refunds, disputes }) => [currency, refunds + disputes]));
}

const NOBODY = { ever: 0, customers: 0, new: 0, repeat: 0, gross: "0", grossEver: "0" };

/** `lostMinor`: what refunds and disputes took of all that these customers ever paid. */
function toSummary(row: CustomerCounts, lostMinor: bigint): CustomerAnalytics["summary"] {
  return {
    totalCustomers: row.customers,
    newCustomers: row.new,
    returningCustomers: row.customers - row.new,
    repeatPurchaseRate: rateOf(BigInt(row.repeat), BigInt(row.customers)),
    avgRevenuePerCustomer: perCustomer(BigInt(row.gross), row.customers, row.currency),
    lifetimeValue: perCustomer(BigInt(row.grossEver) - lostMinor, row.ever, row.currency),
  };
}

const perCustomer = (minor: bigint, customers: number, currency: string): number =>
  toDecimalSum(customers === 0 ? 0n : roundHalfUp(minor, BigInt(customers)), currency);

/** Each customer once in each row; new in that of their first purchase. */
async function timelineOf(
  tx: Tx,
  bought: Bought,
  { dates, edges }: Span,
): Promise<CustomerAnalytics["timeline"]> {
  const buyers = await countBuyers(tx, bought, edges.slice(0, -1));
  const byBucket = new Map(buyers.map((row) => [row.bucket, row]));
  return dates.map((date, at) => {
    const row = byBucket.get(at + 1);
    return { date, newCustomers: row?.new ?? 0, returningCustomers: row?.returning ?? 0 };
  });
}

async function topOf(tx: Tx, bought: Bought): Promise<CustomerAnalytics["topCustomers"]> {
  const rows = await listCustomers(tx, bought, { by: "spent", limit: TOP_CUSTOMERS });
  return rows.map((row) => toCustomer(row, bought.currency));
}

export const toCustomer = (
  row: CustomerRow,
  currency: string,
): CustomerAnalytics["topCustomers"][number] => ({
  id: toUserId(row.id),
  name: row.name,
  purchases: row.purchases,
  totalSpent: toDecimalSum(BigInt(row.spent), currency),
  firstPurchaseAt: row.firstAt.toISOString(),
  lastPurchaseAt: row.lastAt.toISOString(),
});

/** A row for each month, and in it a number for each month from that one to the last. */
async function cohortsOf(
  tx: Tx,
  bought: Bought,
  { dates, edges }: Span,
): Promise<CustomerAnalytics["cohorts"]> {
  const retained = await countRetained(tx, bought, edges.slice(0, -1));
  const byPair = new Map(retained.map(({ first, bucket, customers }) => [`${first} ${bucket}`, customers]));
  const later = (from: number) =>
    dates.slice(from).map((_date, at) => byPair.get(`${from + 1} ${from + at + 1}`) ?? 0);
  return dates.map((date, at) => {
    const numbers = later(at);
    return { month: date.slice(0, "2026-06".length), size: numbers[0]!, retained: numbers };
  });
}
