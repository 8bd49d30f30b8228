import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
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

/** What a reason may be told apart by; any other words are `other`. */
export const refundReasons = [
  "duplicate",
  "fraudulent",
  "not_as_described",
  "not_working",
  "accidental",
  "customer_request",
  "other",
] as const;

/** Why a buyer cannot ask for the money back now. */
export const refundObstacles = [
  "not_completed",
  "free_copy",
  "already_refunded",
  "disputed",
  "refund_open",
  "refund_window_expired",
] as const;

/** Why the rules approve a request at once, or leave it to the seller. */
export const approvalReasons = ["unused", "used", "recent_instant_refund"] as const;

const approvalReason = z
  .enum(approvalReasons)
  .nullable()
  .describe(
    "unused: never revealed, downloaded or run, so that it is approved at once. used: the seller decides. recent_instant_refund: never used, but the buyer had another refund at once lately, so that the seller decides. null: nobody asked, or nobody can",
  );

export const Refund = z
  .object({
    id: z.string(),
    orderId: z.string(),
    product: z.object({ id: z.string(), title: z.string() }),
    status: z
      .enum(refundStatuses)
      .describe(
        "pending: the seller decides. approved, processing: the money is on its way. succeeded, failed, rejected, canceled: it has ended",
      ),
    amount: Amount.describe("Tax included. Approved is as much of it as then remains"),
    currency: Currency,
    reason: z.string().describe("As it was sent"),
    reasonCode: z.enum(refundReasons).describe("The reason where it is one of these, else other"),
    details: z.string().nullable(),
    requestedBy: z
      .enum(["buyer", "admin", "service", "provider"])
      .describe(
        "service: a payment came that bought nothing, and goes back by itself. provider: it was made at the payment provider's own dashboard",
      ),
    decideBy: Timestamp.nullable().describe(
      "Until then the seller decides; afterwards it is approved. null: nobody had to decide",
    ),
    decidedBy: z
      .enum(["rules", "seller", "admin"])
      .nullable()
      .describe("rules: it was never used, its seller let the time pass, or the payment had bought nothing"),
    approvalReason,
    decisionNote: z.string().nullable().describe("Why it was rejected, or canceled by the service"),
    failureCode: z.string().nullable().describe("Why the payment provider could not give it back"),
    createdAt: Timestamp,
    decidedAt: Timestamp.nullable(),
    completedAt: Timestamp.nullable().describe("When it succeeded, failed, was rejected or canceled"),
    returnedAt: Timestamp.nullable().describe(
      "When the buyer's bank sent back what had succeeded: they are still owed it, and get it in another way",
    ),
    settledAt: Timestamp.nullable().describe("When they got that in another way"),
  })
  .meta({ id: "Refund" });

const person = z.object({ id: z.string(), name: z.string() });

export const AdminRefund = Refund.extend({ buyer: person, seller: person }).meta({ id: "AdminRefund" });

