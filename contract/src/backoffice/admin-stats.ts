import { z } from "zod";
import { Day, SignedAmount, span } from "../commerce/analytics.ts";
import { endpoint, one } from "../core/endpoint.ts";
import { Amount, Currency } from "../core/envelope.ts";

const count = z.int().min(0);
const rate = z.number().min(0).max(1);

const sold = {
  sales: count.describe("Paid orders, with free copies"),
  grossRevenue: Amount.describe("Charged amounts without tax"),
  platformFees: SignedAmount.describe("The marketplace's part, without what it gave back"),
  netRevenue: SignedAmount.describe("The sellers' part, without what they gave back"),
};

export const Stats = z
  .object({
    users: z.object({
      total: z.int().describe("Without closed accounts"),
      byRole: z.record(z.string(), z.int()),
      byPlan: z.record(z.string(), z.int()),
      banned: z.int(),
      closed: z.int(),
    }),
    products: z.object({ total: z.int(), byStatus: z.record(z.string(), z.int()) }),
    orders: z.object({ total: z.int(), byStatus: z.record(z.string(), z.int()) }),
    days: z
      .object({ startDate: Day, endDate: Day })
      .describe("The period of all following numbers; the numbers above are the present ones"),
    currencies: z
      .array(
        z.object({
          currency: Currency,
          ...sold,
          discounts: Amount,
          tax: SignedAmount,
          refunds: Amount.describe("Without tax"),
          disputes: SignedAmount.describe(
            "Amounts held or taken by banks and their cost, without tax; a won dispute reverses it",
          ),
          referralCommissions: SignedAmount,
          topSellers: z
            .array(z.object({ id: z.string(), name: z.string(), ...sold }))
            .describe("The ten with the highest gross revenue"),
        }),
      )
      .describe("Each currency in which money moved"),
    funnel: z
      .object({
        views: count.describe("Unique viewers of each product on each day"),
        orders: count.describe("Created orders"),
        paid: count.describe("Those that were completed, also if refunded later"),
        viewsToOrders: rate.describe("At most 1: an order by API needs no view"),
        ordersToPaid: rate,
      })
      .describe("From a view to a purchase"),
    runs: z
      .object({
        total: count,
        byStatus: z.record(z.string(), count),
        failures: z.array(z.object({ code: z.string(), count })).describe("Failed ones, most frequent first"),
      })
      .describe("Runs of prompts and workflows that began in these days"),
    providers: z
      .array(
        z.object({
          provider: z.string(),
          calls: count.describe("Prompt runs and workflow steps that called it, each counted once"),
          failed: count,
          promptTokens: count,
          completionTokens: count,
          cost: z.number().min(0).describe("USD, where prices are known"),
        }),
      )
      .describe("Most calls first"),
  })
  .meta({ id: "Stats" });

export type Stats = z.input<typeof Stats>;

export const stats = endpoint({
  name: "admin.stats.get",
  method: "GET",
  path: "/admin/stats",
  summary: "Count accounts, products, orders, money and runs",
  description: "Days are UTC days.",
  access: { who: "admin" },
  query: z.strictObject({ period: span.period, startDate: span.startDate, endDate: span.endDate }),
  response: one(Stats),
});
