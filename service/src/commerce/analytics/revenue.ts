import type { RevenueAnalytics, RevenueGroup } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { type MinorUnits, toDecimalSum } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { inPipelinedSnapshot, waitForAll } from "../../platform/db/pipeline.ts";
import type { FileResponse } from "../../platform/http/route.ts";
import { type Breakdown, breakdownsBy } from "./breakdown.ts";
import { csvFile, csvLines } from "./csv.ts";
import { type DateRangeQuery, parseDateRange } from "./date-range.ts";
import { sumFunds } from "./funds-queries.ts";
import { salesScopeOf } from "./products.ts";
import type { Sums } from "./range-sums-queries.ts";
import { averageOrderValue, chooseCurrency, readTimeline, readTotals, toRate, ZERO_SUMS } from "./sales.ts";

type Query = DateRangeQuery & { groupBy: RevenueGroup; productId?: string | undefined };

export async function revenueAnalytics(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<RevenueAnalytics> {
  const span = await parseDateRange(ctx, query);
  const subject = await salesScopeOf(ctx, caller, query.productId);
  return inPipelinedSnapshot(ctx.pool, async (tx) => {
    const { currency, currencies } = await chooseCurrency(ctx, tx, caller.userId, query.currency);
    const readingTotals = readTotals(tx, subject, currencies, span);
    const [totals, funds, timeline, groups] = await waitForAll([
      readingTotals,
      readFunds(ctx, tx, caller.userId),
      readTimeline(tx, subject, { currency, span, names: TIMELINE_SUMS }),
      breakdownsBy[query.groupBy](tx, { ...subject, currency, span }, readingTotals),
    ]);
    const summaryOf = (of: string) => ({ ...toSummary(totals.get(of) ?? ZERO_SUMS, of), ...funds(of) });
    const { startDate, endDate, timezone } = span;
    return {
      currency,
      startDate,
      endDate,
      timezone,
      summary: summaryOf(currency),
      timeline: timeline.map((sums, bucket) => ({
        date: required(span.dates[bucket], "the date of a bucket"),
        ...toRow(sums, currency),
      })),
      breakdown: groups.map(toGroup),
      otherCurrencies: [...totals.keys()]
        .filter((other) => other !== currency)
        .map((other) => ({ currency: other, ...summaryOf(other) })),
    };
  });
}

function toSummary(sums: Sums, currency: string) {
  const amount = (minor: bigint) => toDecimalSum(minor, currency);
  return {
    grossRevenue: amount(sums.gross),
    discounts: amount(sums.discounts),
    tax: amount(sums.tax),
    refunds: amount(sums.refunds),
    disputes: amount(sums.disputes),
    platformFees: amount(sums.fees),
    referralCommissions: amount(sums.commissions),
    netRevenue: amount(sums.net),
    sales: Number(sums.sales),
    avgOrderValue: amount(averageOrderValue(sums)),
    refundRate: toRate(sums.refunds, sums.gross),
  };
}

async function readFunds(ctx: Context, tx: Tx, userId: string) {
  const funds = await sumFunds(tx, userId, ctx.now());
  const byCurrency = new Map(funds.map(({ currency, ...sums }) => [currency, sums]));
  return (currency: string) => {
    const { booked, pending, reserved, paidOut } = byCurrency.get(currency) ?? NO_FUNDS;
    return {
      pendingBalance: toDecimalSum(BigInt(pending), currency),
      availableBalance: toDecimalSum(BigInt(booked) - BigInt(pending) - BigInt(reserved), currency),
      paidOut: toDecimalSum(BigInt(paidOut), currency),
    };
  };
}
const NO_FUNDS = { booked: 0, pending: 0, reserved: 0, paidOut: 0 };

const TIMELINE_SUMS = ["gross", "refunds", "disputes", "fees", "commissions", "net", "sales"] as const;

function toRow(sums: Record<(typeof TIMELINE_SUMS)[number], MinorUnits>, currency: string) {
  const amount = (minor: MinorUnits) => toDecimalSum(minor, currency);
  return {
    grossRevenue: amount(sums.gross),
    refunds: amount(sums.refunds),
    disputes: amount(sums.disputes),
    fees: amount(sums.fees),
    commissions: amount(sums.commissions),
    netRevenue: amount(sums.net),
    sales: Number(sums.sales),
  };
}

const toGroup = ({ key, label, currency, gross, net, sales }: Breakdown) => ({
  key,
  label,
  grossRevenue: toDecimalSum(gross, currency),
  netRevenue: toDecimalSum(net, currency),
  sales: Number(sales),
});

const COLUMNS = [
  "grossRevenue",
  "refunds",
  "disputes",
  "fees",
  "commissions",
  "netRevenue",
  "sales",
] as const;

export async function exportRevenueAnalytics(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<FileResponse> {
  const span = await parseDateRange(ctx, query);
  const subject = await salesScopeOf(ctx, caller, query.productId);
  const { currency, timeline } = await inPipelinedSnapshot(ctx.pool, async (tx) => {
    const { currency } = await chooseCurrency(ctx, tx, caller.userId, query.currency);
    return {
      currency,
      timeline: await readTimeline(tx, subject, { currency, span, names: TIMELINE_SUMS }),
    };
  });
  const rows = timeline.map((sums, bucket) => {
    const row = toRow(sums, currency);
    return [
      required(span.dates[bucket], "the date of a bucket"),
      currency,
      ...COLUMNS.map((name) => row[name]),
    ];
  });
  return csvFile("revenue", span, csvLines(["date", "currency", ...COLUMNS], rows));
}