/** Whether a buyer may ask for the money back, as a purchase tells it. */
export const Refundable = z
  .object({
    until: Timestamp.nullable().describe("The end of the refund window; null until completed"),
    amount: Amount.describe("What would be given back; 0 where reasonIfNot says why nothing is"),
    reasonIfNot: z.enum(refundObstacles).nullable(),
    approval: z
      .enum(["instant", "seller"])
      .nullable()
      .describe(
        "Who approves it if you ask now: the rules at once, or the seller; null where reasonIfNot says why nobody can",
      ),
    approvalReason,
    instantFrom: Timestamp.nullable().describe(
      "From when it would be approved at once, where approvalReason is recent_instant_refund and the window is open then; else null",
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
  .meta({ id: "OrderEvent", description: "Something that happened to a purchase." });

const reason = visibleText(200)
  .min(1)
  .describe(`Your words, or one of: ${refundReasons.join(", ")}`);
const details = visibleText(2_000).min(1).optional();

export const RequestRefund = z.strictObject({ reason, details }).meta({ id: "RequestRefund" });

export const RejectRefund = z
  .strictObject({ reason: visibleText(2_000).min(1).describe("Shown to the buyer") })
  .meta({ id: "RejectRefund" });

export const GiveRefund = z
  .strictObject({
    amount: z.number().positive().optional().describe("All that remains when omitted"),
    reason,
  })
  .meta({ id: "GiveRefund" });

export const RefundedBuyers = z
  .object({
    productId: z.string(),
    orders: z.int().describe("How many purchases are refunded, one after the other"),
    since: Timestamp.describe("Of purchases since then"),
  })
  .meta({ id: "RefundedBuyers" });

export type RefundStatus = (typeof refundStatuses)[number];
export type ApprovalReason = (typeof approvalReasons)[number];
export type RefundObstacle = (typeof refundObstacles)[number];
export type Refund = z.input<typeof Refund>;
export type AdminRefund = z.input<typeof AdminRefund>;
export type Refundable = z.input<typeof Refundable>;
export type OrderEvent = z.input<typeof OrderEvent>;
export type RequestRefund = z.output<typeof RequestRefund>;
export type GiveRefund = z.output<typeof GiveRefund>;
export type RefundedBuyers = z.input<typeof RefundedBuyers>;

const reads = { who: "member", permission: "purchases:read" } as const;
const writes = { who: "member", permission: "purchases:write" } as const;
/** A seller's, who may do so with what may change the product. */
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
  summary: "Ask for the money of a purchase back",
  description:
    "What was never revealed, downloaded or run is approved at once, within the refund window; of anything else the seller decides, and after 7 days it is approved. Outside the window: 422 with the reason refund_window_expired. For some time after such a refund the seller decides about the next one: for 30 days after the first, 90 after the second, 180 after each later one. approvalReason says which it is, here and in refundable of the purchase. One at a time: while another refund of it is open, 409 CONFLICT names it as refundId; while its payment is disputed, 409 INVALID_STATE.",
  access: writes,
  params: ofOrder,
  body: RequestRefund,
  data: Refund,
  status: 201,
  errors: ["ORDER_NOT_FOUND", "INVALID_STATE", "ALREADY_REFUNDED", "VALIDATION_ERROR"],
  example: { reason: "not_as_described", details: "It makes limericks." },
});

export const list = endpoint({
  name: "refunds.list",
  method: "GET",
  path: "/refunds",
  summary: "List the refunds of what you bought and sold, newest first",
  access: reads,
  query: z.strictObject({
    ...paging,
    role: filter(z.enum(["buyer", "seller"]), "Only of your purchases, or of your sales"),
    status,
    orderId,
  }),
  data: Refund,
  list: true,
});

export const get = endpoint({
  name: "refunds.get",
  method: "GET",
  path: "/refunds/:refundId",
  summary: "Read one refund",
  access: reads,
  params: ofRefund,
  data: Refund,
  errors: ["REFUND_NOT_FOUND"],
});

const decision = {
  method: "POST",
  access: decides,
  params: ofRefund,
  data: Refund,
  errors: ["REFUND_NOT_FOUND", "INVALID_STATE"],
} as const;

export const approve = endpoint({
  ...decision,
  name: "refunds.approve",
  path: "/refunds/:refundId/approve",
  summary: "Give the money back that a buyer asks for, as the seller",
  description:
    "Or as an administrator. The answer says whether the money is there already (succeeded) or on its way (processing).",
});

export const reject = endpoint({
  ...decision,
  name: "refunds.reject",
  path: "/refunds/:refundId/reject",
  summary: "Reject a refund, as the seller; the buyer gets the reason by email",
  description: "Or as an administrator, and before decideBy. The buyer may ask again within the window.",
  body: RejectRefund,
  example: { reason: "It does what its page says; here is how to set the language." },
});

export const cancel = endpoint({
  ...decision,
  access: writes,
  name: "refunds.cancel",
  path: "/refunds/:refundId/cancel",
  summary: "Take a request back that nobody has decided, as the buyer",
});

export const listAll = endpoint({
  name: "admin.refunds.list",
  method: "GET",
  path: "/admin/refunds",
  summary: "List everybody's refunds, newest first",
  access: admin,
  query: z.strictObject({ ...paging, status, orderId }),
  data: AdminRefund,
  list: true,
});

export const give = endpoint({
  name: "admin.orders.refund",
  method: "POST",
  path: "/admin/orders/:orderId/refund",
  summary: "Give money of a purchase back, all that remains or a part of it, at any time",
  description:
    "Not while its payment is disputed. A part leaves the buyer the product; with the last part it is gone. While all that remains is on its way: 409 CONFLICT.",
  access: admin,
  params: ofOrder,
  body: GiveRefund,
  data: Refund,
  status: 201,
  errors: ["ORDER_NOT_FOUND", "INVALID_STATE", "ALREADY_REFUNDED", "VALIDATION_ERROR"],
  example: { amount: 5, reason: "not_working" },
});

export const refundBuyers = endpoint({
  name: "admin.products.refundBuyers",
  method: "POST",
  path: "/admin/products/:productId/refund-buyers",
  summary: "Give all buyers of the last 90 days their money back",
  description:
    "Of a product that is suspended as malicious or illegal: whatever remains of each price, used or not; what is disputed is left to the bank. A job carries it out, and goes on where it was interrupted; asked again, only those follow who are still without a refund.",
  access: admin,
  params: z.object({ productId: z.string() }),
  data: RefundedBuyers,
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE"],
});
