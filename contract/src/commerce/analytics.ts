import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency, filter, QueryCurrency } from "../core/envelope.ts";

/** Before it nobody sold, and the offsets of time zones were not whole quarters of an hour. */
const FIRST_YEAR = 1980;
const LAST_YEAR = 2999;

const LocalDate = z.iso.date().refine((date) => {
  const year = Number(date.slice(0, 4));
  return FIRST_YEAR <= year && year <= LAST_YEAR;
}, `must be a date of the years ${FIRST_YEAR} to ${LAST_YEAR}`);

/** Which days are asked about, and in what currency: of every endpoint of analytics, and of its export. */
export const span = {
  period: z
    .enum(["day", "week", "month", "year"])
    .default("month")
    .describe("How far startDate lies before endDate where it is absent: 1, 7, 30 or 365 days"),
  startDate: LocalDate.optional().describe("The first day. At most five years before the last"),
  endDate: LocalDate.optional().describe("The last day, which counts too; today when absent"),
  interval: z
    .enum(["day", "week", "month"])
    .default("day")
    .describe(
      "What a row of the timeline spans: weeks begin on Monday; the first and the last may be cut by the days asked about",
    ),
  timezone: z
    .string()
    .max(64)
    .default("UTC")
    .describe(
      "Of the days: an IANA name such as America/New_York. Views are counted by days of UTC all the same",
    ),
  currency: QueryCurrency.optional().describe("When absent, that in which you have sold most often"),
};

/** Who sells, and what may read for them. */
export const readsAnalytics = {
  who: "member",
  permission: "analytics:read",
  rolePermission: "read:analytics",
} as const;

export const Day = z.iso.date().describe("The first day of what the row spans");
/** Of sums that corrections can turn. */
export const SignedAmount = z
  .number()
  .describe("In the currency's unit, with its own decimals; may be below zero");

const sales = z.int().describe("What was bought, free copies too");
const rate = z.number().min(0);

const productsSummary = {
  totalRevenue: Amount.describe("Charged, less tax, of what was later refunded too"),
  totalSales: sales,
  avgOrderValue: Amount.describe("totalRevenue ÷ totalSales, a half rounded up; 0 without sales"),
  refunds: Amount.describe("Given back, less tax, whenever it was bought"),
};

/** What all answers say of the question that they answer. */
export const asked = {
  currency: Currency.describe("Of all amounts but those under otherCurrencies"),
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
        views: z.int().describe("Viewers by product and day, of the days of UTC with these dates"),
      }),
    ),
    topProducts: z
      .array(z.object({ id: z.string(), title: z.string(), revenue: Amount, sales }))
      .describe("The ten with the most revenue"),
    otherCurrencies: z.array(z.object({ currency: Currency, ...productsSummary })),
  })
  .meta({ id: "ProductAnalytics" });

const revenueSummary = {
  grossRevenue: Amount.describe("Charged, less tax, on the day of the sale"),
  discounts: Amount.describe("What codes took off prices"),
  tax: SignedAmount.describe("Taken for the state, less what was given back of it"),
  refunds: Amount.describe("Given back, less tax, on the day when it was"),
  disputes: SignedAmount.describe(
    "Held or taken by banks, less tax, and what losing cost; below zero where more was won than opened",
  ),
  platformFees: SignedAmount.describe("Kept by the marketplace, less what was given back of it"),
  referralCommissions: SignedAmount.describe("Kept by referrers, less what was given back of it"),
  netRevenue: SignedAmount.describe(
    "What your balance gained: grossRevenue less refunds, disputes, platformFees and referralCommissions",
  ),
  sales,
  avgOrderValue: Amount.describe("grossRevenue ÷ sales, a half rounded up; 0 without sales"),
  refundRate: rate.describe("refunds ÷ grossRevenue, four decimals; 0 without revenue"),
  pendingBalance: SignedAmount.describe("As GET /balance says it now"),
  availableBalance: SignedAmount.describe("As GET /balance says it now"),
  paidOut: Amount.describe("All that payouts ever brought you"),
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
        fees: SignedAmount.describe("Of the marketplace"),
        commissions: SignedAmount.describe("Of referrers"),
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
        "What groupBy asks for, that with the most revenue first, at most a thousand. By currency each is in its own",
      ),
    otherCurrencies: z
      .array(z.object({ currency: Currency, ...revenueSummary }))
      .describe(
        "The same of every other currency in which something moved: amounts of two are never added up",
      ),
  })
  .meta({ id: "RevenueAnalytics" });

export type ProductAnalytics = z.input<typeof ProductAnalytics>;
export type RevenueAnalytics = z.input<typeof RevenueAnalytics>;
export type RevenueGroup = (typeof revenueGroups)[number];

const ofProducts = z.strictObject({
  ...span,
  productId: filter(z.string().max(100), "All of yours when absent"),
});
const ofRevenue = z.strictObject({ ...span, groupBy: z.enum(revenueGroups).default("product") });

const EXACT =
  "Every number follows from the books at this very moment: what is sold is in the next answer. docs/guides/analytics.md has the formulas.";
const AS_CSV =
  "The timeline as CSV, with the same parameters: UTF-8, a line of names, amounts as decimals beside their currency. Text that a spreadsheet would run as a formula begins with an apostrophe.";

export const products = endpoint({
  name: "analytics.products",
  method: "GET",
  path: "/analytics/products",
  summary: "Read what your products sold, and how often they were looked at",
  description: EXACT,
  access: readsAnalytics,
  query: ofProducts,
  data: ProductAnalytics,
  errors: ["PRODUCT_NOT_FOUND"],
});

export const exportProducts = endpoint({
  name: "analytics.exportProducts",
  method: "GET",
  path: "/analytics/products/export",
  summary: "Take out what your products sold by day",
  description: AS_CSV,
  access: readsAnalytics,
  query: ofProducts,
  data: z.string(),
  answersFile: ["text/csv"],
  errors: ["PRODUCT_NOT_FOUND"],
});

export const revenue = endpoint({
  name: "analytics.revenue",
  method: "GET",
  path: "/analytics/revenue",
  summary: "Read what you earned, and what of it went where",
  description: EXACT,
  access: readsAnalytics,
  query: ofRevenue,
  data: RevenueAnalytics,
});

export const exportRevenue = endpoint({
  name: "analytics.exportRevenue",
  method: "GET",
  path: "/analytics/revenue/export",
  summary: "Take out what you earned by day",
  description: AS_CSV,
  access: readsAnalytics,
  query: ofRevenue,
  data: z.string(),
  answersFile: ["text/csv"],
});
