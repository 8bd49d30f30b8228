import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Amount, Currency, Timestamp } from "../core/envelope.ts";
import { asked, Day, readsAnalytics, SignedAmount, span } from "./analytics.ts";

const summary = {
  totalCustomers: z.int().min(0).describe("Accounts with a purchase, each counted once"),
  newCustomers: z.int().min(0).describe("Those with their first purchase of yours"),
  returningCustomers: z.int().min(0).describe("The others"),
  repeatPurchaseRate: z
    .number()
    .min(0)
    .max(1)
    .describe("The share of them with two or more purchases up to endDate, also before startDate"),
  avgRevenuePerCustomer: Amount.describe("Gross revenue ÷ totalCustomers"),
  lifetimeValue: SignedAmount.describe(
    "The revenue of all buyers up to endDate without refunds and disputes, ÷ their number",
  ),
};

export const CustomerAnalytics = z
  .object({
    ...asked,
    currency: Currency.describe(
      "The currency of everything except otherCurrencies: a buyer in two currencies is a customer in each",
    ),
    summary: z.object(summary),
    timeline: z
      .array(z.object({ date: Day, newCustomers: z.int().min(0), returningCustomers: z.int().min(0) }))
      .describe("Customers, each counted once in a row"),
    topCustomers: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          purchases: z.int().min(1),
          totalSpent: Amount.describe("Without tax, before refunds"),
          firstPurchaseAt: Timestamp.describe("Their first purchase of yours"),
          lastPurchaseAt: Timestamp.describe("Their last by endDate"),
        }),
      )
      .describe("The ten who spent most in these days"),
    cohorts: z
      .array(
        z.object({
          month: z.string().regex(/^\d{4}-\d{2}$/),
          size: z.int().min(0).describe("Customers with their first purchase in that month"),
          retained: z
            .array(z.int().min(0))
            .describe(
              "How many of them bought in that month, in the next one, and so on, until the month of endDate",
            ),
        }),
      )
      .describe(
        "Each month of these days; the first and the last may be cut. A customer with a first purchase before startDate is in none",
      ),
    otherCurrencies: z
      .array(z.object({ currency: Currency, ...summary }))
      .describe("The same for each other currency with a purchase in these days"),
  })
  .meta({ id: "CustomerAnalytics" });

export type CustomerAnalytics = z.input<typeof CustomerAnalytics>;

export const customers = endpoint({
  name: "analytics.customers",
  method: "GET",
  path: "/analytics/customers",
  summary: "Count your customers, new and returning",
  description: "Counts paid purchases, also free copies and those refunded later. It is exact.",
  access: readsAnalytics,
  query: z.strictObject(span),
  response: one(CustomerAnalytics),
});

export const exportCustomers = endpoint({
  name: "analytics.exportCustomers",
  method: "GET",
  path: "/analytics/customers/export",
  summary: "Export all your customers of these days as CSV",
  description:
    "A row for each customer in one currency, oldest account first. Text that a spreadsheet would read as a formula begins with an apostrophe.",
  access: readsAnalytics,
  query: z.strictObject(span),
  response: { kind: "file", types: ["text/csv"] },
});
