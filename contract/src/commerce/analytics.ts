import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, QueryCurrency } from "../core/envelope.ts";

/** Earlier, there were no sales, and time zones had offsets other than quarter hours. */
const FIRST_YEAR = 1980;
const LAST_YEAR = 2999;

const LocalDate = z.iso.date().refine((date) => {
  const year = Number(date.slice(0, 4));
  return FIRST_YEAR <= year && year <= LAST_YEAR;
}, `must be a date of the years ${FIRST_YEAR} to ${LAST_YEAR}`);

/** Range and currency of every analytics endpoint and export. */
export const span = {
  period: z
    .enum(["day", "week", "month", "year"])
    .default("month")
    .describe("If startDate is absent, it is 1, 7, 30 or 365 days before endDate"),
  startDate: LocalDate.optional().describe("The first day. At most five years before the last"),
  endDate: LocalDate.optional().describe("The last day, included; default: today"),
  interval: z
    .enum(["day", "week", "month"])
    .default("day")
    .describe(
      "The length of a row of the timeline. Weeks begin on Monday; the period may cut the first and the last row",
    ),
  timezone: z
    .string()
    .max(64)
    .default("UTC")
    .describe(
      "The time zone of the days: an IANA name such as America/New_York. Views are always counted by UTC days",
    ),
  currency: QueryCurrency.optional().describe("Default: the currency of most of your sales"),
};

/** Access for sellers and their keys. */
export const readsAnalytics = {
  who: "member",
  permission: "analytics:read",
  rolePermission: "read:analytics",
} as const;

export const Day = z.iso.date().describe("The first day of the row");
/** Corrections can make a sum negative. */
export const SignedAmount = z
  .number()
  .describe("In the unit of the currency, with its decimals; may be negative");

const sales = z.int().describe("Sales, with free copies");
const rate = z.number().min(0);

const productsSummary = {
  totalRevenue: Amount.describe("Charged amounts without tax, also if refunded later"),
  totalSales: sales,
  avgOrderValue: Amount.describe("totalRevenue ÷ totalSales, rounded half up; 0 without sales"),
  refunds: Amount.describe("Refunds without tax, whenever the sale was"),
};

/** The parameters as used, in every answer. */
export const asked = {
  currency: Currency.describe("The currency of all amounts except those in otherCurrencies"),
  startDate: z.iso.date(),
  endDate: z.iso.date(),
  timezone: z.string(),
};

export const ProductAnalytics = z
  .object({
    ...asked,
    summary: z.object({
      ...productsSummary,
      conversionRate: rate
        .max(1)
        .describe("Sales in every currency ÷ viewers, four decimals, at most 1; 0 without viewers"),
    }),
    timeline: z.array(
      z.object({
        date: Day,
        revenue: Amount,
        sales,
        views: z.int().describe("Viewers by product and day, for the UTC days with these dates"),
      }),
    ),
    topProducts: z
      .array(z.object({ id: z.string(), title: z.string(), revenue: Amount, sales }))
      .describe("The ten with the most revenue"),
    otherCurrencies: z.array(z.object({ currency: Currency, ...productsSummary })),
  })
  .meta({ id: "ProductAnalytics" });

const revenueSummary = {
  grossRevenue: Amount.describe("Charged amounts without tax, on the day of the sale"),
  discounts: Amount.describe("Discounts by codes"),
  tax: SignedAmount.describe("Taxes of sales, without refunded taxes"),
  refunds: Amount.describe("Refunds without tax, on the day of the refund"),
  disputes: SignedAmount.describe(
    "Held or taken by banks, without tax, plus the cost of lost disputes; negative if more was won than opened",
  ),
  platformFees: SignedAmount.describe("The marketplace's fees, without refunded fees"),
  referralCommissions: SignedAmount.describe("Commissions of referrers, without refunded commissions"),
  netRevenue: SignedAmount.describe(
    "What your balance gained: grossRevenue without refunds, disputes, platformFees and referralCommissions",
  ),
  sales,
  avgOrderValue: Amount.describe("grossRevenue ÷ sales, rounded half up; 0 without sales"),
  refundRate: rate.describe("refunds ÷ grossRevenue, four decimals; 0 without revenue"),
  pendingBalance: SignedAmount.describe("As in GET /balance now, of all products"),
  availableBalance: SignedAmount.describe("As in GET /balance now, of all products"),
  paidOut: Amount.describe("The sum of all your completed payouts, of all products"),
};

