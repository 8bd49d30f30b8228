import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, Timestamp } from "../core/envelope.ts";
import { orderStatuses, PurchaseDetail, receiptNumber } from "./purchases.ts";

const person = z.object({ id: z.string(), name: z.string() });
const rate = z.int().describe("In basis points");

export const Sale = z
  .object({
    orderId: z.string(),
    status: z.enum(orderStatuses),
    amount: Amount.describe("What the buyer paid: fee, commission, tax and earnings together"),
    currency: Currency,
    refundedAmount: Amount.describe("Each part is given back in its proportion"),
    fee: Amount.describe("The marketplace's"),
    commission: Amount.describe("The referrer's"),
    tax: Amount.describe("To be handed on"),
    earnings: Amount.describe("The seller's, before anything was refunded"),
    product: z.object({ id: z.string(), title: z.string(), type: z.string(), version: z.string() }),
    buyer: person,
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "Sale" });

export const AdminOrder = Sale.extend({ seller: person }).meta({
  id: "AdminOrder",
  description: "An order as administrators see it.",
});

export const AdminOrderDetail = AdminOrder.extend({
  ...PurchaseDetail.pick({ lines: true, taxRate: true, discountCode: true, referralCode: true }).shape,
  ...PurchaseDetail.pick({ paymentMethod: true, declineCode: true }).shape,
  referrer: person.nullable(),
  rates: z.object({ fee: rate, commission: rate }),
  processorFee: Amount.nullable().describe(
    "What the payment provider kept; null: it has not said, or nothing was paid",
  ),
  paymentId: z.string().nullable().describe("Under which the payment provider knows it"),
  paymentMethodId: z.string().nullable(),
  refundDays: z.int(),
  maturesAt: Timestamp.nullable().describe("From when its earnings may be paid out"),
  receiptNumber,
}).meta({ id: "AdminOrderDetail" });

export type Sale = z.input<typeof Sale>;
export type AdminOrder = z.input<typeof AdminOrder>;
export type AdminOrderDetail = z.input<typeof AdminOrderDetail>;

const moment = z.iso.datetime({ offset: true }).optional();
const filters = {
  status: filter(z.enum(orderStatuses)),
  from: moment.describe("Made from this moment on"),
  to: moment.describe("Made before this moment"),
};

export const list = endpoint({
  name: "sales.list",
  method: "GET",
  path: "/sales",
  summary: "List what was bought of you, newest first",
  description:
    "Purchases that were paid, refunded and disputed ones too, and free copies; the others are not there under any status. Totals are exact to 10,000, above that a lower bound.",
  access: { who: "member", permission: "purchases:read", rolePermission: "manage:products" },
  query: z.strictObject({ ...paging, ...filters, productId: filter(z.string().max(100)) }),
  data: Sale,
  list: true,
});

export const orders = endpoint({
  name: "admin.orders.list",
  method: "GET",
  path: "/admin/orders",
  summary: "List the orders of everybody, newest first",
  description: "Totals are exact to 10,000, above that a lower bound.",
  access: { who: "admin" },
  query: z.strictObject({
    ...paging,
    ...filters,
    buyer: z.string().max(100).optional().describe("The id of the account that bought"),
    seller: z.string().max(100).optional().describe("The id of the account that sold"),
    product: filter(z.string().max(100), "The id of the product"),
  }),
  data: AdminOrder,
  list: true,
});

export const order = endpoint({
  name: "admin.orders.get",
  method: "GET",
  path: "/admin/orders/:orderId",
  summary: "Read one order of anybody's",
  access: { who: "admin" },
  params: z.object({ orderId: z.string() }),
  data: AdminOrderDetail,
  errors: ["ORDER_NOT_FOUND"],
});
