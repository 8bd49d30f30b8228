import type { DeliveryStatus, WebhookStats } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { mustFindEndpoint } from "./endpoints.ts";
import { countDeliveriesByStatus, findFailingSince, readDurationPercentiles } from "./stats-queries.ts";

export async function readStats(
  ctx: Context,
  caller: Member,
  webhookId: string,
  days: number,
): Promise<WebhookStats> {
  const { id } = await mustFindEndpoint(ctx, caller, webhookId);
  const since = daysAfter(ctx.now(), -days);
  const counts = await countDeliveriesByStatus(ctx.db, id, since);
  const of = (status: DeliveryStatus) => counts.get(status) ?? 0;
  const attempted = of("succeeded") + of("failed");
  return {
    since: since.toISOString(),
    deliveries: {
      pending: of("pending"),
      retrying: of("retrying"),
      succeeded: of("succeeded"),
      failed: of("failed"),
      skipped: of("skipped"),
      canceled: of("canceled"),
    },
    successRate: attempted === 0 ? null : Number((of("succeeded") / attempted).toFixed(4)),
    durationMs: await readDurationPercentiles(ctx.db, id),
    failingSince: (await findFailingSince(ctx.db, id))?.toISOString() ?? null,
  };
}
