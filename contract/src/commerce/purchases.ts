import { z } from "zod";
import { authorFields } from "../accounts/seller-profile.ts";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, Timestamp } from "../core/envelope.ts";
import { OrderEvent, Refund, Refundable } from "./refunds.ts";

export const orderStatuses = [
  "pending",
  "requires_action",
  "completed",
  "failed",
  "canceled",
  "partially_refunded",
  "refunded",
  "disputed",
] as const;

const link = (until: string) =>
  z.url().nullable().describe(`Opens in a browser for about an hour; each GET gives it anew. null: ${until}`);
const paid = "not paid yet";
const receipt = z.object({ url: link(paid), pdf: link(paid) });
export const receiptNumber = z
  .string()
  .nullable()
  .describe("R-3F7K2-2026-00042: without gaps in a seller's year; null until completed");
const nextAction = z
  .object({ url: z.url() })
  .optional()
  .describe("Where the buyer confirms the payment, while the status is requires_action");

export const NewPurchase = z
  .object({
    orderId: z.string(),
    status: z.enum(orderStatuses),
    amount: Amount.describe("The paid amount, with tax"),
    currency: Currency,
    downloadUrl: link("not paid yet, or not yours to use any more"),
    receipt,
    nextAction,
  })
  .meta({ id: "NewPurchase" });

export const Purchase = NewPurchase.extend({
  refundedAmount: Amount.describe("The amount that refunds and disputes returned"),
  product: z.object({
    id: z.string(),
    title: z.string().describe("As it was at the purchase"),
    type: z.string(),
    version: z.string().describe("The version that was bought"),
    author: z.object(authorFields),
  }),
  createdAt: Timestamp,
  completedAt: Timestamp.nullable().describe("When it was paid; null: not yet, or never"),
}).meta({ id: "Purchase" });

const lines = z
  .object({ subtotal: Amount, discount: Amount, tax: Amount, total: Amount })
  .describe("total = subtotal − discount, + tax unless the price includes it");
export const taxRate = z
  .object({ percent: z.number(), inclusive: z.boolean(), country: z.string() })
  .nullable()
  .describe("How lines.tax was calculated; inclusive: the price includes it. null: no tax");

export const PurchaseDetail = Purchase.extend({
  lines,
  taxRate,
  discountCode: z.string().nullable(),
  referralCode: z.string().nullable(),
  receipt: receipt.extend({ number: receiptNumber }),
  paymentMethod: z
    .object({ brand: z.string(), last4: z.string() })
    .nullable()
    .describe("null: not paid, or free"),
  declineCode: z.string().nullable().describe("Why it could not be paid, as the payment provider reports it"),
  entitlement: z
    .object({
      status: z
        .enum(["active", "held", "revoked"])
        .describe("held: a refund is in progress, and the product cannot be used meanwhile"),
      version: z
        .string()
        .describe("The newest version of the purchased major version: the one that you read and run"),
      latestVersion: z.string().describe("The newest of all"),
    })
    .nullable()
    .describe("null: not paid, or the buyer already had the product"),
  refundable: Refundable,
  refunds: z.array(Refund).describe("Newest first"),
  events: z.array(OrderEvent).describe("The events of the purchase, in order"),
}).meta({ id: "PurchaseDetail" });

export const CreatePurchase = z
  .strictObject({
    productId: z.string().min(1).max(100),
    paymentMethodId: z.string().min(1).max(100).optional().describe("Default: your default method"),
    referralCode: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe("The code of the account that referred you: it gets a commission"),
    discountCode: z.string().min(1).max(100).optional().describe("A code of the seller, in any case"),
    expectedPrice: z
      .number()
      .min(0)
      .optional()
      .describe("Refuse with PRICE_CHANGED if the price after the discount, before added tax, differs"),
    expectedTotal: z
      .number()
      .min(0)
      .optional()
      .describe(
        "Refuse with PRICE_CHANGED if the amount to pay, with tax, differs: lines.total of the quote",
      ),
  })
  .meta({ id: "CreatePurchase" });

