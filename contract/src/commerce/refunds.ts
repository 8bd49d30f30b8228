import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, Timestamp } from "../core/envelope.ts";
import { visibleText } from "../core/visible-text.ts";

export const refundStatuses = [
  "pending",
  "approved",
  "processing",
  "succeeded",
  "failed",
  "rejected",
  "canceled",
] as const;

/** Any other reason is `other`. */
export const refundReasons = [
  "duplicate",
  "fraudulent",
  "not_as_described",
  "not_working",
  "accidental",
  "customer_request",
  "other",
] as const;

/** Why a buyer cannot request a refund now. */
export const refundObstacles = [
  "not_completed",
  "free_copy",
  "already_refunded",
  "disputed",
  "refund_open",
  "refund_window_expired",
] as const;

/** Why the rules approve a request at once, or leave it to the seller. */
export const approvalReasons = ["unused", "used", "recent_instant_refund", "failed_runs"] as const;

const approvalReason = z
  .enum(approvalReasons)
  .nullable()
  .describe(
    "unused: never revealed, downloaded or run, so approved at once. used: the seller decides. recent_instant_refund: never used, but the buyer had an instant refund recently, so the seller decides. failed_runs: used, but the buyer's runs failed more often than those of others, and the seller approves such requests. null: nobody requested it, or nobody can",
  );

const runCount = z.object({
  runs: z.int(),
  failed: z.int(),
  interval: z
    .object({ low: z.number(), high: z.number() })
    .nullable()
    .describe("The 95 % Wilson interval of the failed share, from 0 to 1; null: no runs"),
});

export const RefundRuns = z
  .object({
    buyer: runCount.describe("Of the buyer, since the purchase"),
    others: runCount.describe("Of all other buyers in the 90 days before the request"),
    failsMoreOften: z
      .boolean()
      .describe("Whether the buyer's interval, of five runs or more, lies above that of the others"),
  })
  .meta({
    id: "RefundRuns",
    description:
      "Ended runs of the product, without those on an openai-compatible address of the buyer's and without failures that the buyer's key, limits or rejected approvals caused.",
  });

export const Refund = z
  .object({
    id: z.string(),
    orderId: z.string(),
    product: z.object({ id: z.string(), title: z.string() }),
    status: z
      .enum(refundStatuses)
      .describe(
        "pending: the seller decides. approved, processing: in progress. succeeded, failed, rejected, canceled: ended",
      ),
    amount: Amount.describe("With tax. The approval covers as much of it as then remains"),
    currency: Currency,
    reason: z.string().describe("As it was sent"),
    reasonCode: z.enum(refundReasons).describe("The reason if it is one of these, else other"),
    details: z.string().nullable(),
    requestedBy: z
      .enum(["buyer", "admin", "service", "provider"])
      .describe(
        "service: a payment that bought nothing is refunded automatically. provider: created at the payment provider's dashboard",
      ),
    decideBy: Timestamp.nullable().describe(
      "Until then the seller decides; afterwards it is approved. null: no decision was needed",
    ),
    decidedBy: z
      .enum(["rules", "seller", "admin"])
      .nullable()
      .describe(
        "rules: it was never used, it failed more often than for others and the seller approves that, its seller did not decide in time, or the payment bought nothing",
      ),
    approvalReason,
    runs: RefundRuns.nullable().describe(
      "The runs of the product at the request; null: the buyer never used it, or did not request it",
    ),
    decisionNote: z.string().nullable().describe("Why it was rejected, or canceled by the service"),
    failureCode: z.string().nullable().describe("Why the payment provider could not refund it"),
    createdAt: Timestamp,
    decidedAt: Timestamp.nullable(),
    completedAt: Timestamp.nullable().describe("When it succeeded, failed, was rejected or canceled"),
    returnedAt: Timestamp.nullable().describe(
      "When the buyer's bank returned a refund that had succeeded; the buyer must get the money in another way",
    ),
    settledAt: Timestamp.nullable().describe("When the buyer got it in another way"),
  })
  .meta({ id: "Refund" });

