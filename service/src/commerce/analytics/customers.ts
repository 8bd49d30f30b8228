import type { CustomerAnalytics } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member } from "../../core/context.ts";
import { roundHalfUp, toDecimalSum } from "../../core/money/amount.ts";
import { firstOf, lastOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { inPipelinedSnapshot } from "../../platform/db/pipeline.ts";
import {
  type Buyers,
  type CustomerCounts,
  type CustomerRow,
  type CustomerScope,
  countBuyers,
  type Retained,
  readCustomers,
} from "./customers-queries.ts";
import { type DateRange, type DateRangeQuery, parseDateRange } from "./date-range.ts";
import { grainOfTotals, sumRange } from "./range-sums-queries.ts";
import { chooseCurrency, toRate } from "./sales.ts";

const TOP_CUSTOMERS = 10;
const FIRST_MOMENT = new Date(0);

export async function customerAnalytics(
  ctx: Context,
  { userId }: Member,
  query: DateRangeQuery,
): Promise<CustomerAnalytics> {
  const span = await parseDateRange(ctx, query);
  const months = await parseDateRange(ctx, { ...query, ...span, interval: "month" });
  return inPipelinedSnapshot(ctx.pool, async (tx) => {
    const { currency } = await chooseCurrency(ctx, tx, userId, query.currency);
    const bought = customerScope(span, userId, currency);
    const { startDate, endDate, timezone } = span;
    const { counts, retained, top } = await readCustomers(tx, bought, {
      beginnings: months.edges.slice(0, -1),
      top: TOP_CUSTOMERS,
    });
    return {
      currency,
      startDate,
      endDate,
      timezone,
      ...(await readSummaries(tx, bought, counts)),
      // The cohorts have the numbers of a timeline by month: the seller's orders are not read once more for it.
      timeline: toTimeline(
        span.interval === "month"
          ? buyersOf(retained)
          : await countBuyers(tx, bought, span.edges.slice(0, -1)),
        span,
      ),
      topCustomers: top.map((row) => toCustomer(row, currency)),
      cohorts: toCohorts(retained, months),
    };
  });
}

export const customerScope = ({ edges }: DateRange, sellerId: string, currency: string): CustomerScope => ({
  sellerId,
  currency,
  from: firstOf(edges),
  until: lastOf(edges),
});

async function readSummaries(
  tx: Tx,
  bought: CustomerScope,
  counts: CustomerCounts[],
): Promise<Pick<CustomerAnalytics, "summary" | "otherCurrencies">> {
  const { currency } = bought;
  const lost = await sumRefundsAndDisputes(
    tx,
    bought,
    counts.map((row) => row.currency),
  );
  const summaryIn = (row: CustomerCounts) => toSummary(row, lost.get(row.currency) ?? 0n);
  const requested = counts.find((row) => row.currency === currency) ?? { ...NO_CUSTOMERS, currency };
  const others = counts.filter((row) => row.currency !== currency && row.customers > 0);
  return {
    summary: summaryIn(requested),
    otherCurrencies: others.map((row) => ({ currency: row.currency, ...summaryIn(row) })),
  };
}

async function sumRefundsAndDisputes(
  tx: Tx,
  { sellerId, until }: CustomerScope,
  currencies: string[],
): Promise<Map<string, bigint>> {
  const edges = [FIRST_MOMENT, until];
  const query = { sellerId, scope: "all" as const, currencies, edges, by: grainOfTotals(edges) };
  const sums = await sumRange(tx, query, ["refunds", "disputes"]);
  return new Map(sums.map(({ currency, refunds, disputes }) => [currency, refunds + disputes]));
}

const NO_CUSTOMERS = { ever: 0, customers: 0, new: 0, repeat: 0, gross: "0", grossEver: "0" };

/** `lostMinor`: refunds and disputes of all payments up to the end of the range. */
function toSummary(row: CustomerCounts, lostMinor: bigint): CustomerAnalytics["summary"] {
  return {
    totalCustomers: row.customers,
    newCustomers: row.new,
    returningCustomers: row.customers - row.new,
    repeatPurchaseRate: toRate(BigInt(row.repeat), BigInt(row.customers)),
    avgRevenuePerCustomer: perCustomer(BigInt(row.gross), row.customers, row.currency),
    lifetimeValue: perCustomer(BigInt(row.grossEver) - lostMinor, row.ever, row.currency),
  };
}

const perCustomer = (minor: bigint, customers: number, currency: string): number =>
  toDecimalSum(customers === 0 ? 0n : roundHalfUp(minor, BigInt(customers)), currency);

/** New are the customers in their first bucket, all others have bought before. */
function buyersOf(retained: Retained[]): Buyers[] {
  const byBucket = new Map<number, Buyers>();
  for (const { first, bucket, customers } of retained) {
    const row = byBucket.get(bucket) ?? { bucket, new: 0, returning: 0 };
    row[first === bucket ? "new" : "returning"] += customers;
    byBucket.set(bucket, row);
  }
  return [...byBucket.values()];
}

function toTimeline(buyers: Buyers[], { dates }: DateRange): CustomerAnalytics["timeline"] {
  const byBucket = new Map(buyers.map((row) => [row.bucket, row]));
  return dates.map((date, at) => {
    const row = byBucket.get(at + 1);
    return { date, newCustomers: row?.new ?? 0, returningCustomers: row?.returning ?? 0 };
  });
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

/** One row for each month, with one number for that month and each later one. */
function toCohorts(retained: Retained[], { dates }: DateRange): CustomerAnalytics["cohorts"] {
  const byPair = new Map(retained.map(({ first, bucket, customers }) => [`${first} ${bucket}`, customers]));
  const later = (from: number) =>
    dates.slice(from).map((_date, at) => byPair.get(`${from + 1} ${from + at + 1}`) ?? 0);
  return dates.map((date, at) => {
    const numbers = later(at);
    return { month: date.slice(0, "2026-06".length), size: firstOf(numbers), retained: numbers };
  });
}
