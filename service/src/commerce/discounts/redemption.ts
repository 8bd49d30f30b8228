import type { Context } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import { shareOf } from "../../core/money/split.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  countOrdersWithCode,
  type DiscountCodeRow,
  findCodeByName,
  isUnchanged,
  reserveRedemption,
} from "./queries.ts";

/** `seenAt`: the version of the code from which the amount was computed. */
export interface Discount {
  id: string;
  code: string;
  amountMinor: bigint;
  seenAt: Date;
  limits: Pick<DiscountCodeRow, "redemptions" | "maxRedemptions" | "maxPerBuyer">;
}

interface Priced {
  id: string;
  authorId: string;
  priceMinor: bigint;
  currency: string;
}

const invalidCodeError = (reason: string) => ruleViolation("discountCode", reason);
const usedUpError = () => invalidCodeError("is used up");
const usedByBuyerError = () => invalidCodeError("has no redemptions left for your account");

/** The limits of a code are checked when it is redeemed. */
export async function findDiscount(ctx: Context, product: Priced, code: string): Promise<Discount> {
  const found = await findCodeByName(ctx.db, product.authorId, code.trim());
  if (!found) throw invalidCodeError("is unknown for this product's seller");
  mustBeInTime(found, ctx.now());
  mustApplyToProduct(found, product);
  return {
    id: found.id,
    code: found.code,
    amountMinor: discountAmount(found, product),
    seenAt: found.updatedAt,
    limits: found,
  };
}

function mustBeInTime({ startsAt, endsAt }: DiscountCodeRow, now: Date): void {
  if (startsAt && now < startsAt) throw invalidCodeError(`is valid from ${startsAt.toISOString()}`);
  if (endsAt && now >= endsAt) throw invalidCodeError(`was valid until ${endsAt.toISOString()}`);
}

function mustApplyToProduct(code: DiscountCodeRow, product: Priced): void {
  if (code.productId !== null && code.productId !== product.id)
    throw invalidCodeError("is for another product");
  if (code.currency === null || code.currency === product.currency) return;
  throw invalidCodeError(`is in ${code.currency}, and this product is sold in ${product.currency}`);
}

function discountAmount(
  { percentBasisPoints, amountOffMinor }: DiscountCodeRow,
  { priceMinor }: Priced,
): bigint {
  if (percentBasisPoints !== null) return shareOf(priceMinor, percentBasisPoints);
  const amountMinor = required(amountOffMinor, "the amount of a code without a percentage");
  return amountMinor < priceMinor ? amountMinor : priceMinor;
}

/**
 * Runs in the transaction that inserts the order. The row lock serializes parallel purchases, so that a limit holds. A trigger on orders
 * releases the redemption (0003_purchases.sql).
 */
export async function redeemDiscount(
  tx: Tx,
  discount: Discount,
  order: { id: string; buyerId: string },
): Promise<void> {
  const reserved = await reserveRedemption(tx, discount.id, discount.seenAt);
  if (!reserved) {
    const isUsedUp = await isUnchanged(tx, discount.id, discount.seenAt);
    throw isUsedUp ? usedUpError() : invalidCodeError("changed during the purchase: try again");
  }
  if (reserved.maxPerBuyer === null) return;
  const orders = await countOrdersWithCode(tx, {
    codeId: discount.id,
    buyerId: order.buyerId,
    exceptOrderId: order.id,
  });
  if (orders >= reserved.maxPerBuyer) throw usedByBuyerError();
}

/** Checks the limits as of now, without redeeming. `openOrder`: the buyer's order that the purchase continues or cancels. */
export async function mustBeRedeemable(
  ctx: Context,
  { id, limits }: Discount,
  {
    buyerId,
    openOrder,
  }: { buyerId: string; openOrder: { id: string; discountCodeId: string | null } | undefined },
): Promise<void> {
  const redemptions = limits.redemptions - (openOrder?.discountCodeId === id ? 1 : 0);
  if (limits.maxRedemptions !== null && redemptions >= limits.maxRedemptions) throw usedUpError();
  if (limits.maxPerBuyer === null) return;
  const orders = await countOrdersWithCode(ctx.db, { codeId: id, buyerId, exceptOrderId: openOrder?.id });
  if (orders >= limits.maxPerBuyer) throw usedByBuyerError();
}