const person = z.object({ id: z.string(), name: z.string() });

export const AdminRefund = Refund.extend({ buyer: person, seller: person }).meta({ id: "AdminRefund" });

/** Whether a buyer may request a refund, in a purchase. */
export const Refundable = z
  .object({
    until: Timestamp.nullable().describe("The end of the refund window; null until completed"),
    amount: Amount.describe("What would be refunded; 0 if reasonIfNot gives a reason"),
    reasonIfNot: z.enum(refundObstacles).nullable(),
    approval: z
      .enum(["instant", "seller"])
      .nullable()
      .describe(
        "Who would approve it now: the rules at once, or the seller; null if reasonIfNot gives a reason",
      ),
    approvalReason,
    instantFrom: Timestamp.nullable().describe(
      "From when it would be approved at once, if approvalReason is recent_instant_refund and the window is open then; else null",
    ),
  })
  .meta({ id: "Refundable" });

export const orderEventTypes = [
  "purchase.created",
  "purchase.completed",
  "refund.requested",
  "refund.approved",
  "refund.rejected",
  "refund.canceled",
  "refund.succeeded",
  "refund.failed",
  "dispute.opened",
  "dispute.won",
  "dispute.lost",
] as const;

export const OrderEvent = z
  .object({
    type: z.enum(orderEventTypes),
    at: Timestamp,
    amount: Amount,
    refundId: z.string().optional(),
  })
  .meta({ id: "OrderEvent", description: "An event in the life of a purchase." });

const reason = visibleText(200)
  .min(1)
  .describe(`Your words, or one of: ${refundReasons.join(", ")}`);
const details = visibleText(2_000).min(1).optional();

export const CreateRefund = z.strictObject({ reason, details }).meta({ id: "CreateRefund" });

export const RejectRefund = z
  .strictObject({ reason: visibleText(2_000).min(1).describe("Shown to the buyer") })
  .meta({ id: "RejectRefund" });

export const RefundOrder = z
  .strictObject({
    amount: z.number().positive().optional().describe("Default: all that remains"),
    reason,
  })
  .meta({ id: "RefundOrder" });

export const RefundedBuyers = z
  .object({
    productId: z.string(),
    orders: z.int().describe("How many purchases are refunded, one after another"),
    since: Timestamp.describe("Of purchases since then"),
  })
  .meta({ id: "RefundedBuyers" });

export type RefundStatus = (typeof refundStatuses)[number];
export type ApprovalReason = (typeof approvalReasons)[number];
export type RefundRuns = z.input<typeof RefundRuns>;
export type RefundObstacle = (typeof refundObstacles)[number];
export type Refund = z.input<typeof Refund>;
export type AdminRefund = z.input<typeof AdminRefund>;
export type Refundable = z.input<typeof Refundable>;
export type OrderEvent = z.input<typeof OrderEvent>;
export type CreateRefund = z.output<typeof CreateRefund>;
export type RefundOrder = z.output<typeof RefundOrder>;
export type RefundedBuyers = z.input<typeof RefundedBuyers>;

const reads = { who: "member", permission: "purchases:read" } as const;
const writes = { who: "member", permission: "purchases:write" } as const;
/** For the seller, with the permission to change products. */
const decides = { who: "member", permission: "products:write" } as const;
const admin = { who: "admin" } as const;
const ofRefund = z.object({ refundId: z.string() });
const ofOrder = z.object({ orderId: z.string() });
const status = filter(z.enum(refundStatuses));
const orderId = z.string().max(100).optional();

