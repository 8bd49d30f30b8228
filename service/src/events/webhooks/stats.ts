import type { DeliveryStatus, WebhookStats } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { mustFindEndpoint } from "./endpoints.ts";
import {
  countDeliveriesByStatus,
  countDeliveriesByTime,
  findFailingSince,
  readDurationPercentiles,
} from "./stats-queries.ts";

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
    timeline: await readTimeline(ctx, id, since),
    successRate: attempted === 0 ? null : Number((of("succeeded") / attempted).toFixed(4)),
    durationMs: await readDurationPercentiles(ctx.db, id),
    failingSince: (await findFailingSince(ctx.db, id))?.toISOString() ?? null,
  };
}

const PARTS = 48;

/** The same time as `since` up to now, in equal parts. */
async function readTimeline(
  ctx: Context,
  endpointId: string,
  since: Date,
): Promise<WebhookStats["timeline"]> {
  const partMs = (ctx.now().getTime() - since.getTime()) / PARTS;
  const timeline = Array.from({ length: PARTS }, (_, n) => ({
    at: new Date(since.getTime() + n * partMs).toISOString(),
    ...{ succeeded: 0, failed: 0, waiting: 0 },
  }));
  for (const { part, ...counts } of await countDeliveriesByTime(ctx.db, endpointId, since, partMs)) {
    // A delivery that was created after `now` was read belongs to the last part.
    const at = timeline[Math.min(part, PARTS - 1)];
    if (!at) continue;
    at.succeeded += counts.succeeded;
    at.failed += counts.failed;
    at.waiting += counts.waiting;
  }
  return timeline;
}
