import { api } from "@stoa/contract";
import { route } from "../../platform/http/route.ts";
import { customerAnalytics } from "./customers.ts";
import { exportCustomers } from "./customers-export.ts";
import { listFigureEntries } from "./entries.ts";
import { analyticsFunnel } from "./funnel.ts";
import { exportProductAnalytics, productAnalytics } from "./products.ts";
import { exportRevenueAnalytics, revenueAnalytics } from "./revenue.ts";

export const analyticsRoutes = [
  route(api.analytics.products, (ctx, caller, { query }) => productAnalytics(ctx, caller, query)),
  route(api.analytics.exportProducts, (ctx, caller, { query }) => exportProductAnalytics(ctx, caller, query)),
  route(api.analytics.revenue, (ctx, caller, { query }) => revenueAnalytics(ctx, caller, query)),
  route(api.analytics.exportRevenue, (ctx, caller, { query }) => exportRevenueAnalytics(ctx, caller, query)),
  route(api.analytics.customers, (ctx, caller, { query }) => customerAnalytics(ctx, caller, query)),
  route(api.analytics.exportCustomers, (ctx, caller, { query }) => exportCustomers(ctx, caller, query)),
  route(api.analytics.funnel, (ctx, caller, { query }) => analyticsFunnel(ctx, caller, query)),
  route(api.analytics.entries, (ctx, caller, { query }) => listFigureEntries(ctx, caller, query)),
];