export const create = endpoint({
  name: "refunds.create",
  method: "POST",
  path: "/purchases/:orderId/refund",
  summary: "Request a refund of a purchase",
  description:
    "A product that was never revealed, downloaded or run is refunded at once within the window. For any other the seller decides; without a decision within 7 days it is approved. A seller can let the rules approve a request if the buyer's runs failed more often than those of others (refundFailedRuns of the account). Outside the window: 422 with the reason refund_window_expired. After an instant refund the seller decides about the next one for some time: 30 days after the first, 90 after the second, 180 after each later one. approvalReason tells which case it is, here and in refundable of the purchase. Only one refund can be open: another one is 409 CONFLICT with refundId. While the payment is disputed: 409 INVALID_STATE.",
  access: writes,
  params: ofOrder,
  request: json(CreateRefund, { reason: "not_as_described", details: "It makes limericks." }),
  response: created(Refund),
  errors: ["ORDER_NOT_FOUND", "INVALID_STATE", "ALREADY_REFUNDED", "VALIDATION_ERROR"],
});

export const list = endpoint({
  name: "refunds.list",
  method: "GET",
  path: "/refunds",
  summary: "List the refunds of your purchases and sales, newest first",
  access: reads,
  query: z.strictObject({
    ...paging,
    role: filter(z.enum(["buyer", "seller"]), "Only of your purchases, or of your sales"),
    status,
    orderId,
    productId: filter(z.string().max(100)),
  }),
  response: listOf(Refund),
});

export const get = endpoint({
  name: "refunds.get",
  method: "GET",
  path: "/refunds/:refundId",
  summary: "Read one refund",
  access: reads,
  params: ofRefund,
  response: one(Refund),
  errors: ["REFUND_NOT_FOUND"],
});

const decision = {
  method: "POST",
  access: decides,
  params: ofRefund,
  response: one(Refund),
  errors: ["REFUND_NOT_FOUND", "INVALID_STATE"],
} as const;

export const approve = endpoint({
  ...decision,
  name: "refunds.approve",
  path: "/refunds/:refundId/approve",
  summary: "Approve a refund as the seller",
  description:
    "Or as an administrator. The status is succeeded, or processing while the money is on its way.",
});

export const reject = endpoint({
  ...decision,
  name: "refunds.reject",
  path: "/refunds/:refundId/reject",
  summary: "Reject a refund as the seller; the buyer gets the reason by email",
  description:
    "Or as an administrator, and before decideBy. The buyer can request it again within the window.",
  request: json(RejectRefund, {
    reason: "It does what its page says; here is how to set the language.",
  }),
});

export const cancel = endpoint({
  ...decision,
  access: writes,
  name: "refunds.cancel",
  path: "/refunds/:refundId/cancel",
  summary: "Cancel your undecided request as the buyer",
});

export const listAllRefunds = endpoint({
  name: "admin.refunds.list",
  method: "GET",
  path: "/admin/refunds",
  summary: "List all refunds, newest first",
  access: admin,
  query: z.strictObject({ ...paging, status, orderId }),
  response: listOf(AdminRefund),
});

export const refundOrder = endpoint({
  name: "admin.orders.refund",
  method: "POST",
  path: "/admin/orders/:orderId/refund",
  summary: "Refund a purchase, all that remains or a part, at any time",
  description:
    "Not while its payment is disputed. After a partial refund the buyer keeps the product; after the last part not. While the whole rest is in progress: 409 CONFLICT.",
  access: admin,
  params: ofOrder,
  request: json(RefundOrder, { amount: 5, reason: "not_working" }),
  response: created(Refund),
  errors: ["ORDER_NOT_FOUND", "INVALID_STATE", "ALREADY_REFUNDED", "VALIDATION_ERROR"],
});

export const refundBuyers = endpoint({
  name: "admin.products.refundBuyers",
  method: "POST",
  path: "/admin/products/:productId/refund-buyers",
  summary: "Refund all buyers of the last 90 days",
  description:
    "For a product that is suspended as malicious or illegal: the rest of each price, used or not. Disputed purchases are left to the bank. A job refunds one purchase after another and continues after a crash. A second request takes only buyers without a refund.",
  access: admin,
  params: z.object({ productId: z.string() }),
  response: one(RefundedBuyers),
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE"],
});
