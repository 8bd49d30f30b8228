import type { CreatePurchase, NewPurchase, Purchase, PurchaseDetail } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import { majorOf } from "../../catalog/entitlements/entitlements.ts";
import { findRunnableVersion } from "../../catalog/products/product-lookup.ts";
import { avatarUrl } from "../../catalog/search/card.ts";
import { type Context, type Member, viewOf } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import type { Queries } from "../../platform/db/database.ts";
import { mapPage } from "../../platform/db/paging.ts";
import { inPipelinedTransaction } from "../../platform/db/pipeline.ts";
import { REFERRAL_COOKIE } from "../../platform/http/referral-cookie.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { isChargeOpen } from "../charges/charge-queries.ts";
import { cancelCharge, charge, chargeInserted, refreshCharge } from "../charges/charges.ts";
import { redeemDiscount } from "../discounts/redemption.ts";
import { toOrderLines } from "../orders/order-lines.ts";
import {
  findOpenOrder,
  findOwnOrder,
  insertOrder,
  isAlreadyOwned,
  listOrders,
  type NewOrder,
  type OrderFilter,
  type OrderRow,
} from "../orders/queries.ts";
import { receiptNumberOf } from "../orders/receipt-number.ts";
import { expiredReferralError } from "../referrals/referrals.ts";
import { completeOrder, orderTarget } from "./order-payment.ts";
import { orderTimeline } from "./order-timeline.ts";
import { downloadUrl, receiptUrls } from "./purchase-links.ts";
import { matchesOffer, mustNotOwn, type Offer, offerPurchase } from "./quote.ts";

/** `followedCode`: the referral code of a link that this browser followed in the last 30 days. The purchase consumes it. */
export async function buyProduct(
  ctx: Context,
  caller: Member,
  input: CreatePurchase,
  followedCode?: string | undefined,
) {
  const offer = await offerPurchase(ctx, caller, input, caller.kind === "session" ? followedCode : undefined);
  const response = toPurchaseResponse(
    ctx,
    await chargePlaced(ctx, await placeOrder(ctx, caller, offer), offer),
  );
  if (followedCode !== undefined)
    response.cookies.push({ name: REFERRAL_COOKIE, value: "", maxAgeSeconds: 0 });
  return response;
}

interface PlacedOrder {
  order: OrderRow;
  /** Inserted by this request, and not an open order of an earlier one. */
  isNew: boolean;
}

async function chargePlaced(ctx: Context, { order, isNew }: PlacedOrder, offer: Offer): Promise<OrderRow> {
  if (!isChargeOpen(order)) return order;
  if (isNew) return chargeInserted(ctx, orderTarget, order);
  return matchesOffer(order, offer) ? charge(ctx, orderTarget, order) : order;
}

/** Handles a repeated Idempotency-Key. null: the order was deleted. */
export async function resumePurchase(ctx: Context, caller: Member, orderId: string) {
  const order = await findOwnOrder(ctx.db, caller.userId, requireUuid("ord", orderId));
  return order
    ? toPurchaseResponse(ctx, isChargeOpen(order) ? await charge(ctx, orderTarget, order) : order)
    : null;
}

/** Returns the buyer's one open order for the product, new or existing. */
async function placeOrder(ctx: Context, caller: Member, offer: Offer): Promise<PlacedOrder> {
  let order: OrderRow | null;
  try {
    order = await insertPlaced(ctx, offer, toNewOrder(ctx, caller, offer));
  } catch (error) {
    if (!isAlreadyOwned(error)) throw error;
    await mustNotOwn(ctx, caller, offer.product.id);
    // A refund took the product back meanwhile.
    return placeOrder(ctx, caller, offer);
  }
  if (!order) return continueOpenOrder(ctx, caller, offer);
  failPoint(ctx, "order: created");
  return { order, isNew: true };
}

/** Returns null if the buyer has an open order for the product. One statement, unless more depends on the insert. */
async function insertPlaced(ctx: Context, offer: Offer, order: NewOrder): Promise<OrderRow | null> {
  const isFree = order.totalMinor === 0n;
  if (!isFree && !offer.discount && !ctx.idempotencyKey) return insertOrRefuse(ctx.db, order);
  return inPipelinedTransaction(ctx.pool, nothingToRead, async (tx) => {
    const placed = await insertOrRefuse(tx, order);
    if (!placed) return null;
    const result = isFree ? await completeOrder(ctx, tx, placed, { mayHaveReview: true }) : placed;
    // Last: order updates lock the code after counters and receipt number. A used-up code rolls everything back.
    if (offer.discount) await redeemDiscount(tx, offer.discount, order);
    await ctx.idempotencyKey?.bind(tx, toId("ord", order.id));
    return result;
  });
}

const nothingToRead = async () => {};

async function insertOrRefuse(db: Queries, order: NewOrder): Promise<OrderRow | null> {
  const placement = await insertOrder(db, order);
  if ("order" in placement) return placement.order;
  switch (placement.refusedBy) {
    case "buyer":
      throw new ApiError("INVALID_API_KEY");
    case "seller":
      throw new ApiError("PRODUCT_UNAVAILABLE");
    case "referrer":
      throw expiredReferralError();
    case "open order":
      return null;
  }
}

