import { api } from "@stoa/contract";
import { resumableRoute, route } from "../../platform/http/route.ts";
import {
  listOwnDeliveries,
  readBoundDelivery,
  readDelivery,
  retryDelivery,
  sendTestEvent,
} from "./deliveries.ts";
import {
  createEndpoint,
  deleteOwnEndpoint,
  listAllEndpointsForAdmin,
  listOwnEndpoints,
  readEndpoint,
  updateOwnEndpoint,
} from "./endpoints.ts";
import { readRecovery, startRecovery } from "./recoveries.ts";
import { rotateWebhookSecret } from "./secret-rotation.ts";
import { readStats } from "./stats.ts";

export const webhookRoutes = [
  route(api.webhooks.list, (ctx, caller, { query }) => listOwnEndpoints(ctx, caller, query)),
  route(api.webhooks.create, (ctx, caller, { body }, { source }) =>
    createEndpoint(ctx, caller, body, source),
  ),
  route(api.webhooks.get, (ctx, caller, { params }) => readEndpoint(ctx, caller, params.webhookId)),
  route(api.webhooks.update, (ctx, caller, { params, body }, facts) =>
    updateOwnEndpoint(ctx, caller, params.webhookId, body, facts),
  ),
  route(api.webhooks.delete, (ctx, caller, { params }, { source }) =>
    deleteOwnEndpoint(ctx, caller, params.webhookId, source),
  ),
  route(api.webhooks.rotateSecret, (ctx, caller, { params, body }, { source }) =>
    rotateWebhookSecret(ctx, caller, params.webhookId, body, source),
  ),
  resumableRoute(
    api.webhooks.test,
    (ctx, caller, { params }) => sendTestEvent(ctx, caller, params.webhookId),
    readBoundDelivery,
  ),
  route(api.webhooks.deliveries, (ctx, caller, { params, query }) =>
    listOwnDeliveries(ctx, caller, params.webhookId, query),
  ),
  route(api.webhooks.stats, (ctx, caller, { params, query }) =>
    readStats(ctx, caller, params.webhookId, query.days),
  ),
  resumableRoute(
    api.webhooks.recover,
    (ctx, caller, { params, body }) => startRecovery(ctx, caller, params.webhookId, body),
    (ctx, caller, recoveryId, { params }) => readRecovery(ctx, caller, { ...params, recoveryId }),
  ),
  route(api.webhooks.recovery, (ctx, caller, { params }) => readRecovery(ctx, caller, params)),
  route(api.webhooks.egress, async (ctx) => ({ addresses: ctx.config.egressAddresses })),
  route(api.admin.webhooks.list, (ctx, _caller, { query }) => listAllEndpointsForAdmin(ctx, query)),
  route(api.deliveries.get, (ctx, caller, { params }) => readDelivery(ctx, caller, params.deliveryId)),
  resumableRoute(
    api.deliveries.retry,
    (ctx, caller, { params }) => retryDelivery(ctx, caller, params.deliveryId),
    readBoundDelivery,
  ),
];
