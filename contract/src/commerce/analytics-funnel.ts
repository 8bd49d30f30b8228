import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { asked, ofProduct, readsAnalytics, span } from "./analytics.ts";

const { currency: _currency, ...askedDays } = asked;
const { currency: _requested, interval: _interval, ...days } = span;

const count = z.int().min(0);
const share = z.number().min(0).max(1);

export const AnalyticsFunnel = z
  .object({
    ...askedDays,
    views: count.describe("Viewers by product and day, for the UTC days with these dates"),
    purchases: count.describe("Sales of these days in every currency, with free copies"),
    ran: count.describe("Those of the purchases whose buyer has run the product since"),
    refunded: count.describe(
      "Those of the purchases that were refunded or lost in a dispute since, at least in part",
    ),
    runs: count.describe("Runs of your products by others that began in these days"),
    viewsToPurchases: share.describe("purchases ÷ views, four decimals, at most 1; 0 without views"),
    purchasesToRan: share.describe("ran ÷ purchases, four decimals; 0 without purchases"),
    purchasesToRefunded: share.describe("refunded ÷ purchases, four decimals; 0 without purchases"),
  })
  .meta({ id: "AnalyticsFunnel" });

export type AnalyticsFunnel = z.input<typeof AnalyticsFunnel>;

export const funnel = endpoint({
  name: "analytics.funnel",
  method: "GET",
  path: "/analytics/funnel",
  summary: "Count views, purchases, runs and refunds",
  description:
    "What became of the purchases of these days until now. Counts are exact and have no currency. docs/guides/analytics.md has the formulas.",
  access: readsAnalytics,
  query: z.strictObject({ ...days, ...ofProduct }),
  response: one(AnalyticsFunnel),
  errors: ["PRODUCT_NOT_FOUND"],
});
