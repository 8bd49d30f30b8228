import type { Stats } from "@stoa/contract";
import type { Context } from "../context.ts";
import { type Counts, countEverything } from "./queries.ts";

const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((total, count) => total + count, 0);

export async function readStats(ctx: Context): Promise<Stats> {
  const counts = await countEverything(ctx.db);
  const by = (what: Counts["what"]) =>
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
