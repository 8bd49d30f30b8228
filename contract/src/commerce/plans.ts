import { z } from "zod";
import { endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "../core/envelope.ts";
import { PurchaseDetail } from "./purchases.ts";

/** Ascending: a later plan is an upgrade. */
export const plans = ["free", "pro", "business", "enterprise"] as const;
export type Plan = (typeof plans)[number];

/** Requests per seconds. All quotas of a plan apply at once. */
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

/** One per length: windows are identified by length, so two would count each request twice. */
export const Quotas = z
  .array(Quota)
  .min(1)
  .max(10)
  .refine(haveLengthsOfTheirOwn, "must not name the same seconds twice");

const QuotaWindow = z
  .object({
    limit: z.int().min(1),
    seconds: z.int().min(1).describe("The length of the window, which begins with its first request"),
    used: z.int().min(0),
    remaining: z.int().min(0),
    resetAt: Timestamp.nullable().describe("null: no request has begun this window"),
  })
  .meta({ id: "QuotaWindow" });

const Usage = z
  .object({
    plan: z.enum(plans),
    windows: z.array(QuotaWindow).describe("Requests by API keys and OAuth tokens of the account"),
    sessionWindows: z.array(QuotaWindow).describe("Requests by its sessions, which count separately"),
  })
  .meta({ id: "QuotaUsage" });

const Offer = z.object({
  plan: z.enum(plans),
  monthlyPrice: Amount.nullable().describe("Before an added tax; null: by agreement with the operator"),
  currency: Currency,
  quotas: z.array(Quota),
  concurrentRuns: z
    .int()
    .describe(
      "Prompts that an account may run at the same time, in each process of the service; one more is 429. Workflow runs do not count: they wait in a queue",
    ),
});

const Subscription = z
  .object({
    plan: z.enum(plans),
    periodStart: Timestamp.nullable(),
    periodEnd: Timestamp.nullable().describe("Until when the plan is paid; null if there was no payment"),
    scheduled: z
      .object({ plan: z.enum(plans), effectiveDate: Timestamp })
      .nullable()
      .describe("The downgrade at the end of the period"),
    pastDue: z
      .object({ since: Timestamp, tries: z.int().min(1), nextTry: Timestamp })
      .nullable()
      .describe(
        "The next month could not be paid; the plan stays active during three attempts. Choose the plan again to pay now",
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
      .describe("The payment that an upgrade or renewal waits for"),
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
    amount: Amount.describe("The charged amount: lines.total"),
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

const UpdateSubscription = z
  .strictObject({
    plan: z.enum(plans),
    paymentMethodId: z.string().min(1).max(100).optional().describe("Default: your default method"),
  })
  .meta({ id: "UpdateSubscription" });

export type QuotaWindow = z.input<typeof QuotaWindow>;
export type Usage = z.input<typeof Usage>;
export type Subscription = z.input<typeof Subscription>;
export type PlanPayment = z.input<typeof PlanPayment>;
export type UpdateSubscription = z.output<typeof UpdateSubscription>;

export const usage = endpoint({
  name: "account.usage.get",
  method: "GET",
  path: "/account/usage",
  summary: "Read how much of your quota is used now",
  description: "The request does not count, and works when the quota is used up.",
  countsInQuota: false,
  access: { who: "member", permission: null },
  response: one(Usage),
});

export const subscription = endpoint({
  name: "account.subscription.get",
  method: "GET",
  path: "/account/subscription",
  summary: "Read your plan, its period and the available plans",
  access: { who: "member", permission: null },
  response: one(Subscription),
});

export const payments = endpoint({
  name: "account.subscription.payments",
  method: "GET",
  path: "/account/subscription/payments",
  summary: "List your plan payments with receipts, newest first",
  description:
    "Each month's payment, and those that failed or were given up. lines.discount is the unused part of the month before an upgrade.",
  access: { who: "member", permission: "purchases:read" },
  query: z.strictObject(paging),
  response: listOf(PlanPayment),
});

export const updateSubscription = endpoint({
  name: "account.subscription.update",
  method: "PUT",
  path: "/account/subscription",
  summary: "Upgrade now, or downgrade when the paid period ends",
  description:
    "An upgrade costs a month from now, less the unused part of the present period, and is active at once. 202: the payment is pending, or must be confirmed at payment.nextAction.url. A decline is 402 and changes nothing. A downgrade is active from the end of the paid period. Choosing the present plan cancels a scheduled downgrade or an unpaid upgrade; if the plan is past due, it pays now. A plan renews each month with the method that paid for it. After three failed attempts in a week it ends.",
  access: { who: "session" },
  request: json(UpdateSubscription, { plan: "pro" }),
  response: one(Subscription, { accepted: { kind: "pending" } }),
  errors: ["VALIDATION_ERROR", "INSUFFICIENT_FUNDS", "PAYMENT_METHOD_NOT_FOUND", "CONFLICT"],
});
