import type { AnalyticsFunnel } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { inPipelinedSnapshot, waitForAll } from "../../platform/db/pipeline.ts";
import { type DateRangeQuery, parseDateRange, rangeBounds } from "./date-range.ts";
import { countPurchases } from "./funnel-queries.ts";
import { salesScopeOf } from "./products.ts";
import { sumViews } from "./queries.ts";
import { toRate } from "./sales.ts";

type Query = Omit<DateRangeQuery, "interval" | "currency"> & { productId?: string | undefined };

export async function analyticsFunnel(ctx: Context, caller: Member, query: Query): Promise<AnalyticsFunnel> {
  const span = await parseDateRange(ctx, { ...query, interval: "month" });
  const subject = await salesScopeOf(ctx, caller, query.productId);
  return inPipelinedSnapshot(ctx.pool, async (tx) => {
    const [from, until] = rangeBounds(span);
    const [viewsByMonth, { purchases, ran, refunded, runs }] = await waitForAll([
      sumViews(tx, { ...subject, ...span }),
      countPurchases(tx, { ...subject, from, until }),
    ]);
    const views = viewsByMonth.reduce((sum, count) => sum + count, 0);
    const { startDate, endDate, timezone } = span;
    return {
      ...{ startDate, endDate, timezone, views, purchases, ran, refunded, runs },
      viewsToPurchases: Math.min(1, shareOf(purchases, views)),
      purchasesToRan: shareOf(ran, purchases),
      purchasesToRefunded: shareOf(refunded, purchases),
    };
  });
}

const shareOf = (part: number, whole: number) => toRate(BigInt(part), BigInt(whole));
