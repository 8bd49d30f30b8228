import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency, Timestamp } from "../core/envelope.ts";
import { asked, Day, readsAnalytics, SignedAmount, span } from "./analytics.ts";

const summary = {
  totalCustomers: z.int().min(0).describe("Who bought something, each counted once"),
  newCustomers: z.int().min(0).describe("Those of them whose first purchase of you it was"),
  returningCustomers: z.int().min(0).describe("The others"),
  repeatPurchaseRate: z
    .number()
    .min(0)
    .max(1)
    .describe(
      "The part of them with two purchases or more up to endDate, those of before startDate included",
    ),
  avgRevenuePerCustomer: Amount.describe("Gross revenue ÷ totalCustomers"),
  lifetimeValue: SignedAmount.describe(
    "What all who ever bought by endDate have paid, less refunds and disputes, ÷ how many they are",
  ),
};

export const CustomerAnalytics = z
  .object({
    ...asked,
    currency: Currency.describe(
      "Of everything here but otherCurrencies: who bought in two is a customer in each",
    ),
    summary: z.object(summary),
    timeline: z
      .array(z.object({ date: Day, newCustomers: z.int().min(0), returningCustomers: z.int().min(0) }))
      .describe("Who bought, each counted once a row"),
    topCustomers: z
      .array(
        z.object({
          id: z.string(),
          name: z.string(),
          purchases: z.int().min(1),
          totalSpent: Amount.describe("Less tax, before refunds"),
          firstPurchaseAt: Timestamp.describe("Their first ever of you"),
          lastPurchaseAt: Timestamp.describe("Their last by endDate"),
        }),
      )
      .describe("The ten who spent most in these days"),
    cohorts: z
      .array(
        z.object({
          month: z.string().regex(/^\d{4}-\d{2}$/),
          size: z.int().min(0).describe("Whose first purchase of you was in that month"),
          retained: z
            .array(z.int().min(0))
            .describe("How many of them bought in that month, the next one, and so on, to that of endDate"),
        }),
      )
      .describe(
        "Every month of these days, of which the first and the last may be cut: who first bought before startDate is in none",
      ),
    otherCurrencies: z
      .array(z.object({ currency: Currency, ...summary }))
      .describe("The same of every other currency in which somebody bought in these days"),
  })
  .meta({ id: "CustomerAnalytics" });

export type CustomerAnalytics = z.input<typeof CustomerAnalytics>;

export const customers = endpoint({
  name: "analytics.customers",
  method: "GET",
  path: "/analytics/customers",
  summary: "Who bought of you, how often, and how many come back",
  description: "Counts paid purchases, free copies and those that were refunded later too. It is exact.",
  access: readsAnalytics,
  query: z.strictObject(span),
  data: CustomerAnalytics,
});

export const exportCustomers = endpoint({
  name: "analytics.exportCustomers",
  method: "GET",
  path: "/analytics/customers/export",
  summary: "Everybody who bought of you in these days, as CSV",
  description:
    "A row for each customer in one currency, oldest account first. Text that a spreadsheet would take for a formula begins with an apostrophe.",
  access: readsAnalytics,
  query: z.strictObject(span),
  data: z.string(),
  answersFile: ["text/csv"],
});
