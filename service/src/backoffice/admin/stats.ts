import type { Stats } from "@stoa/contract";
import { type DateRangeQuery, parseDateRange, rangeBounds } from "../../commerce/analytics/date-range.ts";
import { readMarketSales } from "../../commerce/analytics/market.ts";
import { toRate } from "../../commerce/analytics/sales.ts";
import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { inPipelinedSnapshot } from "../../platform/db/pipeline.ts";
import {
  type CountRow,
  countAll,
  countFunnel,
  countRuns,
  listProviderUse,
  type TimeRange,
} from "./stats-queries.ts";

type Query = Pick<DateRangeQuery, "period" | "startDate" | "endDate">;

/** Current numbers, and those of a range of UTC days. */
export async function readStats(ctx: Context, query: Query): Promise<Stats> {
  const span = await parseDateRange(ctx, { ...query, interval: "month", timezone: "UTC" });
  const days = { startDate: span.startDate, endDate: span.endDate };
  const [from, until] = rangeBounds(span);
  return inPipelinedSnapshot(ctx.pool, async (tx) => ({
    ...(await countNow(tx)),
    days,
    currencies: await readMarketSales(tx, { from, until }),
    funnel: await readFunnel(tx, { from, until }, days),
    runs: await readRuns(tx, { from, until }),
    providers: await listProviderUse(tx, { from, until }),
  }));
}

const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((total, count) => total + count, 0);

async function countNow(tx: Tx): Promise<Pick<Stats, "users" | "products" | "orders">> {
  const counts = await countAll(tx);
  const by = (what: CountRow["what"]) =>
    Object.fromEntries(counts.filter((row) => row.what === what).map(({ name, count }) => [name, count]));
  const [byRole, products, orders] = [by("role"), by("product"), by("order")];
  return {
    users: {
      total: sum(byRole),
      byRole,
      byPlan: by("plan"),
      banned: sum(by("banned")),
      closed: sum(by("closed")),
    },
    products: { total: sum(products), byStatus: products },
    orders: { total: sum(orders), byStatus: orders },
  };
}

async function readFunnel(tx: Tx, time: TimeRange, days: Stats["days"]): Promise<Stats["funnel"]> {
  const { views, orders, paid } = await countFunnel(tx, time, days);
  return {
    ...{ views, orders, paid },
    viewsToOrders: Math.min(1, toRate(BigInt(orders), BigInt(views))),
    ordersToPaid: toRate(BigInt(paid), BigInt(orders)),
  };
}

async function readRuns(tx: Tx, time: TimeRange): Promise<Stats["runs"]> {
  const runs = await countRuns(tx, time);
  const byStatus: Record<string, number> = {};
  for (const { status, count } of runs) byStatus[status] = (byStatus[status] ?? 0) + count;
  const failures = runs.flatMap(({ code, count }) => (code === null ? [] : [{ code, count }]));
  return { total: sum(byStatus), byStatus, failures };
}
