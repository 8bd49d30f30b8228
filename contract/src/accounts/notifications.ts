import { z } from "zod";
import { endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, queryFlag, Timestamp } from "../core/envelope.ts";

export const NOTIFICATION_RETENTION_DAYS = 90;
const MAX_IDS = 100;

/** `optional`: the account decides. `always`: for security and receipts. `none`: the kind has no email. */
export type NotificationEmail = "optional" | "always" | "none";

export const notificationEmails = {
  "sale.completed": "none",
  "sale.refund_requested": "optional",
  "sale.refund_canceled": "optional",
  "sale.refunded": "optional",
  "sale.refund_failed": "optional",
  "sale.disputed": "optional",
  "sale.dispute_won": "optional",
  "sale.dispute_lost": "optional",
  "review.created": "none",
  "product.approved": "optional",
  "product.rejected": "optional",
  "product.suspended": "optional",
  "product.reinstated": "optional",
  "evaluation.completed": "optional",
  "evaluation.failed": "optional",
  "evaluation.paused": "optional",
  "evaluation.regressed": "optional",
  "payout.completed": "optional",
  "payout.failed": "optional",
  "payout.returned": "optional",
  "purchase.refunded": "always",
  "purchase.refund_rejected": "optional",
  "purchase.refund_failed": "optional",
  "purchase.refund_returned": "optional",
  "purchase.disputed": "optional",
  "purchase.dispute_closed": "optional",
  "review.replied": "none",
  "product.version_released": "none",
  "product.regressed": "optional",
  "plan.changed": "none",
  "plan.payment_failed": "optional",
  "plan.confirmation_required": "always",
  "plan.disputed": "optional",
  "execution.waiting": "none",
  "execution.completed": "none",
  "execution.failed": "none",
  "webhook.failing": "optional",
  "webhook.disabled": "optional",
  "webhook.deliveries_failed": "optional",
  "webhook.changed": "always",
  "api_key.created": "always",
  "api_key.rotated": "always",
  "api_key.revoked": "always",
  "api_key.expiring": "optional",
  "oauth_client.changed": "always",
  "oauth_grant.created": "always",
  "password.changed": "always",
  "two_factor.changed": "always",
  "identity.linked": "always",
  "identity.unlinked": "always",
  "payout_account.changed": "always",
  "session.created": "none",
  "account.viewed": "none",
} as const satisfies Record<string, NotificationEmail>;

export type NotificationKind = keyof typeof notificationEmails;
export const notificationKinds = Object.keys(notificationEmails) as NotificationKind[];

export const notificationSubjects = [
  "order",
  "refund",
  "review",
  "product",
  "payout",
  "account",
  "execution",
  "webhook",
  "api_key",
  "oauth_client",
  "oauth_grant",
  "session",
] as const;

export const Notification = z
  .object({
    id: z.string(),
    kind: z.enum(notificationKinds as [NotificationKind, ...NotificationKind[]]),
    title: z.string().describe("One line, such as “Ada bought Poet for $10.99”"),
    text: z.string().nullable().describe("A second sentence, such as the reason or the next step"),
    url: z.string().describe("The path of the page in the web client"),
    subject: z
      .object({ type: z.enum(notificationSubjects), id: z.string() })
      .describe("The resource that the notification is about"),
    readAt: Timestamp.nullable().describe("null: unread"),
    createdAt: Timestamp,
  })
  .meta({ id: "Notification" });

export const NotificationPreference = z
  .object({
    email: z.boolean().describe("Whether the service sends an email, too"),
    canChangeEmail: z
      .boolean()
      .describe("false for kinds without an email, and for emails about security and receipts"),
  })
  .meta({ id: "NotificationPreference" });

const byKind = <T extends z.ZodType>(schema: T) =>
  Object.fromEntries(notificationKinds.map((kind) => [kind, schema])) as Record<NotificationKind, T>;

export const NotificationPreferences = z
  .object({ kinds: z.object(byKind(NotificationPreference)) })
  .meta({ id: "NotificationPreferences" });

const NotificationPreferenceChange = z
  .strictObject({ email: z.boolean().optional() })
  .meta({ id: "NotificationPreferenceChange" });

export const UpdateNotificationPreferences = z
  .strictObject({ kinds: z.strictObject(byKind(NotificationPreferenceChange)).partial() })
  .meta({ id: "UpdateNotificationPreferences" });

export const MarkNotificationsRead = z
  .strictObject({
    ids: z
      .array(z.string().max(100))
      .min(1)
      .max(MAX_IDS)
      .optional()
      .describe("Marks these. Unknown and read ones are skipped"),
    before: z.iso
      .datetime({ offset: true })
      .optional()
      .describe("Marks all that were created up to this time, such as `meta.timestamp` of the list"),
  })
  .meta({ id: "MarkNotificationsRead" });

export type Notification = z.input<typeof Notification>;
export type NotificationPreferences = z.input<typeof NotificationPreferences>;
export type UpdateNotificationPreferences = z.output<typeof UpdateNotificationPreferences>;
export type MarkNotificationsRead = z.output<typeof MarkNotificationsRead>;

const tag = "notifications";
const reads = { who: "member", permission: null } as const;

export const list = endpoint({
  name: "notifications.list",
  tag,
  method: "GET",
  path: "/notifications",
  summary: "List your notifications, newest first",
  description: `Sales, refunds, reviews, payouts, new versions of products that you bought, long runs, and changes that concern the security of your account. \`meta.unreadCount\` counts all unread ones, exactly up to 10,000. A product has one notification for its newest version. Notifications are deleted after ${NOTIFICATION_RETENTION_DAYS} days.`,
  access: reads,
  query: z.strictObject({ ...paging, unread: queryFlag.describe("Only unread ones") }),
  response: listOf(Notification),
});

export const read = endpoint({
  name: "notifications.read",
  tag,
  method: "POST",
  path: "/notifications/read",
  summary: "Mark notifications as read",
  description:
    "Send either `ids` or `before`. Needs a session, so that a stolen key cannot hide notifications about itself.",
  access: { who: "session" },
  request: json(MarkNotificationsRead, { before: "2026-11-23T10:00:00.000Z" }),
  response: one(z.object({ unreadCount: z.int().min(0).describe("Those left unread, exact up to 10,000") })),
});

export const getPreferences = endpoint({
  name: "account.notifications.get",
  tag,
  method: "GET",
  path: "/account/notifications",
  summary: "Read which notifications you also get by email",
  access: reads,
  response: one(NotificationPreferences),
});

export const updatePreferences = endpoint({
  name: "account.notifications.update",
  tag,
  method: "PATCH",
  path: "/account/notifications",
  summary: "Choose which notifications you also get by email",
  description:
    "Only the kinds that you send change. A kind with `canChangeEmail: false` can be sent with its present value only.",
  access: { who: "session" },
  request: json(UpdateNotificationPreferences, { kinds: { "payout.completed": { email: false } } }),
  response: one(NotificationPreferences),
  errors: ["VALIDATION_ERROR"],
  supportsIfMatch: true,
});
