import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
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
      "Where events are posted: https, a public address, no credentials in it; kept as a URL's parser writes it",
    ),
  description: visibleText(200),
  eventTypes: z
    .array(z.enum(types))
    .min(1)
    .max(types.length)
    .refine((list) => new Set(list).size === list.length, "names a type twice")
    .nullable()
    .describe(
      "Which events it gets; null: all. A `test` event comes to the endpoint that it was asked for, whatever stands here",
    ),
  enabled: z.boolean(),
  signatureContent: z
    .enum(["timestamp_body", "body"])
    .describe(
      "What X-Service-Signature covers: the timestamp, a dot and the raw body, or the raw body alone",
    ),
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
      .describe("Who switched it off: you, its answer 410, or five days without a success; null: it is on"),
    createdAt: Timestamp,
  })
  .meta({ id: "WebhookEndpoint" });

export const AdminWebhookEndpoint = WebhookEndpoint.extend({
  owner: z.object({ id, name: z.string() }),
  failingSince: Timestamp.nullable().describe("When an attempt first failed since the last success"),
  failedDeliveries: z.int().min(0).describe("Given up since then"),
}).meta({ id: "AdminWebhookEndpoint", description: "A webhook endpoint as administrators see it." });

const secret = z
  .string()
  .describe("`whsec_` and the base64 of 32 bytes: shown in this answer and never again");
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

export const ChangeWebhookEndpoint = z.strictObject(fields).partial().meta({ id: "ChangeWebhookEndpoint" });

export const RotateWebhookSecret = z
  .strictObject({
    activateAt: z.iso
      .datetime({ offset: true })
      .optional()
      .describe("From when on the new secret signs, at most 7 days ahead; now when omitted"),
    overlapHours: z
      .number()
      .min(0)
      .max(7 * 24)
      .default(24)
      .describe("How long the old secret signs beside it from then on"),
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
      .describe("null: there was none"),
    error: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .describe("Why it was not taken; null: it was"),
    late: z
      .boolean()
      .describe(
        "Reported after the delivery was due again or another worker had taken it over: it changed nothing",
      ),
  })
  .meta({ id: "DeliveryAttempt" });

const Delivery = z.object({
  id,
  endpointId: id,
  eventId: id,
  eventType: z.enum([...eventTypes, ...callbackTypes] as [EventType | CallbackType, ...EventType[]]),
  status: z.enum(deliveryStatuses),
  attempt: z.int().min(0).describe("Attempts made"),
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
    until: z.iso.datetime({ offset: true }).optional().describe("Now when omitted"),
  })
  .meta({ id: "RecoverWebhook" });

export const WebhookRecovery = z
  .object({
    id,
    status: z.enum(["running", "completed"]),
    since: Timestamp,
    until: Timestamp,
    total: z.int().min(0).describe("Deliveries that are failed or skipped still, and those recovered"),
    recovered: z.int().min(0).describe("Of those, how many are due again"),
    createdAt: Timestamp,
    endedAt: Timestamp.nullable(),
  })
  .meta({ id: "WebhookRecovery" });

const count = z.int().min(0);
const duration = z.int().min(0).nullable().describe("In milliseconds; null: there was no attempt");
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
    successRate: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe("Succeeded of those that ended by an attempt; null: none did"),
    durationMs: z
      .object({ p50: duration, p95: duration })
      .describe("Of the attempts of the last 1000 deliveries"),
    failingSince: Timestamp.nullable().describe(
      "When the first attempt failed since the last success; null: none did",
    ),
  })
  .meta({ id: "WebhookStats" });

export type WebhookEndpoint = z.input<typeof WebhookEndpoint>;
export type AdminWebhookEndpoint = z.input<typeof AdminWebhookEndpoint>;
export type NewWebhookEndpoint = z.input<typeof NewWebhookEndpoint>;
export type CreateWebhookEndpoint = z.output<typeof CreateWebhookEndpoint>;
export type ChangeWebhookEndpoint = z.output<typeof ChangeWebhookEndpoint>;
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
  data: WebhookEndpoint,
  list: true,
});

export const create = endpoint({
  name: "webhooks.create",
  method: "POST",
  path: "/webhooks",
  summary: "Register a webhook endpoint",
  description:
    "The answer shows the secret once. An account may have 20 endpoints; the 21st is 422. The account's owner gets an email.",
  access,
  freshSignIn: true,
  body: CreateWebhookEndpoint,
  data: NewWebhookEndpoint,
  status: 201,
  showsSecret: true,
  errors: ["VALIDATION_ERROR"],
  example: { url: "https://example.com/hooks", eventTypes: ["purchase.completed", "purchase.refunded"] },
});

