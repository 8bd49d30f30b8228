import type { CreatePurchase, PurchaseQuote, QuotePurchase } from "@stoa/contract";
import { findCountry } from "../../accounts/people/accounts.ts";
import { findLiveEntitlement } from "../../catalog/entitlements/entitlements.ts";
import { findProductForSale } from "../../catalog/products/product-lookup.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { currencyExponent, formatMoney, toDecimal, toMinor } from "../../core/money/amount.ts";
import { mustBeChargeable } from "../../core/money/chargeable.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { type SaleSplit, splitSale } from "../../core/money/split.ts";
import type { Tax } from "../../integrations/taxes/taxes.ts";
import { inPipeline, waitForAll } from "../../platform/db/pipeline.ts";
import { findDefaultMethod } from "../charges/payment-method-queries.ts";
import { choosePaymentMethod, defaultOr } from "../charges/payment-methods.ts";
import { type Discount, findDiscount, mustBeRedeemable } from "../discounts/redemption.ts";
import { toOrderLines } from "../orders/order-lines.ts";
import { findOpenOrder, type OrderRow } from "../orders/queries.ts";
import { findReferrer, type Referrer } from "../referrals/referrals.ts";

type ProductForSale = NonNullable<Awaited<ReturnType<typeof findProductForSale>>>;

interface Quote {
  product: ProductForSale;
  discount: Discount | null;
  referrer: Referrer | null;
  tax: Tax;
  feeBasisPoints: number;
  commissionBasisPoints: number;
  split: SaleSplit;
  /** null: the buyer has chosen none. */
  chosenMethodId: string | null;
}

export interface Offer extends Quote {
  /** null: the purchase is free. */
  methodId: string | null;
}

/** Runs before the insert everything that may be slow. The insert's transaction redeems the discount code. */
export async function offerPurchase(
  ctx: Context,
  caller: Member,
  input: CreatePurchase,
  followedCode: string | undefined,
): Promise<Offer> {
  const quote = await quotePurchase(ctx, caller, input, followedCode);
  const methodId =
    quote.split.totalMinor === 0n
      ? null
      : await requirePaymentMethod(ctx, caller, input.paymentMethodId, quote);
  return { ...quote, methodId };
}

/** POST /purchases/quote. A code of a followed link is not looked up, because it changes no amount. */
export async function readQuote(ctx: Context, caller: Member, input: QuotePurchase): Promise<PurchaseQuote> {
  const { product, discount, referrer, tax, split } = await quotePurchase(ctx, caller, input);
  if (discount) {
    // A purchase continues or cancels the open order, whose redemption is therefore free.
    const openOrder = await findOpenOrder(ctx.db, caller.userId, product.id);
    await mustBeRedeemable(ctx, discount, { buyerId: caller.userId, openOrder });
  }
  const { currency } = product;
  return {
    productId: toId("prod", product.id),
    currency,
    decimals: currencyExponent(currency),
    lines: toOrderLines({ ...split, currency }),
    net: toDecimal(split.totalMinor - split.taxMinor, currency),
    taxRate: taxRateOf({
      taxBasisPoints: tax.basisPoints,
      taxInclusive: tax.inclusive,
      taxCountry: tax.country,
    }),
    discountCode: discount?.code ?? null,
    referralCode: referrer?.code ?? null,
    expectedPrice: toDecimal(split.subtotalMinor - split.discountMinor, currency),
    refundDays: product.refundDays,
  };
}

async function quotePurchase(
  ctx: Context,
  caller: Member,
  input: CreatePurchase,
  followedCode?: string | undefined,
): Promise<Quote> {
  const { product, entitlement, country, chosenMethodId } = await readTerms(ctx, caller, input.productId);
  mustBeForSale(product, caller);
  if (entitlement) throw alreadyOwnedError(entitlement.orderId);
  const priced = { ...product, priceMinor: BigInt(product.priceMinor) };
  const discount = input.discountCode ? await findDiscount(ctx, priced, input.discountCode) : null;
  const sides = { buyerId: caller.userId, sellerId: product.authorId };
  const referrer = input.referralCode
    ? await findReferrer(ctx, input.referralCode, sides)
    : await findLinkReferrer(ctx, followedCode, sides);
  const discountMinor = discount?.amountMinor ?? 0n;
  const { currency } = product;
  mustMatch(input, "expectedPrice", priced.priceMinor - discountMinor, currency);
  const tax = await ctx.integrations.taxes.taxOf({
    country,
    amountMinor: priced.priceMinor - discountMinor,
    currency: product.currency,
  });
  const rates = {
    feeBasisPoints: ctx.config.feeBasisPoints,
    commissionBasisPoints: referrer ? product.commissionBasisPoints : 0,
  };
  const split = splitSale({ priceMinor: priced.priceMinor, discountMinor, tax, ...rates });
  mustMatch(input, "expectedTotal", split.totalMinor, currency);
  // Discount and tax may result in an amount that the provider cannot charge.
  mustBeChargeable(ctx.integrations.payments, split.totalMinor, product.currency, (why) => {
    const total = formatMoney(split.totalMinor, product.currency);
    return ruleViolation(discount ? "discountCode" : "productId", `leaves ${total} to pay, which ${why}`);
  });
  return { product, discount, referrer, tax, ...rates, split, chosenMethodId };
}

