import type { AdminOrder, AdminOrderDetail, OrderStatus, Sale, SaleDetail } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import { findEntitlementByOrder } from "../../catalog/entitlements/entitlements.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { type IdPrefix, toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { splitRefund } from "../../core/money/split.ts";
import { required } from "../../core/required.ts";
import { EMPTY_PAGE, mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { toOrderLines } from "./order-lines.ts";
import { findOrder, type OrderRow } from "./queries.ts";
import { receiptNumberOf } from "./receipt-number.ts";
import { findSale, listSales as findSales, type OrderForAdmin, type SaleRow } from "./sales-queries.ts";

function toSale(order: SaleRow): Sale {
  const amount = (minor: bigint) => toDecimal(minor, order.currency);
  return {
    orderId: toId("ord", order.id),
    status: order.status,
    amount: amount(order.totalMinor),
    currency: order.currency,
    refundedAmount: amount(order.refundedMinor),
    fee: amount(order.feeMinor),
    commission: amount(order.commissionMinor),
    tax: amount(order.taxMinor),
    earnings: amount(order.sellerMinor),
    referralCode: order.referralCode,
    product: {
      id: toId("prod", order.productId),
      title: order.productTitle,
      type: order.productType,
      version: order.productVersion,
    },
    buyer: { id: toUserId(order.buyerId), name: order.buyerName },
    createdAt: order.createdAt.toISOString(),
    completedAt: order.completedAt?.toISOString() ?? null,
  };
}

const toAdminOrder = (order: SaleRow): AdminOrder => ({
  ...toSale(order),
  seller: { id: toUserId(order.sellerId), name: order.sellerName },
});

interface Filters extends Paging {
  status?: OrderStatus | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

const parseTimes = ({ from, to }: Filters) => ({
  from: from === undefined ? undefined : new Date(from),
  to: to === undefined ? undefined : new Date(to),
});

/** undefined: no filter. null: the id is malformed and matches nothing. */
const parseIdFilter = (prefix: IdPrefix, id: string | undefined) =>
  id === undefined ? undefined : toUuid(prefix, id);

export async function listSales(
  ctx: Context,
  caller: Member,
  query: Filters & {
    productId?: string | undefined;
    referred: boolean;
    referralCode?: string | undefined;
  },
): Promise<Page<Sale>> {
  const productId = parseIdFilter("prod", query.productId);
  if (productId === null) return EMPTY_PAGE;
  const filter = { ...query, ...parseTimes(query), productId, sellerId: caller.userId, paid: true };
  return mapPage(await findSales(ctx.db, filter), toSale);
}

/** A paid order of the caller's products. */
export async function findOwnSale(ctx: Context, caller: Member, orderId: string): Promise<OrderForAdmin> {
  const id = toUuid("ord", orderId);
  const sale = id ? await findSale(ctx.db, id) : undefined;
  if (!sale || sale.sellerId !== caller.userId || sale.completedAt === null)
    throw new ApiError("ORDER_NOT_FOUND");
  return sale;
}

export async function readSale(ctx: Context, caller: Member, orderId: string): Promise<SaleDetail> {
  const sale = await findOwnSale(ctx, caller, orderId);
  const order = required(await findOrder(ctx.db, sale.id), "the order of a sale");
  const entitlement = await findEntitlementByOrder(ctx.db, sale.id);
  return {
    ...toSale(sale),
    lines: toOrderLines(order),
    taxRate: taxRateOf(order),
    discountCode: order.discountCode,
    receiptNumber: receiptNumberOf(order),
    refundDays: order.refundDays,
    maturesAt: sale.maturesAt?.toISOString() ?? null,
    firstUsedAt: entitlement?.usedAt?.toISOString() ?? null,
    access: order.entitlementStatus,
    ifRefunded: partsIfRefunded(order),
  };
}

function partsIfRefunded(order: OrderRow): SaleDetail["ifRefunded"] {
  const rest = order.totalMinor - order.refundedMinor;
  if (rest <= 0n) return { fee: 0, commission: 0, tax: 0, earnings: 0 };
  const parts = splitRefund(order, order.refundedMinor, rest);
  const amount = (minor: bigint) => toDecimal(minor, order.currency);
  return {
    fee: amount(parts.feeMinor),
    commission: amount(parts.commissionMinor),
    tax: amount(parts.taxMinor),
    earnings: amount(parts.sellerMinor),
  };
}

interface AdminQuery extends Filters {
  buyer?: string | undefined;
  seller?: string | undefined;
  product?: string | undefined;
}

export async function listAllOrders(ctx: Context, query: AdminQuery): Promise<Page<AdminOrder>> {
  const [buyerId, sellerId] = [parseIdFilter("usr", query.buyer), parseIdFilter("usr", query.seller)];
  const productId = parseIdFilter("prod", query.product);
  if (buyerId === null || sellerId === null || productId === null) return EMPTY_PAGE;
  const filter = { ...query, ...parseTimes(query), buyerId, sellerId, productId, paid: false };
  return mapPage(await findSales(ctx.db, filter), toAdminOrder);
}

export async function readAnyOrder(ctx: Context, orderId: string): Promise<AdminOrderDetail> {
  const id = toUuid("ord", orderId);
  const [sale, order] = id ? [await findSale(ctx.db, id), await findOrder(ctx.db, id)] : [];
  if (!sale || !order) throw new ApiError("ORDER_NOT_FOUND");
  return {
    ...toAdminOrder(sale),
    ...sharesOf(sale),
    lines: toOrderLines(order),
    taxRate: taxRateOf(order),
    discountCode: order.discountCode,
    paymentMethod: order.paymentMethod,
    paymentMethodId: order.paymentMethodId,
    declineCode: order.declineCode,
    refundDays: order.refundDays,
    receiptNumber: receiptNumberOf(order),
  };
}

const sharesOf = (sale: OrderForAdmin) => ({
  referrer: sale.referrer && { id: toUserId(sale.referrer.id), name: sale.referrer.name },
  rates: { fee: sale.feeBasisPoints, commission: sale.commissionBasisPoints },
  processorFee: sale.processorFeeMinor === null ? null : toDecimal(sale.processorFeeMinor, sale.currency),
  paymentId: sale.paymentId,
  maturesAt: sale.maturesAt?.toISOString() ?? null,
});
