import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "../core/envelope.ts";

export const DiscountCode = z
  .object({
    id: z.string(),
    code: z.string(),
    percentOff: z.number().nullable().describe("Of the price, in percent; null: an amount is taken off"),
    amountOff: Amount.nullable().describe("At most the whole price is taken off"),
    currency: Currency.nullable().describe("Of amountOff; null: any"),
    productId: z.string().nullable().describe("null: every product of yours"),
    startsAt: Timestamp.nullable(),
    endsAt: Timestamp.nullable(),
    maxRedemptions: z.int().nullable(),
    maxPerBuyer: z.int().nullable(),
    redemptions: z
      .int()
      .describe("Purchases that hold it now; given back when a payment fails, or all of it is refunded"),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  })
  .meta({ id: "DiscountCode" });

const moment = z.iso.datetime({ offset: true });
const count = z.int().min(1).max(1_000_000_000);
const fields = {
  code: z
    .string()
    .trim()
    .min(1)
    .max(64)
    .regex(/^[A-Za-z0-9_-]*$/, "may hold letters, digits, - and _")
    .describe("Yours alone, whatever its case"),
  percentOff: z
    .number()
    .min(0)
    .max(100)
    .multipleOf(0.01, "has more than two decimals")
    .describe("100 makes free copies"),
  amountOff: z.number().positive("amountOff must be positive"),
  currency: Currency.describe("Of amountOff; the product's, or the marketplace's own, when omitted"),
  productId: z.string().max(100).describe("The one product of yours that it is for"),
  startsAt: moment.describe("Good from this moment on"),
  endsAt: moment.describe("Good before this moment"),
  maxRedemptions: count.describe("How many purchases may hold it"),
  maxPerBuyer: count.describe("How many purchases of one buyer may hold it"),
};

export const CreateDiscountCode = z
  .strictObject({
    ...fields,
    percentOff: fields.percentOff.optional(),
    amountOff: fields.amountOff.optional(),
    currency: fields.currency.optional(),
    productId: fields.productId.nullish(),
    startsAt: fields.startsAt.nullish(),
    endsAt: fields.endsAt.nullish(),
    maxRedemptions: fields.maxRedemptions.nullish(),
    maxPerBuyer: fields.maxPerBuyer.nullish(),
  })
  .meta({ id: "CreateDiscountCode" });

export const ChangeDiscountCode = CreateDiscountCode.partial().meta({ id: "ChangeDiscountCode" });

export type DiscountCode = z.input<typeof DiscountCode>;
export type CreateDiscountCode = z.output<typeof CreateDiscountCode>;
export type ChangeDiscountCode = z.output<typeof ChangeDiscountCode>;

const tag = "discount-codes";
const access = { who: "member", permission: "products:write", rolePermission: "manage:products" } as const;
const params = z.object({ discountCodeId: z.string() });

export const list = endpoint({
  name: "discountCodes.list",
  tag,
  method: "GET",
  path: "/discount-codes",
  summary: "List your discount codes, newest first",
  access,
  query: z.strictObject(paging),
  data: DiscountCode,
  list: true,
});

export const get = endpoint({
  name: "discountCodes.get",
  tag,
  method: "GET",
  path: "/discount-codes/:discountCodeId",
  summary: "Read one discount code",
  access,
  params,
  data: DiscountCode,
  errors: ["DISCOUNT_CODE_NOT_FOUND"],
});

export const create = endpoint({
  name: "discountCodes.create",
  tag,
  method: "POST",
  path: "/discount-codes",
  summary: "Make a discount code",
  description:
    "Takes either percentOff or amountOff. The discount is rounded half-up: half of 19.99 is 10.00, which leaves 9.99. Limits hold however many buy at once. A second code of one name, whatever its case, is 409 CONFLICT.",
  access,
  body: CreateDiscountCode,
  data: DiscountCode,
  status: 201,
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
  example: { code: "SPRING", percentOff: 25, maxRedemptions: 100, maxPerBuyer: 1 },
});

export const change = endpoint({
  name: "discountCodes.change",
  tag,
  method: "PATCH",
  path: "/discount-codes/:discountCodeId",
  summary: "Change a discount code",
  description:
    "Only what you send changes, and holds for what is bought from now on; null takes a limit away. percentOff and amountOff take each other's place. A maxRedemptions below the purchases that hold the code is 422.",
  access,
  params,
  body: ChangeDiscountCode,
  data: DiscountCode,
  conditional: true,
  errors: ["DISCOUNT_CODE_NOT_FOUND", "CONFLICT", "PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
  example: { maxRedemptions: 200 },
});

export const remove = endpoint({
  name: "discountCodes.delete",
  tag,
  method: "DELETE",
  path: "/discount-codes/:discountCodeId",
  summary: "Remove a discount code; what was bought with it stays as it is",
  access,
  params,
  data: z.object({ id: z.string(), deleted: z.literal(true) }),
  errors: ["DISCOUNT_CODE_NOT_FOUND"],
});