/** Copies all terms, so that later changes of the product, the code or a rate do not affect the order. */
function toNewOrder(ctx: Context, caller: Member, offer: Offer): NewOrder {
  const { product, split, tax } = offer;
  const now = ctx.now();
  return {
    id: ctx.newId(),
    buyerId: caller.userId,
    sellerId: product.authorId,
    productId: product.id,
    productTitle: product.title,
    productType: product.type,
    productVersion: product.version,
    subtotalMinor: split.subtotalMinor,
    discountMinor: split.discountMinor,
    taxMinor: split.taxMinor,
    totalMinor: split.totalMinor,
    feeMinor: split.feeMinor,
    commissionMinor: split.commissionMinor,
    sellerMinor: split.sellerMinor,
    feeBasisPoints: offer.feeBasisPoints,
    commissionBasisPoints: offer.commissionBasisPoints,
    taxBasisPoints: tax.basisPoints,
    taxInclusive: tax.inclusive,
    taxCountry: tax.country,
    discountCodeId: offer.discount?.id ?? null,
    discountCode: offer.discount?.code ?? null,
    referrerId: offer.referrer?.userId ?? null,
    referralCode: offer.referrer?.code ?? null,
    currency: product.currency,
    refundDays: product.refundDays,
    paymentMethodId: offer.methodId,
    createdAt: now,
    askedAt: offer.methodId === null ? null : now,
  };
}

/**
 * Continues the open order, or cancels it if its terms differ. Binds the idempotency key only to an order with the same terms, because a
 * repeat charges the bound order.
 */
async function continueOpenOrder(ctx: Context, caller: Member, offer: Offer): Promise<PlacedOrder> {
  const { product } = offer;
  const open = await findOpenOrder(ctx.db, caller.userId, product.id);
  if (open && matchesOffer(open, offer)) {
    await ctx.idempotencyKey?.bind(ctx.db, toId("ord", open.id));
    return { order: open, isNew: false };
  }
  if (open && isChargeOpen(await cancelCharge(ctx, orderTarget, open))) return { order: open, isNew: false };
  // The order was settled or canceled meanwhile: start again with its result.
  await mustNotOwn(ctx, caller, product.id);
  return placeOrder(ctx, caller, offer);
}

function toPurchaseResponse(ctx: Context, order: OrderRow): DataResponse<NewPurchase> {
  if (order.status === "failed" || order.status === "canceled") {
    throw new ApiError("INSUFFICIENT_FUNDS", undefined, {
      declineCode: order.declineCode ?? "canceled",
      orderId: toId("ord", order.id),
    });
  }
  return new DataResponse(toNewPurchase(ctx, order), { status: order.status === "completed" ? 201 : 202 });
}

function toNewPurchase(ctx: Context, order: OrderRow): NewPurchase {
  return {
    orderId: toId("ord", order.id),
    status: order.status,
    amount: toDecimal(order.totalMinor, order.currency),
    currency: order.currency,
    downloadUrl: downloadUrl(ctx, order),
    receipt: receiptUrls(ctx, order),
    ...(order.status === "requires_action" && order.actionUrl && { nextAction: { url: order.actionUrl } }),
  };
}

function toPurchase(ctx: Context, order: OrderRow): Purchase {
  return {
    ...toNewPurchase(ctx, order),
    refundedAmount: toDecimal(order.refundedMinor, order.currency),
    product: {
      id: toId("prod", order.productId),
      title: order.productTitle,
      type: order.productType,
      version: order.productVersion,
      author: {
        id: toUserId(order.sellerId),
        name: order.sellerName,
        handle: order.sellerHandle,
        avatar: avatarUrl(order.sellerAvatar, ctx.links.origin()),
      },
    },
    createdAt: order.createdAt.toISOString(),
    completedAt: order.completedAt?.toISOString() ?? null,
  };
}

export async function listPurchases(
  ctx: Context,
  caller: Member,
  query: Omit<OrderFilter, "productId"> & { productId?: string | undefined },
) {
  const productId = query.productId === undefined ? undefined : toUuid("prod", query.productId);
  const page = await listOrders(ctx, caller.userId, { ...query, productId });
  return mapPage(page, (order) => {
    const purchase = toPurchase(ctx, order);
    return viewOf(caller) ? withoutLinks(purchase) : purchase;
  });
}

/** The links work without a session, and a download counts as the buyer's first use. */
function withoutLinks({ nextAction: _, ...purchase }: Purchase): Purchase {
  return { ...purchase, downloadUrl: null, receipt: { url: null, pdf: null } };
}

/** Refreshes an open order first: the buyer may just have confirmed the charge. */
export async function readPurchase(ctx: Context, caller: Member, orderId: string): Promise<PurchaseDetail> {
  const id = toUuid("ord", orderId);
  const found = id ? await findOwnOrder(ctx.db, caller.userId, id) : undefined;
  if (!found) throw new ApiError("ORDER_NOT_FOUND");
  const order = await refreshCharge(ctx, orderTarget, found);
  return {
    ...toPurchase(ctx, order),
    lines: toOrderLines(order),
    taxRate: taxRateOf(order),
    discountCode: order.discountCode,
    referralCode: order.referralCode,
    receipt: { ...receiptUrls(ctx, order), number: receiptNumberOf(order) },
    paymentMethod: order.paymentMethod,
    declineCode: order.declineCode,
    entitlement: await readEntitlement(ctx, order),
    ...(await orderTimeline(ctx, order)),
  };
}

async function readEntitlement(ctx: Context, order: OrderRow): Promise<PurchaseDetail["entitlement"]> {
  if (!order.entitlementStatus) return null;
  const major = majorOf(order.productVersion);
  const newest = await findRunnableVersion(ctx.db, order.productId, { major, pinned: undefined });
  return {
    status: order.entitlementStatus,
    version: newest?.version ?? order.productVersion,
    latestVersion: order.latestVersion,
  };
}
