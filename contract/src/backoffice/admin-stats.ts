import { z } from "zod";
import { Day, SignedAmount, span } from "../commerce/analytics.ts";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency } from "../core/envelope.ts";

const count = z.int().min(0);
const rate = z.number().min(0).max(1);

const sold = {
  sales: count.describe("Paid orders, free copies too"),
  grossRevenue: Amount.describe("Charged, less tax"),
  platformFees: SignedAmount.describe("The marketplace's, less what it gave back"),
  netRevenue: SignedAmount.describe("The sellers', less what they gave back"),
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
      .describe("What all that follows is counted in; what stands above is as it is now"),
    currencies: z
      .array(
        z.object({
          currency: Currency,
          ...sold,
          discounts: Amount,
          tax: SignedAmount,
          refunds: Amount.describe("Less tax"),
          disputes: SignedAmount.describe(
            "Held or taken by banks and what that cost, less tax; won ones turn it",
          ),
          referralCommissions: SignedAmount,
          topSellers: z
            .array(z.object({ id: z.string(), name: z.string(), ...sold }))
            .describe("The ten with the highest gross revenue"),
        }),
      )
      .describe("Each in which money moved"),
    funnel: z
      .object({
        views: count.describe("Unique viewers of each product on each day"),
        orders: count.describe("Orders made"),
        paid: count.describe("Those of them that were completed, whatever came after"),
        viewsToOrders: rate.describe("At most 1: an order by the API needs no view"),
        ordersToPaid: rate,
      })
      .describe("From a look to a purchase"),
    runs: z
      .object({
        total: count,
        byStatus: z.record(z.string(), count),
        failures: z.array(z.object({ code: z.string(), count })).describe("Failed ones, most frequent first"),
      })
      .describe("Of prompts and workflows, begun in these days"),
    providers: z
      .array(
        z.object({
          provider: z.string(),
          calls: count.describe(
            "Prompts, and steps of workflows, that asked it; each once, however often repeated",
          ),
          failed: count,
          promptTokens: count,
          completionTokens: count,
          cost: z.number().min(0).describe("USD, as far as prices are known"),
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
  description: "Days are those of UTC.",
  access: { who: "admin" },
  query: z.strictObject({ period: span.period, startDate: span.startDate, endDate: span.endDate }),
  data: Stats,
});
