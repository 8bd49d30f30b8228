import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import type { Context } from "../../core/context.ts";
import { DAY_MS, daysAfter, toLongDate } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { lockQueues } from "./delivery-queries.ts";
import {
  deliveriesExhaustedEmail,
  endpointDisabledEmail,
  endpointFailingEmail,
  endpointGoneEmail,
} from "./emails.ts";
import { updateEndpoint } from "./endpoint-queries.ts";
import {
  type FailingEndpoint,
  findEnabledEndpointAt,
  findFailingEndpoint,
  listEndpointsWithExhaustedDeliveries,
  listFailingEndpoints,
  resetExhaustedCount,
} from "./health-queries.ts";
import { endPendingDeliveries } from "./pending-delivery-queries.ts";

/** On day 5 the endpoint is disabled. */
const EMAIL_DAYS = [1, 3];
const DISABLE_DAY = 5;
/** With fewer deliveries, bad luck is likely. */
const MIN_EXHAUSTED_DELIVERIES = 10;

/** The endpoint answered 410. Runs in the transaction that records the answer. */
export async function disableGoneEndpoint(
  ctx: Context,
  tx: Tx,
  endpointId: string,
  url: string,
): Promise<void> {
  const endpoint = await findEnabledEndpointAt(tx, endpointId, url);
  if (endpoint) await disableEndpoint(ctx, tx, endpoint, "gone");
}

/**
 * Emails the owners of failing endpoints and disables endpoints that fail for five days. Locks make each step happen
 * once.
 */
export async function checkFailingEndpoints(ctx: Context): Promise<void> {
  const since = daysAfter(ctx.now(), -firstOf(EMAIL_DAYS));
  await forEachRow(
    await listFailingEndpoints(ctx.db, since),
    ({ id }) => ctx.db.transaction().execute((tx) => checkEndpoint(ctx, tx, id)),
    ({ id }, err) =>
      ctx.log.error(
        { endpoint: id, err },
        "a webhook endpoint could not be checked; the next job run tries again",
      ),
  );
  await reportExhaustedDeliveries(ctx);
}

/** At most one email a day for each endpoint. */
async function reportExhaustedDeliveries(ctx: Context): Promise<void> {
  const emailedBefore = daysAfter(ctx.now(), -1);
  const report = (id: string) =>
    ctx.db.transaction().execute(async (tx) => {
      await lockQueues(tx, [id]);
      const found = await resetExhaustedCount(tx, id, emailedBefore, ctx.now());
      if (found)
        await notifyAccount(
          ctx,
          tx,
          {
            ...aboutEndpoint(ctx, { ...found, id }),
            kind: "webhook.deliveries_failed",
            data: { url: found.url, count: String(found.count) },
          },
          deliveriesExhaustedEmail(found),
        );
    });
  await forEachRow(
    await listEndpointsWithExhaustedDeliveries(ctx.db, emailedBefore),
    ({ id }) => report(id),
    ({ id }, err) =>
      ctx.log.error(
        { endpoint: id, err },
        "exhausted deliveries could not be reported by email; the next job run tries again",
      ),
  );
}

async function checkEndpoint(ctx: Context, tx: Tx, id: string): Promise<void> {
  await lockQueues(tx, [id]);
  const endpoint = await findFailingEndpoint(tx, id);
  if (!endpoint) return;
  const days = (ctx.now().getTime() - endpoint.failingSince.getTime()) / DAY_MS;
  if (days >= DISABLE_DAY && endpoint.failedDeliveries >= MIN_EXHAUSTED_DELIVERIES) {
    await disableEndpoint(ctx, tx, endpoint, "failing");
    return;
  }
  const day = EMAIL_DAYS.findLast((one) => days >= one);
  if (day === undefined || endpoint.emailedDay >= day) return;
  await updateEndpoint(tx, id, { emailedDay: day, updatedAt: ctx.now() });
  const { url, failingSince } = endpoint;
  await notifyAccount(
    ctx,
    tx,
    {
      ...aboutEndpoint(ctx, endpoint),
      kind: "webhook.failing",
      data: { url, since: toLongDate(failingSince) },
    },
    endpointFailingEmail(endpoint),
  );
}

/** Skips pending deliveries, so that they can be recovered. The caller holds the lock of the queue. */
async function disableEndpoint(
  ctx: Context,
  tx: Tx,
  endpoint: Pick<FailingEndpoint, "id" | "userId" | "url">,
  reason: "gone" | "failing",
): Promise<void> {
  await updateEndpoint(tx, endpoint.id, { disabledBy: reason, updatedAt: ctx.now() });
  await endPendingDeliveries(tx, endpoint.id, "skipped", ctx.now());
  await notifyAccount(
    ctx,
    tx,
    { ...aboutEndpoint(ctx, endpoint), kind: "webhook.disabled", data: { url: endpoint.url, reason } },
    reason === "gone" ? endpointGoneEmail(endpoint) : endpointDisabledEmail(endpoint),
  );
}

/** Locks make each step happen once, so each is a notification of its own. */
const aboutEndpoint = (ctx: Context, { id, userId }: Pick<FailingEndpoint, "id" | "userId">) => ({
  userId,
  subjectId: toId("whk", id),
  occurrence: ctx.newId(),
});
