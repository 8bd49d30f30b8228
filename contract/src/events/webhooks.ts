import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { filter, paging, queryNumber, Timestamp } from "../core/envelope.ts";
import { visibleText } from "../core/visible-text.ts";
import { type CallbackType, callbackTypes, type EventType, eventTypes } from "./events.ts";

export const deliveryStatuses = [
  "pending",
  "retrying",
  "succeeded",
  "failed",
  "skipped",
  "canceled",
] as const;

const id = z.string();
const types = eventTypes as [EventType, ...EventType[]];

const fields = {
  url: z
    .string()
    .max(2_048)
    .describe(
      "The URL for deliveries: https, a public address, without credentials; stored as a URL parser normalizes it",
    ),
  description: visibleText(200),
  eventTypes: z
    .array(z.enum(types))
    .min(1)
    .max(types.length)
    .refine((list) => new Set(list).size === list.length, "names a type twice")
    .nullable()
    .describe("The event types that it gets; null: all. A requested `test` event always comes"),
  enabled: z.boolean(),
  signatureContent: z
    .enum(["timestamp_body", "body"])
    .describe("What X-Service-Signature signs: the timestamp, a dot and the raw body, or only the raw body"),
  signaturePrefix: z.boolean().describe("Whether X-Service-Signature begins with `sha256=`"),
};

export const WebhookEndpoint = z
  .object({
    id,
    ...fields,
    eventTypes: z.array(z.enum(types)).nullable().describe("null: all"),
    disabledReason: z
      .enum(["owner", "gone", "failing"])
      .nullable()
      .describe(
        "Who disabled it: you, its response 410, or five days without a success; null: it is enabled",
      ),
    createdAt: Timestamp,
  })
  .meta({ id: "WebhookEndpoint" });

export const AdminWebhookEndpoint = WebhookEndpoint.extend({
  owner: z.object({ id, name: z.string() }),
  failingSince: Timestamp.nullable().describe("The first failed attempt since the last success"),
  failedDeliveries: z.int().min(0).describe("Deliveries given up since then"),
}).meta({ id: "AdminWebhookEndpoint", description: "A webhook endpoint as administrators see it." });

const secret = z.string().describe("`whsec_` and the base64 of 32 bytes, shown only in this response");
export const NewWebhookEndpoint = WebhookEndpoint.extend({ secret }).meta({ id: "NewWebhookEndpoint" });

export const CreateWebhookEndpoint = z
  .strictObject({
    ...fields,
    description: fields.description.default(""),
    eventTypes: fields.eventTypes.default(null),
    enabled: fields.enabled.default(true),
    signatureContent: fields.signatureContent.default("timestamp_body"),
    signaturePrefix: fields.signaturePrefix.default(false),
  })
  .meta({ id: "CreateWebhookEndpoint" });

export const UpdateWebhookEndpoint = z.strictObject(fields).partial().meta({ id: "UpdateWebhookEndpoint" });

export const RotateWebhookSecret = z
  .strictObject({
    activateAt: z.iso
      .datetime({ offset: true })
      .optional()
      .describe("From when the new secret signs, at most 7 days ahead; default: now"),
    overlapHours: z
      .number()
      .min(0)
      .max(7 * 24)
      .default(24)
      .describe("How long the old secret also signs from then on"),
  })
  .meta({ id: "RotateWebhookSecret" });

export const RotatedWebhookSecret = z
  .object({ id, secret, activatesAt: Timestamp, oldSecretUntil: Timestamp })
  .meta({ id: "RotatedWebhookSecret" });

export const DeliveryAttempt = z
  .object({
    n: z.int().min(1).describe("As in X-Service-Attempt"),
    at: Timestamp,
    durationMs: z.int().min(0),
    request: z.object({
      url: z.string(),
      headers: z.record(z.string(), z.string()),
      body: z.string().describe("The exact bytes"),
    }),
    response: z
      .object({
        status: z.int(),
        headers: z.record(z.string(), z.string()),
        body: z.string().describe("Its first 16 KiB, not decompressed"),
      })
      .nullable()
      .describe("null: no response"),
    error: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .describe("Why the attempt failed; null: it succeeded"),
    late: z
      .boolean()
      .describe(
        "Reported after the delivery was due again or another worker had taken it over: it had no effect",
      ),
  })
  .meta({ id: "DeliveryAttempt" });