const revenueGroups = ["product", "category", "referral", "currency"] as const;

export const RevenueAnalytics = z
  .object({
    ...asked,
    summary: z.object(revenueSummary),
    timeline: z.array(
      z.object({
        date: Day,
        grossRevenue: Amount,
        refunds: Amount,
        disputes: SignedAmount,
        fees: SignedAmount.describe("The marketplace's"),
        commissions: SignedAmount.describe("The referrers'"),
        netRevenue: SignedAmount,
        sales,
      }),
    ),
    breakdown: z
      .array(
        z.object({
          key: z
            .string()
            .describe("A product's id, a category's slug, a referral code or `direct`, or a currency"),
          label: z.string(),
          grossRevenue: Amount,
          netRevenue: SignedAmount,
          sales,
        }),
      )
      .describe(
        "The groups of groupBy, the most revenue first, at most a thousand. By currency each is in its own",
      ),
    otherCurrencies: z
      .array(z.object({ currency: Currency, ...revenueSummary }))
      .describe("The same for each other currency; amounts of two currencies are never added"),
  })
  .meta({ id: "RevenueAnalytics" });

export type ProductAnalytics = z.input<typeof ProductAnalytics>;
export type RevenueAnalytics = z.input<typeof RevenueAnalytics>;
export type RevenueGroup = (typeof revenueGroups)[number];

/** One product in place of all. */
export const ofProduct = { productId: filter(z.string().max(100), "Default: all your products") };

const ofProducts = z.strictObject({ ...span, ...ofProduct });
const ofRevenue = z.strictObject({
  ...span,
  ...ofProduct,
  groupBy: z.enum(revenueGroups).default("product"),
});

const EXACT =
  "Every number follows from the ledger at this very moment: what is sold is in the next answer. docs/guides/analytics.md has the formulas.";
const AS_CSV =
  "The timeline as CSV, with the same parameters: UTF-8, a line of names, amounts as decimals beside their currency. Text that a spreadsheet would run as a formula begins with an apostrophe.";

export const products = endpoint({
  name: "analytics.products",
  method: "GET",
  path: "/analytics/products",
  summary: "Read sales, revenue and views of your products",
  description: EXACT,
  access: readsAnalytics,
  query: ofProducts,
  response: one(ProductAnalytics),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const exportProducts = endpoint({
  name: "analytics.exportProducts",
  method: "GET",
  path: "/analytics/products/export",
  summary: "Export the sales of your products by day",
  description: AS_CSV,
  access: readsAnalytics,
  query: ofProducts,
  response: { kind: "file", types: ["text/csv"] },
  errors: ["PRODUCT_NOT_FOUND"],
});

export const revenue = endpoint({
  name: "analytics.revenue",
  method: "GET",
  path: "/analytics/revenue",
  summary: "Read your revenue and its parts",
  description: EXACT,
  access: readsAnalytics,
  query: ofRevenue,
  response: one(RevenueAnalytics),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const exportRevenue = endpoint({
  name: "analytics.exportRevenue",
  method: "GET",
  path: "/analytics/revenue/export",
  summary: "Export your revenue by day",
  description: AS_CSV,
  access: readsAnalytics,
  query: ofRevenue,
  response: { kind: "file", types: ["text/csv"] },
  errors: ["PRODUCT_NOT_FOUND"],
});
