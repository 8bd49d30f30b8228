import { z } from "zod";
import { endpoint, listOf } from "../core/endpoint.ts";
import { Currency, paging, Timestamp } from "../core/envelope.ts";
import { ofProduct, readsAnalytics, SignedAmount, span } from "./analytics.ts";

const { interval: _interval, ...days } = span;

/** Sums of /analytics/revenue that are sums of ledger entries. */
const ledgerFigures = [
  "grossRevenue",
  "refunds",
  "disputes",
  "tax",
  "platformFees",
  "referralCommissions",
  "netRevenue",
] as const;

export const AnalyticsEntry = z
  .object({
    transactionId: z.string().describe("The ledger transaction; its other entries belong to other sums"),
    kind: z.enum(["sale", "refund", "dispute_opened", "dispute_won", "dispute_lost"]),
    account: z
      .enum(["seller", "referrer", "platform_revenue", "tax_payable"])
      .describe("The account of the ledger: docs/guides/money.md"),
    amount: SignedAmount.describe(
      "What the entry adds to the sum. The ledger has the opposite sign if the sum is refunds or disputes",
    ),
    currency: Currency,
    occurredAt: Timestamp,
    orderId: z.string(),
    product: z.object({ id: z.string(), title: z.string().describe("As it was sold") }),
  })
  .meta({ id: "AnalyticsEntry" });

export type AnalyticsEntry = z.input<typeof AnalyticsEntry>;
export type LedgerFigure = (typeof ledgerFigures)[number];

export const entries = endpoint({
  name: "analytics.entries",
  method: "GET",
  path: "/analytics/entries",
  summary: "List the ledger entries behind a sum, newest first",
  description:
    "The entries of the ledger that add up to a sum of GET /analytics/revenue for the same days, time zone and currency. `meta.sum` adds all of them, on every page.",
  access: readsAnalytics,
  query: z.strictObject({
    ...paging,
    ...days,
    ...ofProduct,
    figure: z.enum(ledgerFigures).default("netRevenue").describe("The sum, by its name in the summary"),
  }),
  response: listOf(AnalyticsEntry),
  errors: ["PRODUCT_NOT_FOUND"],
});