const LastAttempt = z.object({
  at: Timestamp,
  durationMs: z.int().min(0),
  responseStatus: z.int().nullable().describe("null: no response"),
  errorCode: z
    .string()
    .nullable()
    .describe("Why the attempt failed, such as `status` or `timeout`; null: it succeeded"),
});

const Delivery = z.object({
  id,
  endpointId: id,
  eventId: id,
  eventType: z.enum([...eventTypes, ...callbackTypes] as [EventType | CallbackType, ...EventType[]]),
  status: z.enum(deliveryStatuses),
  attempt: z.int().min(0).describe("Number of attempts"),
  lastAttempt: LastAttempt.nullable().describe("null: none yet"),
  nextAttemptAt: Timestamp.nullable(),
  createdAt: Timestamp,
  endedAt: Timestamp.nullable(),
});
export const WebhookDelivery = Delivery.meta({ id: "WebhookDelivery" });
export const WebhookDeliveryDetail = Delivery.extend({ attempts: z.array(DeliveryAttempt) }).meta({
  id: "WebhookDeliveryDetail",
});

export const RecoverWebhook = z
  .strictObject({
    since: z.iso.datetime({ offset: true }).describe("At most 14 days ago"),
    until: z.iso.datetime({ offset: true }).optional().describe("Default: now"),
  })
  .meta({ id: "RecoverWebhook" });

export const WebhookRecovery = z
  .object({
    id,
    status: z.enum(["running", "completed"]),
    since: Timestamp,
    until: Timestamp,
    total: z.int().min(0).describe("Deliveries that are still failed or skipped, and those recovered"),
    recovered: z.int().min(0).describe("Of those, how many are due again"),
    createdAt: Timestamp,
    endedAt: Timestamp.nullable(),
  })
  .meta({ id: "WebhookRecovery" });

const count = z.int().min(0);
const duration = z.int().min(0).nullable().describe("In milliseconds; null: no attempt");
export const WebhookStats = z
  .object({
    since: Timestamp,
    deliveries: z.object({
      pending: count,
      retrying: count,
      succeeded: count,
      failed: count,
      skipped: count,
      canceled: count,
    }),
    timeline: z
      .array(
        z.object({
          at: Timestamp.describe("When this part begins"),
          succeeded: count,
          failed: count,
          waiting: count.describe("Pending or retrying"),
        }),
      )
      .describe("The same deliveries by the time of their creation, in 48 equal parts, oldest first"),
    successRate: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe("The share of successes among those that ended by an attempt; null: none did"),
    durationMs: z
      .object({ p50: duration, p95: duration })
      .describe("Of the attempts of the last 1000 deliveries"),
    failingSince: Timestamp.nullable().describe(
      "The first failed attempt since the last success; null: none",
    ),
  })
  .meta({ id: "WebhookStats" });

export type WebhookEndpoint = z.input<typeof WebhookEndpoint>;
export type AdminWebhookEndpoint = z.input<typeof AdminWebhookEndpoint>;
export type NewWebhookEndpoint = z.input<typeof NewWebhookEndpoint>;
export type CreateWebhookEndpoint = z.output<typeof CreateWebhookEndpoint>;
export type UpdateWebhookEndpoint = z.output<typeof UpdateWebhookEndpoint>;
export type RotateWebhookSecret = z.output<typeof RotateWebhookSecret>;
export type RotatedWebhookSecret = z.input<typeof RotatedWebhookSecret>;
export type DeliveryAttempt = z.input<typeof DeliveryAttempt>;
export type WebhookDelivery = z.input<typeof WebhookDelivery>;
export type WebhookDeliveryDetail = z.input<typeof WebhookDeliveryDetail>;
export type RecoverWebhook = z.output<typeof RecoverWebhook>;
export type WebhookRecovery = z.input<typeof WebhookRecovery>;
export type WebhookStats = z.input<typeof WebhookStats>;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