export const QuotePurchase = CreatePurchase.pick({
  productId: true,
  referralCode: true,
  discountCode: true,
}).meta({ id: "QuotePurchase" });

export const PurchaseQuote = z
  .object({
    productId: z.string(),
    currency: Currency,
    decimals: z.int().min(0).max(3).describe("The decimals of the currency: JPY 0, USD 2, KWD 3"),
    lines: lines.describe(
      "total is what a purchase charges: subtotal − discount, + tax unless the price includes it",
    ),
    net: Amount.describe("lines.total − lines.tax"),
    taxRate,
    discountCode: z.string().nullable().describe("As the seller wrote it"),
    referralCode: z.string().nullable(),
    expectedPrice: Amount.describe("lines.subtotal − lines.discount: expectedPrice of POST /purchases"),
    refundDays: z.int().describe("For how many days after the purchase you can ask for a refund"),
  })
  .meta({ id: "PurchaseQuote" });

export type QuotePurchase = z.output<typeof QuotePurchase>;
export type PurchaseQuote = z.input<typeof PurchaseQuote>;
export type CreatePurchase = z.output<typeof CreatePurchase>;
export type NewPurchase = z.input<typeof NewPurchase>;
export type Purchase = z.input<typeof Purchase>;
export type PurchaseDetail = z.input<typeof PurchaseDetail>;
export type OrderStatus = (typeof orderStatuses)[number];

const reads = { who: "member", permission: "purchases:read" } as const;

export const create = endpoint({
  name: "purchases.create",
  method: "POST",
  path: "/purchases",
  summary: "Buy a product",
  description:
    "201: the payment succeeded, or nothing had to be paid. 202: it is pending, or must be confirmed at nextAction.url. A decline is 402 and stays listed as failed. Error details: INSUFFICIENT_FUNDS has declineCode and orderId, ALREADY_PURCHASED orderId, PRICE_CHANGED price, total and currency: total only if it is what differs.",
  access: { who: "member", permission: "purchases:write" },
  request: json(CreatePurchase, { productId: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p" }),
  response: created(NewPurchase, { kind: "pending" }),
  errors: [
    "INSUFFICIENT_FUNDS",
    "PRODUCT_NOT_FOUND",
    "PAYMENT_METHOD_NOT_FOUND",
    "PRODUCT_UNAVAILABLE",
    "ALREADY_PURCHASED",
    "PRICE_CHANGED",
    "VALIDATION_ERROR",
  ],
});

export const quote = endpoint({
  name: "purchases.quote",
  method: "POST",
  path: "/purchases/quote",
  summary: "Calculate what a purchase costs",
  description:
    "Makes the checks of POST /purchases except those of the payment method, and buys nothing. Tax depends on the country of your account. Error details: ALREADY_PURCHASED has orderId.",
  access: reads,
  request: json(QuotePurchase, { productId: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p" }),
  response: one(PurchaseQuote),
  errors: ["PRODUCT_NOT_FOUND", "PRODUCT_UNAVAILABLE", "ALREADY_PURCHASED", "VALIDATION_ERROR"],
});

export const list = endpoint({
  name: "purchases.list",
  method: "GET",
  path: "/purchases",
  summary: "List your purchases, newest first",
  access: reads,
  query: z.strictObject({
    ...paging,
    status: filter(z.enum(orderStatuses)),
    productId: filter(z.string().max(100)),
  }),
  response: listOf(Purchase),
});

export const get = endpoint({
  name: "purchases.get",
  method: "GET",
  path: "/purchases/:orderId",
  summary: "Read one purchase",
  access: reads,
  params: z.object({ orderId: z.string() }),
  response: one(PurchaseDetail),
  errors: ["ORDER_NOT_FOUND"],
});
