import type { RevenueAnalytics, RevenueGroup } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toDecimalSum } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { FileResponse } from "../../platform/http/route.ts";
import { type Breakdown, breakdownsBy } from "./breakdown.ts";
import { csvAnswer, csvLines } from "./csv.ts";
import { sumFunds } from "./funds-queries.ts";
import { atOneMoment, averageOf, currenciesOf, NOTHING, rateOf, timelineOf, totalsOf } from "./sales.ts";
import { type SpanQuery, spanOf } from "./span.ts";
import type { Sums } from "./span-sums-queries.ts";

type Query = SpanQuery & { groupBy: RevenueGroup };

/** What the caller earned, and what of it went where. */
export async function revenueAnalytics(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<RevenueAnalytics> {
  const span = await spanOf(ctx, query);
  const subject = { sellerId: caller.userId };
  return atOneMoment(ctx, async (tx) => {
    const { currency, currencies } = await currenciesOf(ctx, tx, caller.userId, query.currency);
    const totals = await totalsOf(tx, subject, currencies, span);
    const funds = await fundsOf(ctx, tx, caller.userId);
    const timeline = await timelineOf(tx, subject, { currency, span, names: TOLD });
    const summaryOf = (of: string) => ({ ...toSummary(totals.get(of) ?? NOTHING, of), ...funds(of) });
    const groups = await breakdownsBy[query.groupBy](tx, { ...subject, currency, span }, totals);
    const { startDate, endDate, timezone } = span;
    return {
      ...{ currency, startDate, endDate, timezone },
      summary: summaryOf(currency),
      timeline: timeline.map((sums, bucket) => ({ date: span.dates[bucket]!, ...toRow(sums, currency) })),
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
    avgOrderValue: amount(averageOf(sums)),
    refundRate: rateOf(sums.refunds, sums.gross),
  };
}

/** What somebody has, and had, of each currency. */
async function fundsOf(ctx: Context, tx: Tx, userId: string) {
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

/** What a row of the timeline tells. */
const TOLD = ["gross", "refunds", "disputes", "fees", "commissions", "net", "sales"] as const;

function toRow(sums: Pick<Sums, (typeof TOLD)[number]>, currency: string) {
  const amount = (minor: bigint) => toDecimalSum(minor, currency);
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

/** The timeline as a file: neither balances nor groups are read for it. */
export async function exportRevenueAnalytics(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<FileResponse> {
  const span = await spanOf(ctx, query);
  const sellerId = caller.userId;
  const { currency, timeline } = await atOneMoment(ctx, async (tx) => {
    const { currency } = await currenciesOf(ctx, tx, sellerId, query.currency);
    return { currency, timeline: await timelineOf(tx, { sellerId }, { currency, span, names: TOLD }) };
  });
  const rows = timeline.map((sums, bucket) => {
    const row = toRow(sums, currency);
    return [span.dates[bucket]!, currency, ...COLUMNS.map((name) => row[name])];
  });
  return csvAnswer("revenue", span, csvLines(["date", "currency", ...COLUMNS], rows));
}