const access = { who: "member", permission: "webhooks:write" } as const;
const params = z.object({ webhookId: z.string() });
const tag = "webhooks";

export const list = endpoint({
  name: "webhooks.list",
  method: "GET",
  path: "/webhooks",
  summary: "List your webhook endpoints, newest first",
  access,
  query: z.strictObject(paging),
  response: listOf(WebhookEndpoint),
});

export const create = endpoint({
  name: "webhooks.create",
  method: "POST",
  path: "/webhooks",
  summary: "Register a webhook endpoint",
  description:
    "The response shows the secret once. An account can have 20 endpoints; the 21st is 422. The account's owner gets an email.",
  access,
  requiresFreshSignIn: true,
  request: json(CreateWebhookEndpoint, {
    url: "https://example.com/hooks",
    eventTypes: ["purchase.completed", "purchase.refunded"],
  }),
  response: created(NewWebhookEndpoint),
  showsSecret: true,
  errors: ["VALIDATION_ERROR"],
});

export const get = endpoint({
  name: "webhooks.get",
  method: "GET",
  path: "/webhooks/:webhookId",
  summary: "Read one webhook endpoint",
  access,
  params,
  response: one(WebhookEndpoint),
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const update = endpoint({
  name: "webhooks.update",
  method: "PATCH",
  path: "/webhooks/:webhookId",
  summary: "Change a webhook endpoint",
  description:
    "Only the fields that you send change, also for waiting deliveries. These go to the new URL; those of removed event types are canceled. While the endpoint is disabled, they are skipped; recover resends them. A session needs a sign-in of the last 15 minutes to change `url`.",
  access,
  params,
  request: json(UpdateWebhookEndpoint, { eventTypes: ["purchase.completed", "payout.completed"] }),
  response: one(WebhookEndpoint),
  supportsIfMatch: true,
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const deleteEndpoint = endpoint({
  name: "webhooks.delete",
  method: "DELETE",
  path: "/webhooks/:webhookId",
  summary: "Delete a webhook endpoint; its waiting deliveries are canceled",
  access,
  params,
  response: one(z.object({ id, deleted: z.literal(true) })),
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const rotateSecret = endpoint({
  name: "webhooks.rotateSecret",
  method: "POST",
  path: "/webhooks/:webhookId/rotate-secret",
  summary: "Create a new secret",
  description:
    "The response shows it once. Until activateAt only the old secret signs. Then the new one signs X-Service-Signature. For overlapHours the old one signs X-Service-Signature-Previous, and webhook-signature has both. It replaces a rotation that has not started; at most 10 secrets sign at once. The account's owner gets an email.",
  access,
  requiresFreshSignIn: true,
  params,
  request: json(RotateWebhookSecret, { overlapHours: 48 }),
  response: created(RotatedWebhookSecret),
  showsSecret: true,
  errors: ["WEBHOOK_NOT_FOUND", "VALIDATION_ERROR"],
});

export const test = endpoint({
  name: "webhooks.test",
  method: "POST",
  path: "/webhooks/:webhookId/test",
  summary: "Send a test event to one endpoint",
  access,
  params,
  response: created(WebhookDelivery),
  errors: ["WEBHOOK_NOT_FOUND", "INVALID_STATE"],
});

const RESPONSE_STATUS = /^([1-5](\d\d|xx)|none)$/;
const time = z.iso.datetime({ offset: true }).optional();

export const deliveries = endpoint({
  name: "webhooks.deliveries",
  method: "GET",
  path: "/webhooks/:webhookId/deliveries",
  summary: "List the deliveries to an endpoint, newest first",
  description:
    "Stored for 30 days. The filters eventType and responseStatus search the newest 10,000 deliveries that match the others.",
  access,
  params,
  query: z.strictObject({
    ...paging,
    before: z
      .string()
      .max(100)
      .optional()
      .describe(
        "Only deliveries older than this one, by its id. With the last id of a page it gives the next page, at the same cost at any depth",
      ),
    status: filter(z.enum(deliveryStatuses)),
    eventId: z.string().max(100).optional(),
    eventType: filter(z.string().max(60).toLowerCase()),
    responseStatus: filter(
      z
        .string()
        .toLowerCase()
        .regex(RESPONSE_STATUS, "must be a status such as 503, a class such as 5xx, or none"),
      "What the last attempt got: a status such as 503, a class such as 5xx, or `none` for no response",
    ),
    from: time.describe("Only deliveries created from this time on"),
    to: time.describe("Only deliveries created before this time"),
  }),
  response: listOf(WebhookDelivery),
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const stats = endpoint({
  name: "webhooks.stats",
  method: "GET",
  path: "/webhooks/:webhookId/stats",
  summary: "Read statistics of the deliveries to an endpoint",
  access,
  params,
  query: z.strictObject({
    days: queryNumber(z.int().min(1).max(30))
      .default(7)
      .describe("For deliveries created in this number of days up to now"),
  }),
  response: one(WebhookStats),
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const recover = endpoint({
  name: "webhooks.recover",
  method: "POST",
  path: "/webhooks/:webhookId/recover",
  summary: "Resend failed and skipped deliveries of a period",
  description:
    "Each failed or skipped delivery of an event of that period starts its schedule again; attempts continue to count. A job does it: read its progress below /recoveries.",
  access,
  params,
  request: json(RecoverWebhook, { since: "2026-06-14T00:00:00Z" }),
  response: created(WebhookRecovery),
  errors: ["WEBHOOK_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const recovery = endpoint({
  name: "webhooks.recovery",
  method: "GET",
  path: "/webhooks/:webhookId/recoveries/:recoveryId",
  summary: "Read the progress of a recovery",
  access,
  params: z.object({ webhookId: z.string(), recoveryId: z.string() }),
  response: one(WebhookRecovery),
  errors: ["WEBHOOK_NOT_FOUND", "RECOVERY_NOT_FOUND"],
});

export const egress = endpoint({
  name: "webhooks.egress",
  method: "GET",
  path: "/webhooks/egress",
  summary: "List the source addresses of deliveries",
  description: "For a receiver's firewall. Empty if the operator has set none.",
  access: { who: "public" },
  response: one(z.object({ addresses: z.array(z.string()) })),
});

export const all = endpoint({
  name: "admin.webhooks.list",
  method: "GET",
  path: "/admin/webhooks",
  summary: "List the webhook endpoints of all accounts, newest first",
  description: "Totals are exact up to 10,000, above that a lower bound.",
  access: { who: "admin" },
  query: z.strictObject({
    ...paging,
    owner: z.string().max(100).optional().describe("The id of an account"),
    status: filter(
      z.enum(["enabled", "failing", "disabled"]),
      "failing: enabled, and without a success since an attempt failed",
    ),
  }),
  response: listOf(AdminWebhookEndpoint),
});

const deliveryParams = z.object({ deliveryId: z.string() });

export const delivery = endpoint({
  name: "deliveries.get",
  tag,
  method: "GET",
  path: "/deliveries/:deliveryId",
  summary: "Read one delivery, with the request and the response of each attempt",
  access,
  params: deliveryParams,
  response: one(WebhookDeliveryDetail),
  errors: ["DELIVERY_NOT_FOUND"],
});

export const retry = endpoint({
  name: "deliveries.retry",
  tag,
  method: "POST",
  path: "/deliveries/:deliveryId/retry",
  summary: "Attempt a delivery again now",
  description:
    "Works in any status, and also while the endpoint's Retry-After lasts. It counts as the next attempt, but not in the schedule, which continues afterwards.",
  access,
  params: deliveryParams,
  response: one(WebhookDelivery),
  errors: ["DELIVERY_NOT_FOUND", "INVALID_STATE"],
});
