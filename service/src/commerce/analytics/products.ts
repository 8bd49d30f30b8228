import type { ProductAnalytics } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { toDecimalSum } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { inPipelinedSnapshot, waitForAll } from "../../platform/db/pipeline.ts";
import type { FileResponse } from "../../platform/http/route.ts";
import { type Breakdown, breakDownByProduct } from "./breakdown.ts";
import { csvFile, csvLines } from "./csv.ts";
import { type DateRange, type DateRangeQuery, parseDateRange } from "./date-range.ts";
import { isAuthor, sumViews } from "./queries.ts";
import type { Sums } from "./range-sums-queries.ts";
import {
  averageOrderValue,
  chooseCurrency,
  readTimeline,
  readTotals,
  type SalesScope,
  toRate,
  ZERO_SUMS,
} from "./sales.ts";

const TOP_PRODUCTS = 10;

type Query = DateRangeQuery & { productId?: string | undefined };

export async function productAnalytics(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<ProductAnalytics> {
  const span = await parseDateRange(ctx, query);
  const subject = await salesScopeOf(ctx, caller, query.productId);
  return inPipelinedSnapshot(ctx.pool, async (tx) => {
    const { currency, currencies } = await chooseCurrency(ctx, tx, caller.userId, query.currency);
    const [totals, timeline, products] = await waitForAll([
      readTotals(tx, subject, currencies, span),
      readTimelineWithViews(tx, subject, currency, span),
      breakDownByProduct(tx, { ...subject, currency, span }, TOP_PRODUCTS),
    ]);
    const { startDate, endDate, timezone } = span;
    return {
      currency,
      startDate,
      endDate,
      timezone,
      summary: {
        ...toSummary(totals.get(currency) ?? ZERO_SUMS, currency),
        conversionRate: conversionRate(totals.values(), timeline),
      },
      timeline,
      topProducts: products.filter(isSold).map(toTopProduct),
      otherCurrencies: [...totals]
        .filter(([other]) => other !== currency)
        .map(([other, sums]) => ({ currency: other, ...toSummary(sums, other) })),
    };
  });
}

/** The caller must be the author of a requested product. */
export async function salesScopeOf(
  ctx: Context,
  { userId: sellerId }: Member,
  productId: string | undefined,
): Promise<SalesScope> {
  if (productId === undefined) return { sellerId };
  const id = toUuid("prod", productId);
  if (!id || !(await isAuthor(ctx.db, sellerId, id))) throw new ApiError("PRODUCT_NOT_FOUND");
  return { sellerId, productId: id };
}

function toSummary(sums: Sums, currency: string) {
  return {
    totalRevenue: toDecimalSum(sums.gross, currency),
    totalSales: Number(sums.sales),
    avgOrderValue: toDecimalSum(averageOrderValue(sums), currency),
    refunds: toDecimalSum(sums.refunds, currency),
  };
}

type Timeline = ProductAnalytics["timeline"];

async function readTimelineWithViews(
  tx: Tx,
  subject: SalesScope,
  currency: string,
  span: DateRange,
): Promise<Timeline> {
  const [sold, views] = await waitForAll([
    readTimeline(tx, subject, { currency, span, names: ["gross", "sales"] }),
    sumViews(tx, { ...subject, ...span }),
  ]);
  return span.dates.map((date, bucket) => {
    const { gross, sales } = required(sold[bucket], "the sums of a bucket");
    const revenue = toDecimalSum(gross, currency);
    return { date, revenue, sales: Number(sales), views: required(views[bucket], "the views of a bucket") };
  });
}

/** Views have no currency, so the rate counts sales in all currencies. */
function conversionRate(totals: Iterable<Sums>, timeline: Timeline): number {
  let sales = 0n;
  for (const sums of totals) sales += sums.sales;
  const views = timeline.reduce((sum, row) => sum + row.views, 0);
  return Math.min(1, toRate(sales, BigInt(views)));
}

const isSold = ({ sales }: Breakdown) => sales > 0n;

const toTopProduct = ({ key, label, currency, gross, sales }: Breakdown) => ({
  id: key,
  title: label,
  revenue: toDecimalSum(gross, currency),
  sales: Number(sales),
});

export async function exportProductAnalytics(
  ctx: Context,
  caller: Member,
  query: Query,
): Promise<FileResponse> {
  const { currency, timeline, ...span } = await productAnalytics(ctx, caller, query);
  const rows = timeline.map(({ date, revenue, sales, views }) => [date, currency, revenue, sales, views]);
  return csvFile("products", span, csvLines(["date", "currency", "revenue", "sales", "views"], rows));
}
