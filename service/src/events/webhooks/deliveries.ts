import type { DeliveryAttempt, DeliveryStatus, WebhookDelivery, WebhookDeliveryDetail } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { publishEvent, readEventBody } from "../outbox/outbox.ts";
import {
  type AttemptRow,
  type DeliveryRow,
  findDelivery,
  listAttempts,
  listDeliveries,
  makeDueNow,
} from "./delivery-log-queries.ts";
import { insertDelivery, wakeQueues } from "./delivery-queries.ts";
import { lockAnyEndpoint, lockEndpoint, mustBeEnabled, mustFindEndpoint } from "./endpoints.ts";

const deliveryInFlight = () =>
  new ApiError("INVALID_STATE", "An attempt of this delivery is running: read its result, then try again.", {
    current: "in_flight",
  });

const notFound = () => new ApiError("DELIVERY_NOT_FOUND");

export async function listOwnDeliveries(
  ctx: Context,
  caller: Member,
  webhookId: string,
  query: Paging & {
    status?: DeliveryStatus | undefined;
    eventId?: string | undefined;
    before?: string | undefined;
    eventType?: string | undefined;
    responseStatus?: string | undefined;
    from?: string | undefined;
    to?: string | undefined;
  },
) {
  const endpoint = await mustFindEndpoint(ctx, caller, webhookId);
  const eventId = query.eventId === undefined ? undefined : toUuid("evt", query.eventId);
  const before = query.before === undefined ? undefined : toUuid("dlv", query.before);
  const filter = {
    ...query,
    eventId,
    before,
    responseStatuses: toStatusRange(query.responseStatus),
    from: toDate(query.from),
    to: toDate(query.to),
  };
  return mapPage(await listDeliveries(ctx.db, endpoint.id, filter), toDelivery);
}

const toDate = (iso: string | undefined) => (iso === undefined ? undefined : new Date(iso));

/** `5xx` is 500 to 599. */
function toStatusRange(text: string | undefined): readonly [number, number] | "none" | undefined {
  if (text === undefined || text === "none") return text;
  return [Number(text.replace("xx", "00")), Number(text.replace("xx", "99"))];
}

/** The log of a deleted endpoint stays readable until it is 30 days old. */
export async function readDelivery(
  ctx: Context,
  caller: Member,
  deliveryId: string,
): Promise<WebhookDeliveryDetail> {
  const delivery = await mustFindDelivery(ctx, caller, deliveryId);
  const attempts = await listAttempts(ctx.db, delivery.id);
  const body = readEventBody(ctx, delivery);
  return { ...toDelivery(delivery), attempts: attempts.map((attempt) => toAttempt(attempt, body)) };
}

async function mustFindDelivery(ctx: Context, caller: Member, deliveryId: string): Promise<DeliveryRow> {
  const id = toUuid("dlv", deliveryId);
  const delivery = id ? await findDelivery(ctx.db, caller.userId, id) : undefined;
  if (!delivery) throw notFound();
  return delivery;
}

/** Ignores Retry-After. The schedule resumes where it was. */
export async function retryDelivery(
  ctx: Context,
  caller: Member,
  deliveryId: string,
): Promise<WebhookDelivery> {
  const { id, endpointId } = await mustFindDelivery(ctx, caller, deliveryId);
  await ctx.db.transaction().execute(async (tx) => {
    mustBeEnabled(await lockAnyEndpoint(tx, caller, endpointId));
    await ctx.idempotencyKey?.bind(tx, toId("dlv", id));
    if (!(await makeDueNow(tx, id, ctx.now()))) throw deliveryInFlight();
    await wakeQueues(tx, [endpointId], ctx.now(), { isUrgent: true });
  });
  return toDelivery(required(await findDelivery(ctx.db, caller.userId, id), "the delivery"));
}

/** For a request that repeats an Idempotency-Key. */
export const readBoundDelivery = async (ctx: Context, caller: Member, deliveryId: string) =>
  toDelivery(await mustFindDelivery(ctx, caller, deliveryId));

/** Ignores Retry-After. */
export async function sendTestEvent(ctx: Context, caller: Member, webhookId: string) {
  const deliveryId = ctx.newId();
  await ctx.db.transaction().execute(async (tx) => {
    const endpoint = await lockEndpoint(tx, caller, webhookId);
    mustBeEnabled(endpoint);
    const eventId = await publishEvent(ctx, tx, [caller.userId], "test", { message: "Hello from Stoa" });
    const delivery = { id: deliveryId, eventId, endpointId: endpoint.id };
    await ctx.idempotencyKey?.bind(tx, toId("dlv", deliveryId));
    await insertDelivery(tx, delivery, ctx.now(), { isUrgent: true });
  });
  return new DataResponse(
    toDelivery(required(await findDelivery(ctx.db, caller.userId, deliveryId), "the delivery")),
    {
      status: 201,
    },
  );
}

const toDelivery = (row: DeliveryRow): WebhookDelivery => ({
  id: toId("dlv", row.id),
  endpointId: toId("whk", row.endpointId),
  eventId: toId("evt", row.eventId),
  eventType: row.eventType,
  status: row.status,
  attempt: row.attempts,
  lastAttempt: toLastAttempt(row),
  nextAttemptAt: row.dueAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString(),
  endedAt: row.endedAt?.toISOString() ?? null,
});

const toLastAttempt = (row: DeliveryRow): WebhookDelivery["lastAttempt"] =>
  row.attemptedAt && {
    at: row.attemptedAt.toISOString(),
    durationMs: row.durationMs ?? 0,
    responseStatus: row.responseStatus,
    errorCode: row.error,
  };

const toAttempt = (row: AttemptRow, body: string): DeliveryAttempt => ({
  n: row.n,
  at: row.startedAt.toISOString(),
  durationMs: row.durationMs,
  request: { url: row.url, headers: row.requestHeaders, body },
  response:
    row.status === null
      ? null
      : { status: row.status, headers: row.responseHeaders ?? {}, body: row.responseBody ?? "" },
  error: row.error === null ? null : { code: row.error, message: toErrorMessage(row.error, row.status) },
  late: row.isLate,
});

const ERROR_MESSAGES: Record<string, string> = {
  blocked_address: "The address is private, or this marketplace does not allow it.",
  timeout: "The endpoint did not send a complete response within 15 seconds.",
  dns: "The host name has no address.",
  connection: "The connection failed or broke.",
  tls: "The TLS certificate or connection is not valid.",
  invalid_response: "The response is not valid HTTP, or its headers are too large.",
  secret_unreadable: "The marketplace cannot open the endpoint's secret: rotate it.",
  worker_lost: "Several workers stopped during this attempt.",
};

function toErrorMessage(error: string, status: number | null): string {
  if (error !== "status") return ERROR_MESSAGES[error] ?? error;
  if (status !== null && status >= 300 && status < 400)
    return `The response was ${status}: redirects are not followed.`;
  return `The response was ${status}; any 2xx accepts a delivery.`;
}