/** One round trip. */
async function readTerms(ctx: Context, { userId }: Member, productId: string) {
  const id = toUuid("prod", productId);
  const [product, entitlement, country, chosenMethodId] = await inPipeline(ctx.pool, (db) =>
    waitForAll([
      findProductForSale(db, productId),
      id === null ? undefined : findLiveEntitlement(db, userId, id),
      findCountry(db, userId),
      findDefaultMethod(db, userId),
    ]),
  );
  return { product, entitlement, country, chosenMethodId };
}

function mustBeForSale(
  product: ProductForSale | undefined,
  caller: Member,
): asserts product is ProductForSale {
  if (!product) throw new ApiError("PRODUCT_NOT_FOUND");
  if (product.authorId === caller.userId) throw ruleViolation("productId", "is your own product");
  if (product.isOnSale) return;
  throw new ApiError(product.firstPublishedAt ? "PRODUCT_UNAVAILABLE" : "PRODUCT_NOT_FOUND");
}

export const alreadyOwnedError = (orderId: string): ApiError =>
  new ApiError("ALREADY_PURCHASED", undefined, { orderId: toId("ord", orderId) });

export async function mustNotOwn(ctx: Context, caller: Member, productId: string): Promise<void> {
  const entitlement = await findLiveEntitlement(ctx.db, caller.userId, productId);
  if (entitlement) throw alreadyOwnedError(entitlement.orderId);
}

/** The buyer only followed a link, so an unusable code, such as their own, is ignored. */
async function findLinkReferrer(
  ctx: Context,
  code: string | undefined,
  sides: Parameters<typeof findReferrer>[2],
): Promise<Referrer | null> {
  if (code === undefined) return null;
  try {
    return await findReferrer(ctx, code, sides);
  } catch (error) {
    if (error instanceof ApiError && error.code === "VALIDATION_ERROR") return null;
    throw error;
  }
}

const NAMES = { expectedPrice: "price", expectedTotal: "total" } as const;

/** Refuses an amount that differs from the one that the buyer saw. */
function mustMatch(
  input: CreatePurchase,
  field: keyof typeof NAMES,
  actualMinor: bigint,
  currency: string,
): void {
  const given = input[field];
  if (given === undefined) return;
  const expected = toMinor(given, currency);
  if (expected === null) throw invalidRequest(field, `is not a valid amount in ${currency}`);
  if (expected === actualMinor) return;
  const [name, actual] = [NAMES[field], toDecimal(actualMinor, currency)];
  throw new ApiError("PRICE_CHANGED", `The ${name} is ${actual} ${currency}.`, { [name]: actual, currency });
}

async function requirePaymentMethod(
  ctx: Context,
  caller: Member,
  requested: string | undefined,
  { chosenMethodId }: Pick<Quote, "chosenMethodId">,
): Promise<string> {
  const methodId =
    requested === undefined
      ? defaultOr(ctx, chosenMethodId)
      : await choosePaymentMethod(ctx, caller.userId, requested);
  if (!methodId) throw ruleViolation("paymentMethodId", "is required: you have no default payment method");
  return methodId;
}

/** An open order with the same terms can be continued. */
export const matchesOffer = (
  order: OrderRow,
  { product, methodId, split, tax, discount, referrer }: Offer,
): boolean =>
  order.productVersion === product.version &&
  order.refundDays === product.refundDays &&
  order.paymentMethodId === methodId &&
  order.currency === product.currency &&
  order.subtotalMinor === split.subtotalMinor &&
  order.discountMinor === split.discountMinor &&
  order.taxMinor === split.taxMinor &&
  order.totalMinor === split.totalMinor &&
  order.taxCountry === tax.country &&
  order.taxBasisPoints === tax.basisPoints &&
  order.taxInclusive === tax.inclusive &&
  order.discountCodeId === (discount?.id ?? null) &&
  order.referrerId === (referrer?.userId ?? null);
