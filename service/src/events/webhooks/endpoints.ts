import type {
  AdminWebhookEndpoint,
  CreateWebhookEndpoint,
  NewWebhookEndpoint,
  UpdateWebhookEndpoint,
  WebhookEndpoint,
} from "@stoa/contract";
import { lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { EMPTY_PAGE, mapPage, type Paging } from "../../platform/db/paging.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { mustBeFresh } from "../../platform/http/fresh-sign-in.ts";
import type { RequestInfo } from "../../platform/http/route.ts";
import { EVENT_RETENTION_DAYS } from "../feed/events.ts";
import { lockQueues, unblockQueue } from "./delivery-queries.ts";
import { endpointCreatedEmail, endpointUrlChangedEmail } from "./emails.ts";
import {
  countEndpoints,
  deleteEndpointsDeletedBefore,
  type EndpointFilter,
  type EndpointForAdmin,
  type EndpointRow,
  type EndpointValues,
  findAnyEndpoint,
  findEndpoint,
  insertEndpoint,
  listAllEndpoints,
  listEndpointIds,
  listEndpoints,
  updateEndpoint,
} from "./endpoint-queries.ts";
import { normalizeEndpointUrl } from "./endpoint-url.ts";
import { cancelUnsubscribedDeliveries, endPendingDeliveries } from "./pending-delivery-queries.ts";
import { recordSecretChange, type SecretChange } from "./secret-changes.ts";
import { deleteSecrets } from "./secret-queries.ts";
import { createSecret } from "./secrets.ts";

const MAX_ENDPOINTS = 20;

export async function listOwnEndpoints(ctx: Context, caller: Member, paging: Paging) {
  return mapPage(await listEndpoints(ctx.db, caller.userId, paging), toEndpoint);
}

interface AdminQuery extends Omit<EndpointFilter, "ownerId"> {
  owner?: string | undefined;
}

/** An id of the wrong form has no endpoints. */
export async function listAllEndpointsForAdmin(ctx: Context, { owner, ...query }: AdminQuery) {
  const ownerId = owner === undefined ? undefined : toUuid("usr", owner);
  if (ownerId === null) return EMPTY_PAGE;
  return mapPage(await listAllEndpoints(ctx.db, { ...query, ownerId }), toAdminEndpoint);
}

export async function readEndpoint(ctx: Context, caller: Member, webhookId: string) {
  return toEndpoint(await mustFindEndpoint(ctx, caller, webhookId));
}

export async function mustFindEndpoint(
  ctx: Context,
  caller: Member,
  webhookId: string,
): Promise<EndpointRow> {
  const id = toUuid("whk", webhookId);
  const endpoint = id ? await findEndpoint(ctx.db, caller.userId, id) : undefined;
  if (!endpoint) throw new ApiError("WEBHOOK_NOT_FOUND");
  return endpoint;
}

/** Locks the queue of the endpoint: no attempt starts and none is recorded until the transaction ends. */
export async function lockEndpoint(
  tx: Tx,
  caller: Pick<Member, "userId">,
  webhookId: string,
): Promise<EndpointRow> {
  const id = toUuid("whk", webhookId);
  if (id) await lockQueues(tx, [id]);
  const endpoint = id ? await findEndpoint(tx, caller.userId, id) : undefined;
  if (!endpoint) throw new ApiError("WEBHOOK_NOT_FOUND");
  return endpoint;
}

/** Callback endpoints included; undefined: it was deleted. */
export async function lockAnyEndpoint(
  tx: Tx,
  { userId }: Pick<Member, "userId">,
  id: string,
): Promise<EndpointRow | undefined> {
  await lockQueues(tx, [id]);
  return findAnyEndpoint(tx, userId, id);
}

export function mustBeEnabled(endpoint: EndpointRow | undefined): void {
  if (endpoint === undefined)
    throw new ApiError("INVALID_STATE", "The endpoint was deleted, so it receives nothing any more.", {
      current: "removed",
    });
  if (endpoint.disabledBy === null) return;
  throw new ApiError("INVALID_STATE", "The endpoint is disabled: enable it first.", {
    current: "disabled",
  });
}

export async function createEndpoint(
  ctx: Context,
  caller: Member,
  input: CreateWebhookEndpoint,
  source: RequestSource,
): Promise<NewWebhookEndpoint> {
  const url = normalizeEndpointUrl(ctx, input.url);
  const endpoint = { id: ctx.newId(), userId: caller.userId };
  const secret = await ctx.db.transaction().execute(async (tx) => {
    // Serialises parallel requests, so that each counts the others' endpoints.
    await lockAccount(tx, caller.userId);
    if ((await countEndpoints(tx, caller.userId)) >= MAX_ENDPOINTS)
      throw ruleViolation(
        "url",
        `would be endpoint ${MAX_ENDPOINTS + 1}; an account has at most ${MAX_ENDPOINTS}`,
      );
    const values = toEndpointValues({ ...input, url }) as EndpointValues;
    await insertEndpoint(tx, { ...values, id: endpoint.id, userId: caller.userId, createdAt: ctx.now() });
    await ctx.idempotencyKey?.bind(tx, toId("whk", endpoint.id));
    const change = toSecretChange("webhook.created", endpoint.id);
    await recordSecretChange(ctx, tx, caller, source, change, {
      data: { change: "created", url },
      message: endpointCreatedEmail(ctx, { url }),
    });
    return createSecret(ctx, tx, endpoint, ctx.now());
  });
  return {
    ...toEndpoint(required(await findEndpoint(ctx.db, caller.userId, endpoint.id), "the endpoint")),
    secret,
  };
}

/** Without the URL, which may name a person: the audit log outlives the account. */
const toSecretChange = (action: SecretChange["action"], id: string): SecretChange => ({
  action,
  target: { type: "webhook", id: toId("whk", id) },
});

/** Failures from before the endpoint was enabled do not count. */
const HEALTHY = { failingSince: null, failedDeliveries: 0, emailedDay: 0 };

/** Applies to pending deliveries, too: the next attempt uses the new URL. */
export async function updateOwnEndpoint(
  ctx: Context,
  caller: Member,
  webhookId: string,
  input: UpdateWebhookEndpoint,
  { ifMatch, source }: Pick<RequestInfo, "ifMatch" | "source">,
) {
  const change = input.url === undefined ? input : { ...input, url: normalizeEndpointUrl(ctx, input.url) };
  await ctx.db.transaction().execute(async (tx) => {
    const before = await lockEndpoint(tx, caller, webhookId);
    mustMatch(ifMatch, etagOf(toEndpoint(before)));
    const isEnabledAgain = change.enabled === true && before.disabledBy !== null;
    await updateEndpoint(tx, before.id, {
      ...toEndpointValues(change, before),
      ...(isEnabledAgain && HEALTHY),
      updatedAt: ctx.now(),
    });
    if (change.url !== undefined && change.url !== before.url) {
      // Like a new endpoint, a new URL keeps receiving events when the session has ended.
      mustBeFresh(ctx, caller);
      await unblockQueue(tx, before.id);
      const move = { from: before.url, url: change.url };
      const moved = toSecretChange("webhook.moved", before.id);
      await recordSecretChange(ctx, tx, caller, source, moved, {
        data: { change: "moved", url: move.url },
        message: endpointUrlChangedEmail(ctx, move),
      });
    }
    if (change.eventTypes) await cancelUnsubscribedDeliveries(tx, before.id, change.eventTypes, ctx.now());
    if (change.enabled === false) await endPendingDeliveries(tx, before.id, "skipped", ctx.now());
  });
  return readEndpoint(ctx, caller, webhookId);
}

export async function deleteOwnEndpoint(
  ctx: Context,
  caller: Member,
  webhookId: string,
  source: RequestSource,
) {
  await ctx.db.transaction().execute(async (tx) => {
    const { id } = await lockEndpoint(tx, caller, webhookId);
    await markEndpointDeleted(ctx, tx, id);
    await recordSecretChange(ctx, tx, caller, source, toSecretChange("webhook.removed", id));
  });
  return { id: webhookId, deleted: true as const };
}

/** The log stays until it is old, the secrets do not. The caller holds the lock of the queue. */
export async function markEndpointDeleted(ctx: Context, tx: Tx, id: string): Promise<void> {
  const now = ctx.now();
  await updateEndpoint(tx, id, { deletedAt: now, updatedAt: now });
  await endPendingDeliveries(tx, id, "canceled", now);
  await deleteSecrets(tx, id);
}

/** After the last delivery has left the log. */
export const purgeDeletedEndpoints = (ctx: Context) =>
  deleteEndpointsDeletedBefore(ctx.db, daysAfter(ctx.now(), -EVENT_RETENTION_DAYS));

/** An endpoint that was disabled for another reason keeps that reason until its owner enables it. */
function toEndpointValues(input: UpdateWebhookEndpoint, before?: EndpointRow): Partial<EndpointValues> {
  return {
    ...(input.url !== undefined && { url: input.url }),
    ...(input.description !== undefined && { description: input.description }),
    ...(input.eventTypes !== undefined && { eventTypes: input.eventTypes }),
    ...(input.signatureContent !== undefined && { signatureContent: input.signatureContent }),
    ...(input.signaturePrefix !== undefined && { signaturePrefix: input.signaturePrefix }),
    ...(input.enabled !== undefined && {
      disabledBy: input.enabled ? null : (before?.disabledBy ?? "owner"),
    }),
  };
}

const toEndpoint = (row: EndpointRow): WebhookEndpoint => ({
  id: toId("whk", row.id),
  url: row.url,
  description: row.description,
  eventTypes: row.eventTypes as WebhookEndpoint["eventTypes"],
  enabled: row.disabledBy === null,
  disabledReason: row.disabledBy,
  signatureContent: row.signatureContent,
  signaturePrefix: row.signaturePrefix,
  createdAt: row.createdAt.toISOString(),
});

const toAdminEndpoint = (row: EndpointForAdmin): AdminWebhookEndpoint => ({
  ...toEndpoint(row),
  owner: { id: toUserId(row.userId), name: row.ownerName },
  failingSince: row.failingSince?.toISOString() ?? null,
  failedDeliveries: row.failedDeliveries,
});

/** For a ban, in its transaction: as if all endpoints were disabled until the ban is lifted. */
export async function skipDeliveriesOfUser(ctx: Context, tx: Tx, userId: string): Promise<void> {
  const ids = await listEndpointIds(tx, userId);
  await lockQueues(tx, ids);
  for (const id of ids) {
    await updateEndpoint(tx, id, { ...HEALTHY, updatedAt: ctx.now() });
    await endPendingDeliveries(tx, id, "skipped", ctx.now());
  }
}