export const get = endpoint({
  name: "webhooks.get",
  method: "GET",
  path: "/webhooks/:webhookId",
  summary: "Read one webhook endpoint",
  access,
  params,
  data: WebhookEndpoint,
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const change = endpoint({
  name: "webhooks.change",
  method: "PATCH",
  path: "/webhooks/:webhookId",
  summary: "Change a webhook endpoint",
  description:
    "Only what you send changes, and holds for what waits too: it goes to the new address, events of types left out are canceled, and while the endpoint is off they are skipped; recover brings those back. A session needs a sign-in of the last 15 minutes to change `url`.",
  access,
  params,
  body: ChangeWebhookEndpoint,
  data: WebhookEndpoint,
  conditional: true,
  errors: ["WEBHOOK_NOT_FOUND"],
  example: { eventTypes: ["purchase.completed", "payout.completed"] },
});

export const remove = endpoint({
  name: "webhooks.delete",
  method: "DELETE",
  path: "/webhooks/:webhookId",
  summary: "Remove a webhook endpoint; what waits for it is canceled",
  access,
  params,
  data: z.object({ id, deleted: z.literal(true) }),
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const rotateSecret = endpoint({
  name: "webhooks.rotateSecret",
  method: "POST",
  path: "/webhooks/:webhookId/rotate-secret",
  summary: "Draw a new secret",
  description:
    "The answer shows it once. Until activateAt the old one signs alone; then the new one signs X-Service-Signature, for overlapHours the old one X-Service-Signature-Previous, and webhook-signature holds both. It takes the place of a rotation that is still to come; at most 10 secrets sign at once. The account's owner gets an email.",
  access,
  freshSignIn: true,
  params,
  body: RotateWebhookSecret,
  data: RotatedWebhookSecret,
  status: 201,
  showsSecret: true,
  errors: ["WEBHOOK_NOT_FOUND", "VALIDATION_ERROR"],
  example: { overlapHours: 48 },
});

export const test = endpoint({
  name: "webhooks.test",
  method: "POST",
  path: "/webhooks/:webhookId/test",
  summary: "Send a test event to one endpoint",
  access,
  params,
  data: WebhookDelivery,
  status: 201,
  errors: ["WEBHOOK_NOT_FOUND", "INVALID_STATE"],
});

export const deliveries = endpoint({
  name: "webhooks.deliveries",
  method: "GET",
  path: "/webhooks/:webhookId/deliveries",
  summary: "List the deliveries to an endpoint, newest first",
  description: "Kept for 30 days.",
  access,
  params,
  query: z.strictObject({
    ...paging,
    before: z
      .string()
      .max(100)
      .optional()
      .describe(
        "Only deliveries older than this one, by its id: with the last id of a page, the next page at the same cost however deep",
      ),
    status: filter(z.enum(deliveryStatuses)),
    eventId: z.string().max(100).optional(),
  }),
  data: WebhookDelivery,
  list: true,
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const stats = endpoint({
  name: "webhooks.stats",
  method: "GET",
  path: "/webhooks/:webhookId/stats",
  summary: "How deliveries to an endpoint went",
  access,
  params,
  query: z.strictObject({
    days: queryNumber(z.int().min(1).max(30))
      .default(7)
      .describe("Of deliveries that were made within so many days up to now"),
  }),
  data: WebhookStats,
  errors: ["WEBHOOK_NOT_FOUND"],
});

export const recover = endpoint({
  name: "webhooks.recover",
  method: "POST",
  path: "/webhooks/:webhookId/recover",
  summary: "Have what failed or was skipped attempted again",
  description:
    "Each delivery of an event of that time which is failed or skipped begins its schedule anew; attempts go on counting. A job does it: its progress is read below /recoveries.",
  access,
  params,
  body: RecoverWebhook,
  data: WebhookRecovery,
  status: 201,
  errors: ["WEBHOOK_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
  example: { since: "2026-06-14T00:00:00Z" },
});

export const recovery = endpoint({
  name: "webhooks.recovery",
  method: "GET",
  path: "/webhooks/:webhookId/recoveries/:recoveryId",
  summary: "Read how far a recovery is",
  access,
  params: z.object({ webhookId: z.string(), recoveryId: z.string() }),
  data: WebhookRecovery,
  errors: ["WEBHOOK_NOT_FOUND", "RECOVERY_NOT_FOUND"],
});

export const egress = endpoint({
  name: "webhooks.egress",
  method: "GET",
  path: "/webhooks/egress",
  summary: "List the addresses that deliveries come from",
  description: "For a receiver's firewall. Empty where the operator names none.",
  access: { who: "public" },
  data: z.object({ addresses: z.array(z.string()) }),
});

export const all = endpoint({
  name: "admin.webhooks.list",
  method: "GET",
  path: "/admin/webhooks",
  summary: "List the webhook endpoints of everybody, newest first",
  description: "Totals are exact to 10,000, above that a lower bound.",
  access: { who: "admin" },
  query: z.strictObject({
    ...paging,
    owner: z.string().max(100).optional().describe("The id of an account"),
    status: filter(
      z.enum(["enabled", "failing", "disabled"]),
      "failing: enabled, and without a success since an attempt failed",
    ),
  }),
  data: AdminWebhookEndpoint,
  list: true,
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
  data: WebhookDeliveryDetail,
  errors: ["DELIVERY_NOT_FOUND"],
});

export const retry = endpoint({
  name: "deliveries.retry",
  tag,
  method: "POST",
  path: "/deliveries/:deliveryId/retry",
  summary: "Attempt a delivery once more, now",
  description:
    "Whatever became of it, and though the endpoint asked for patience. It counts as the next attempt and uses up none of the schedule, which goes on afterwards where it stood.",
  access,
  params: deliveryParams,
  data: WebhookDelivery,
  errors: ["DELIVERY_NOT_FOUND", "INVALID_STATE"],
});
