import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, Timestamp } from "../core/envelope.ts";

export const DiscountCode = z
  .object({
    id: z.string(),
    code: z.string(),
    percentOff: z.number().nullable().describe("A discount in percent of the price; null: it is an amount"),
    amountOff: Amount.nullable().describe("The discount is at most the whole price"),
    currency: Currency.nullable().describe("The currency of amountOff; null: any"),
    productId: z.string().nullable().describe("null: all your products"),
    startsAt: Timestamp.nullable(),
    endsAt: Timestamp.nullable(),
    maxRedemptions: z.int().nullable(),
    maxPerBuyer: z.int().nullable(),
    redemptions: z
      .int()
      .describe("Purchases that hold it now; a failed payment or a full refund releases it"),
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
    .describe("Unique among your codes, in any case"),
  percentOff: z
    .number()
    .min(0)
    .max(100)
    .multipleOf(0.01, "has more than two decimals")
    .describe("100 gives free copies"),
  amountOff: z.number().positive("amountOff must be positive"),
  currency: Currency.describe("The currency of amountOff; default: the product's, or the marketplace's"),
  productId: z.string().max(100).describe("The only product that it applies to"),
  startsAt: moment.describe("Valid from this time, inclusive"),
  endsAt: moment.describe("Valid until this time, exclusive"),
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

export const UpdateDiscountCode = CreateDiscountCode.partial().meta({ id: "UpdateDiscountCode" });

export type DiscountCode = z.input<typeof DiscountCode>;
export type CreateDiscountCode = z.output<typeof CreateDiscountCode>;
export type UpdateDiscountCode = z.output<typeof UpdateDiscountCode>;

export const discountStatuses = ["active", "scheduled", "ended", "used_up"] as const;
export type DiscountStatus = (typeof discountStatuses)[number];

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
  query: z.strictObject({
    ...paging,
    status: filter(
      z.enum(discountStatuses),
      "active: it works now; scheduled: from startsAt on; ended: endsAt is over; used_up: maxRedemptions purchases hold it",
    ),
    productId: filter(z.string().max(100), "Only codes that apply to this product, also those for all"),
  }),
  response: listOf(DiscountCode),
});

export const get = endpoint({
  name: "discountCodes.get",
  tag,
  method: "GET",
  path: "/discount-codes/:discountCodeId",
  summary: "Read one discount code",
  access,
  params,
  response: one(DiscountCode),
  errors: ["DISCOUNT_CODE_NOT_FOUND"],
});

export const create = endpoint({
  name: "discountCodes.create",
  tag,
  method: "POST",
  path: "/discount-codes",
  summary: "Create a discount code",
  description:
    "Send either percentOff or amountOff. The discount is rounded half up: half of 19.99 is 10.00, so the price becomes 9.99. Limits hold under any number of parallel purchases. A second code with the same name, in any case, is 409 CONFLICT.",
  access,
  request: json(CreateDiscountCode, { code: "SPRING", percentOff: 25, maxRedemptions: 100, maxPerBuyer: 1 }),
  response: created(DiscountCode),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const update = endpoint({
  name: "discountCodes.update",
  tag,
  method: "PATCH",
  path: "/discount-codes/:discountCodeId",
  summary: "Change a discount code",
  description:
    "Only the fields that you send change, for later purchases; null removes a limit. percentOff and amountOff replace each other. A maxRedemptions below the number of purchases that hold the code is 422.",
  access,
  params,
  request: json(UpdateDiscountCode, { maxRedemptions: 200 }),
  response: one(DiscountCode),
  supportsIfMatch: true,
  errors: ["DISCOUNT_CODE_NOT_FOUND", "CONFLICT", "PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const deleteCode = endpoint({
  name: "discountCodes.delete",
  tag,
  method: "DELETE",
  path: "/discount-codes/:discountCodeId",
  summary: "Delete a discount code; purchases made with it do not change",
  access,
  params,
  response: one(z.object({ id: z.string(), deleted: z.literal(true) })),
  errors: ["DISCOUNT_CODE_NOT_FOUND"],
});
