import type { CreateDiscountCode, DiscountCode, DiscountStatus, UpdateDiscountCode } from "@stoa/contract";
import { findOwnProducts } from "../../catalog/products/ownership.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal, toMinor } from "../../core/money/amount.ts";
import { findStepAmountProblem } from "../../core/money/chargeable.ts";
import { toBasisPoints, toPercent } from "../../core/money/percent.ts";
import { required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { EMPTY_PAGE, mapPage, type Paging } from "../../platform/db/paging.ts";
import { hasSqlState, UNIQUE_VIOLATION } from "../../platform/db/sql-state.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse } from "../../platform/http/route.ts";
import {
  type DiscountCodeRow,
  type DiscountCodeValues,
  findCode,
  insertCode,
  listCodes,
  lockCode,
  markDeleted,
  updateCode,
} from "./queries.ts";

const toDiscountCode = (code: DiscountCodeRow): DiscountCode => ({
  id: toId("disc", code.id),
  code: code.code,
  percentOff: code.percentBasisPoints === null ? null : toPercent(code.percentBasisPoints),
  amountOff:
    code.amountOffMinor === null
      ? null
      : toDecimal(code.amountOffMinor, required(code.currency, "the currency of an amount")),
  currency: code.currency,
  productId: code.productId && toId("prod", code.productId),
  startsAt: code.startsAt?.toISOString() ?? null,
  endsAt: code.endsAt?.toISOString() ?? null,
  maxRedemptions: code.maxRedemptions,
  maxPerBuyer: code.maxPerBuyer,
  redemptions: code.redemptions,
  createdAt: code.createdAt.toISOString(),
  updatedAt: code.updatedAt.toISOString(),
});

/** Without counters, so that a concurrent sale does not invalidate the ETag. */
const discountEtag = ({ redemptions: _, ...code }: DiscountCode) => etagOf(code);

function toResponse(row: DiscountCodeRow): DataResponse<DiscountCode> {
  const code = toDiscountCode(row);
  return new DataResponse(code, { etag: discountEtag(code) });
}

const notFoundError = () => new ApiError("DISCOUNT_CODE_NOT_FOUND");

function uuidOf(discountCodeId: string): string {
  const id = toUuid("disc", discountCodeId);
  if (!id) throw notFoundError();
  return id;
}

interface DiscountQuery extends Paging {
  status?: DiscountStatus | undefined;
  productId?: string | undefined;
}

export async function listDiscountCodes(
  ctx: Context,
  caller: Member,
  { productId: product, ...query }: DiscountQuery,
) {
  const productId = product === undefined ? undefined : toUuid("prod", product);
  if (productId === null) return EMPTY_PAGE;
  const filter = { ...query, productId, now: ctx.now() };
  return mapPage(await listCodes(ctx.db, caller.userId, filter), toDiscountCode);
}

export async function readDiscountCode(ctx: Context, caller: Member, discountCodeId: string) {
  const code = await findCode(ctx.db, caller.userId, uuidOf(discountCodeId));
  if (!code) throw notFoundError();
  return toResponse(code);
}

export async function createDiscountCode(ctx: Context, caller: Member, input: CreateDiscountCode) {
  const id = ctx.newId();
  const values = await toValues(ctx, ctx.db, caller, input);
  await conflictIfCodeExists(() =>
    ctx.db.transaction().execute(async (tx) => {
      await insertCode(tx, { ...values, id, sellerId: caller.userId, createdAt: ctx.now() });
      await ctx.idempotencyKey?.bind(tx, toId("disc", id));
    }),
  );
  return readDiscountCode(ctx, caller, toId("disc", id));
}

/** Affects new orders only: each order stores its own discount. */
export async function changeDiscountCode(
  ctx: Context,
  caller: Member,
  discountCodeId: string,
  change: UpdateDiscountCode,
  ifMatch: string | null,
): Promise<DataResponse<DiscountCode>> {
  const id = uuidOf(discountCodeId);
  await conflictIfCodeExists(() =>
    ctx.db.transaction().execute(async (tx) => {
      const before = await lockCode(tx, caller.userId, id);
      if (!before) throw notFoundError();
      mustMatch(ifMatch, discountEtag(toDiscountCode(before)));
      const values = await toValues(ctx, tx, caller, mergeChange(toDiscountCode(before), change));
      mustHoldRedemptions(values, before);
      await updateCode(tx, id, values);
    }),
  );
  return readDiscountCode(ctx, caller, discountCodeId);
}

export async function deleteDiscountCode(ctx: Context, caller: Member, discountCodeId: string) {
  const deleted = await markDeleted(ctx.db, caller.userId, uuidOf(discountCodeId), ctx.now());
  if (!deleted) throw notFoundError();
  return { id: discountCodeId, deleted: true as const };
}

/** percentOff and amountOff replace each other. */
function mergeChange(before: DiscountCode, change: UpdateDiscountCode): CreateDiscountCode {
  const isDiscountUnchanged = change.percentOff === undefined && change.amountOff === undefined;
  const percentOff = isDiscountUnchanged ? (before.percentOff ?? undefined) : change.percentOff;
  const amountOff = isDiscountUnchanged ? (before.amountOff ?? undefined) : change.amountOff;
  const currency = amountOff === undefined ? undefined : (before.currency ?? undefined);
  const valueOr = <T>(value: T | undefined, otherwise: T) => (value === undefined ? otherwise : value);
  return {
    code: valueOr(change.code, before.code),
    percentOff,
    amountOff,
    currency: valueOr(change.currency, currency),
    productId: valueOr(change.productId, before.productId),
    startsAt: valueOr(change.startsAt, before.startsAt),
    endsAt: valueOr(change.endsAt, before.endsAt),
    maxRedemptions: valueOr(change.maxRedemptions, before.maxRedemptions),
    maxPerBuyer: valueOr(change.maxPerBuyer, before.maxPerBuyer),
  };
}

async function toValues(
  ctx: Context,
  db: Queries,
  caller: Member,
  input: CreateDiscountCode,
): Promise<DiscountCodeValues> {
  const product = typeof input.productId === "string" ? await ownProduct(db, caller, input.productId) : null;
  const dateOf = (moment: string | null | undefined) => (moment ? new Date(moment) : null);
  const [startsAt, endsAt] = [dateOf(input.startsAt), dateOf(input.endsAt)];
  if (startsAt && endsAt && endsAt <= startsAt) throw invalidRequest("endsAt", "must be after startsAt");
  return {
    ...toDiscountValues(ctx, input, product),
    code: input.code,
    productId: product?.id ?? null,
    startsAt,
    endsAt,
    maxRedemptions: input.maxRedemptions ?? null,
    maxPerBuyer: input.maxPerBuyer ?? null,
    updatedAt: ctx.now(),
  };
}

type Product = Awaited<ReturnType<typeof findOwnProducts>>[number];

async function ownProduct(db: Queries, caller: Member, productId: string): Promise<Product> {
  const id = toUuid("prod", productId);
  const [product] = id ? await findOwnProducts(db, caller.userId, [id]) : [];
  if (!product) throw new ApiError("PRODUCT_NOT_FOUND");
  return product;
}

function toDiscountValues(ctx: Context, input: CreateDiscountCode, product: Product | null) {
  const { percentOff, amountOff } = input;
  if (percentOff !== undefined && amountOff === undefined) {
    if (input.currency !== undefined) throw invalidRequest("currency", "belongs to amountOff");
    const percentBasisPoints = toBasisPoints(String(percentOff));
    // Such as 5e-324, which a check of floating-point numbers takes for a multiple of 0.01.
    if (percentBasisPoints === null) throw invalidRequest("percentOff", "may have at most two decimals");
    return {
      percentBasisPoints,
      amountOffMinor: null,
      currency: null,
    };
  }
  if (amountOff === undefined || percentOff !== undefined)
    throw invalidRequest("percentOff", "or amountOff is needed, and not both of them");
  const currency = currencyOf(ctx, input.currency, product);
  const minor = toMinor(amountOff, currency);
  if (minor === null) throw invalidRequest("amountOff", `is not a valid amount in ${currency}`);
  const why = findStepAmountProblem(ctx.integrations.payments.limitsOf(currency).stepMinor, minor, currency);
  if (why) throw invalidRequest("amountOff", why);
  return { percentBasisPoints: null, amountOffMinor: minor, currency };
}

function currencyOf(ctx: Context, requested: string | undefined, product: Product | null): string {
  const currency = requested ?? product?.currency ?? ctx.config.currency;
  if (!ctx.config.currencies.includes(currency))
    throw invalidRequest("currency", `must be one of ${ctx.config.currencies.join(", ")}`);
  if (product && product.currency !== currency)
    throw ruleViolation("currency", `is not the product's, which is sold in ${product.currency}`);
  return currency;
}

function mustHoldRedemptions(values: DiscountCodeValues, { redemptions }: DiscountCodeRow): void {
  if (values.maxRedemptions === null || values.maxRedemptions >= redemptions) return;
  throw ruleViolation("maxRedemptions", `must be at least ${redemptions}: so many purchases hold the code`);
}

async function conflictIfCodeExists(write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!hasSqlState(error, UNIQUE_VIOLATION)) throw error;
    throw new ApiError("CONFLICT", "You have a discount code of this name already.", { field: "code" });
  }
}
