import { z } from "zod";
import { isCountry } from "../accounts/countries.ts";
import { endpoint, listOf, one } from "../core/endpoint.ts";
import {
  Amount,
  Currency,
  filter,
  paging,
  QueryCurrency,
  queryFlag,
  queryNumber,
  Timestamp,
} from "../core/envelope.ts";
import { orderStatuses, PurchaseDetail, receiptNumber, taxRate } from "./purchases.ts";

const person = z.object({ id: z.string(), name: z.string() });
const rate = z.int().describe("In basis points");

export const Sale = z
  .object({
    orderId: z.string(),
    status: z.enum(orderStatuses),
    amount: Amount.describe("What the buyer paid: fee, commission, tax and earnings together"),
    currency: Currency,
    refundedAmount: Amount.describe("Each part is refunded in its proportion"),
    fee: Amount.describe("The marketplace's part"),
    commission: Amount.describe("The referrer's part"),
    tax: Amount.describe("Tax that the marketplace must pay"),
    earnings: Amount.describe("The seller's part, before refunds"),
    referralCode: PurchaseDetail.shape.referralCode,
    product: z.object({ id: z.string(), title: z.string(), type: z.string(), version: z.string() }),
    buyer: person,
    createdAt: Timestamp,
    completedAt: Timestamp.nullable(),
  })
  .meta({ id: "Sale" });

const shares = z.object({ fee: Amount, commission: Amount, tax: Amount, earnings: Amount });

export const SaleDetail = Sale.extend({
  ...PurchaseDetail.pick({ lines: true, taxRate: true, discountCode: true }).shape,
  receiptNumber,
  refundDays: z.int(),
  maturesAt: Timestamp.nullable().describe("From when its earnings can be paid out"),
  firstUsedAt: Timestamp.nullable().describe(
    "When the buyer first revealed, downloaded or ran the product; null: never",
  ),
  access: PurchaseDetail.shape.entitlement
    .unwrap()
    .shape.status.nullable()
    .describe("The buyer's right to use the product; null: the buyer already had it"),
  ifRefunded: shares.describe("What a refund of all that remains would take from each part"),
}).meta({ id: "SaleDetail" });

export const AdminOrder = Sale.extend({ seller: person }).meta({
  id: "AdminOrder",
  description: "An order as administrators see it.",
});

export const AdminOrderDetail = AdminOrder.extend({
  ...PurchaseDetail.pick({ lines: true, taxRate: true, discountCode: true }).shape,
  ...PurchaseDetail.pick({ paymentMethod: true, declineCode: true }).shape,
  referrer: person.nullable(),
  rates: z.object({ fee: rate, commission: rate }),
  processorFee: Amount.nullable().describe(
    "The payment provider's fee; null: not known, or nothing was paid",
  ),
  paymentId: z.string().nullable().describe("The payment provider's id"),
  paymentMethodId: z.string().nullable(),
  refundDays: z.int(),
  maturesAt: Timestamp.nullable().describe("From when its earnings can be paid out"),
  receiptNumber,
}).meta({ id: "AdminOrderDetail" });

const MAX_QUOTED_COUNTRIES = 30;

const QuoteSale = z.strictObject({
  price: queryNumber(z.number().positive()).describe("In the unit of the currency"),
  currency: QueryCurrency.optional().describe("Default: the marketplace's"),
  countries: z
    .string()
    .max(MAX_QUOTED_COUNTRIES * 3 - 1)
    .refine(
      (text) => text.split(",").every(isCountry),
      "must be ISO 3166-1 codes with commas between them: DE,US",
    )
    .describe(`The buyers' countries, at most ${MAX_QUOTED_COUNTRIES}, separated by commas: DE,FR,US`),
  commissionBasisPoints: queryNumber(z.int().min(0).max(10_000))
    .optional()
    .describe("The commission of a referrer; default: the rate of your account"),
});

export const SaleQuote = z
  .object({
    price: Amount,
    currency: Currency,
    decimals: z.int().min(0).max(3).describe("The decimals of the currency: JPY 0, USD 2, KWD 3"),
    feeBasisPoints: rate.describe("The marketplace's part of the net price, in basis points"),
    commissionBasisPoints: rate.describe("The referrer's part of the net price, in basis points"),
    countries: z.array(
      z.object({
        country: z.string(),
        taxRate,
        total: Amount.describe("What the buyer pays: tax, fee and earnings together"),
        tax: Amount,
        fee: Amount,
        earnings: Amount.describe("Your part of a sale without a referral"),
        referred: z
          .object({ commission: Amount, earnings: Amount })
          .describe("The referrer's and your part of a sale with a referral"),
      }),
    ),
  })
  .meta({ id: "SaleQuote" });

export type QuoteSale = z.output<typeof QuoteSale>;
export type SaleQuote = z.input<typeof SaleQuote>;
export type Sale = z.input<typeof Sale>;
export type SaleDetail = z.input<typeof SaleDetail>;
export type AdminOrder = z.input<typeof AdminOrder>;
export type AdminOrderDetail = z.input<typeof AdminOrderDetail>;

const moment = z.iso.datetime({ offset: true }).optional();
const filters = {
  status: filter(z.enum(orderStatuses)),
  from: moment.describe("Created from this time, inclusive"),
  to: moment.describe("Created until this time, exclusive"),
};

export const list = endpoint({
  name: "sales.list",
  method: "GET",
  path: "/sales",
  summary: "List your sales, newest first",
  description:
    "Paid purchases, also refunded and disputed ones, and free copies; others have no status here. Totals are exact up to 10,000, above that a lower bound.",
  access: { who: "member", permission: "purchases:read", rolePermission: "manage:products" },
  query: z.strictObject({
    ...paging,
    ...filters,
    productId: filter(z.string().max(100)),
    referred: queryFlag.describe("Only purchases with a referral code"),
    referralCode: filter(z.string().max(100), "Only purchases with this referral code"),
  }),
  response: listOf(Sale),
});

export const quote = endpoint({
  name: "sales.quote",
  method: "GET",
  path: "/sales/quote",
  summary: "Calculate what a sale at a price would pay you",
  description: "By the rates of today, for buyers of each country. It needs no product and writes nothing.",
  access: { who: "member", permission: "purchases:read" },
  query: QuoteSale,
  response: one(SaleQuote),
  errors: ["VALIDATION_ERROR"],
});

export const get = endpoint({
  name: "sales.get",
  method: "GET",
  path: "/sales/:orderId",
  summary: "Read one sale",
  access: { who: "member", permission: "purchases:read", rolePermission: "manage:products" },
  params: z.object({ orderId: z.string() }),
  response: one(SaleDetail),
  errors: ["ORDER_NOT_FOUND"],
});

export const orders = endpoint({
  name: "admin.orders.list",
  method: "GET",
  path: "/admin/orders",
  summary: "List the orders of all accounts, newest first",
  description: "Totals are exact up to 10,000, above that a lower bound.",
  access: { who: "admin" },
  query: z.strictObject({
    ...paging,
    ...filters,
    buyer: z.string().max(100).optional().describe("The id of the buyer"),
    seller: z.string().max(100).optional().describe("The id of the seller"),
    product: filter(z.string().max(100), "The id of the product"),
  }),
  response: listOf(AdminOrder),
});

export const order = endpoint({
  name: "admin.orders.get",
  method: "GET",
  path: "/admin/orders/:orderId",
  summary: "Read any order",
  access: { who: "admin" },
  params: z.object({ orderId: z.string() }),
  response: one(AdminOrderDetail),
  errors: ["ORDER_NOT_FOUND"],
});
