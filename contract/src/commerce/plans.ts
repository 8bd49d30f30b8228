import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "../core/envelope.ts";
import { PurchaseDetail } from "./purchases.ts";

/** In rising order: whoever moves to a later one upgrades. */
export const plans = ["free", "pro", "business", "enterprise"] as const;
export type Plan = (typeof plans)[number];

/** So many requests in so many seconds; every quota of a plan holds at once. */
export const Quota = z
  .strictObject({
    requests: z.int().min(1).max(1_000_000_000),
    seconds: z
      .int()
      .min(1)
      .max(31 * 86_400),
  })
  .meta({ id: "Quota" });
export type Quota = z.infer<typeof Quota>;

const haveLengthsOfTheirOwn = (quotas: Quota[]) =>
  new Set(quotas.map(({ seconds }) => seconds)).size === quotas.length;

/** One of a length, because a window is known by its length: two would count every request twice. */
export const Quotas = z
  .array(Quota)
  .min(1)
  .max(10)
  .refine(haveLengthsOfTheirOwn, "must not name the same seconds twice");

const QuotaWindow = z
  .object({
    limit: z.int().min(1),
    seconds: z.int().min(1).describe("How long the window is; it begins with the first request in it"),
    used: z.int().min(0),
    remaining: z.int().min(0),
    resetAt: Timestamp.nullable().describe("null: no request has begun this window"),
  })
  .meta({ id: "QuotaWindow" });

const Usage = z
  .object({
    plan: z.enum(plans),
    windows: z.array(QuotaWindow).describe("What API keys and OAuth tokens of the account have used"),
    sessionWindows: z.array(QuotaWindow).describe("What its sessions have used, which count apart"),
  })
  .meta({ id: "QuotaUsage" });

const Offer = z.object({
  plan: z.enum(plans),
  monthlyPrice: Amount.nullable().describe(
    "Before a tax that is added; null: by agreement with the operator",
  ),
  currency: Currency,
  quotas: z.array(Quota),
  concurrentRuns: z
    .int()
    .describe(
      "Runs of prompts that an account may have under way at once, in each process of the service; one more is refused with 429. Runs of workflows do not count: they wait in a queue",
    ),
});

const Subscription = z
  .object({
    plan: z.enum(plans),
    periodStart: Timestamp.nullable(),
    periodEnd: Timestamp.nullable().describe("Until when the plan is paid; null when nothing was paid for"),
    scheduled: z
      .object({ plan: z.enum(plans), effectiveDate: Timestamp })
      .nullable()
      .describe("The downgrade at the end of the period"),
    pastDue: z
      .object({ since: Timestamp, tries: z.int().min(1), nextTry: Timestamp })
      .nullable()
      .describe(
        "The next month could not be paid; the plan holds while it is tried three times. Choose the plan again to pay now",
      ),
    payment: z
      .object({
        plan: z.enum(plans),
        status: z.enum(["pending", "requires_action"]),
        amount: Amount,
        currency: Currency,
        nextAction: z.object({ url: z.url() }).optional(),
      })
      .nullable()
      .describe("The payment that the upgrade to its plan, or its renewal, waits for"),
    offers: z.array(Offer),
  })
  .meta({ id: "Subscription" });

export const planPaymentStatuses = ["pending", "requires_action", "completed", "failed", "canceled"] as const;
export type PlanPaymentStatus = (typeof planPaymentStatuses)[number];

const PlanPayment = z
  .object({
    id: z.string(),
    plan: z.enum(plans),
    status: z.enum(planPaymentStatuses),
    amount: Amount.describe("What is charged: lines.total"),
    currency: Currency,
    ...PurchaseDetail.pick({ lines: true, taxRate: true, paymentMethod: true, declineCode: true }).shape,
    period: z
      .object({ start: Timestamp, end: Timestamp })
      .nullable()
      .describe("The month that it paid for; null until completed"),
    receipt: PurchaseDetail.shape.receipt.extend({
      number: z
        .string()
        .nullable()
        .describe("R-STOA-2026-00042: without gaps in the marketplace's year; null until completed"),
    }),
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "PlanPayment" });

const ChangeSubscription = z
  .strictObject({
    plan: z.enum(plans),
    paymentMethodId: z.string().min(1).max(100).optional().describe("Your default method when omitted"),
  })
  .meta({ id: "ChangeSubscription" });

export type QuotaWindow = z.input<typeof QuotaWindow>;
export type Usage = z.input<typeof Usage>;
export type Subscription = z.input<typeof Subscription>;
export type PlanPayment = z.input<typeof PlanPayment>;
export type ChangeSubscription = z.output<typeof ChangeSubscription>;

export const usage = endpoint({
  name: "account.usage.get",
  method: "GET",
  path: "/account/usage",
  summary: "Read how much of your quota is used now",
  description: "The request does not count, and is answered when the quota is used up.",
  isCounted: false,
  access: { who: "member", permission: null },
  data: Usage,
});

export const subscription = endpoint({
  name: "account.subscription.get",
  method: "GET",
  path: "/account/subscription",
  summary: "Read your plan, its period and the plans on offer",
  access: { who: "member", permission: null },
  data: Subscription,
});

export const payments = endpoint({
  name: "account.subscription.payments",
  method: "GET",
  path: "/account/subscription/payments",
  summary: "List what was asked of you for your plans, newest first, with receipts",
  description:
    "Each month's payment, and those that failed or were given up. lines.discount is what was unused of the month before an upgrade.",
  access: { who: "member", permission: "purchases:read" },
  query: z.strictObject(paging),
  data: PlanPayment,
  list: true,
});

export const changeSubscription = endpoint({
  name: "account.subscription.change",
  method: "PUT",
  path: "/account/subscription",
  summary: "Upgrade now, or downgrade when the paid period ends",
  description:
    "An upgrade is paid for a month from now, less what is unused of the present period, and holds at once; 202 while the payment is pending or must be confirmed at payment.nextAction.url; a decline is 402 and changes nothing. A downgrade holds from the end of the paid period. The present plan takes a scheduled downgrade, or an upgrade that waits for its payment, back; when it is past due, it is paid now. A plan is renewed each month by the method that paid for it: of three tries in a week the last that fails ends it.",
  access: { who: "session" },
  body: ChangeSubscription,
  data: Subscription,
  maybeAccepted: true,
  errors: ["VALIDATION_ERROR", "INSUFFICIENT_FUNDS", "PAYMENT_METHOD_NOT_FOUND", "CONFLICT"],
  example: { plan: "pro" },
});
