import type { OrderStatus } from "@stoa/contract";
import { minUuidAt } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface SaleRow {
  id: string;
  status: OrderStatus;
  currency: string;
  totalMinor: bigint;
  refundedMinor: bigint;
  feeMinor: bigint;
  commissionMinor: bigint;
  taxMinor: bigint;
  sellerMinor: bigint;
  referralCode: string | null;
  productId: string;
  productTitle: string;
  productType: string;
  productVersion: string;
  buyerId: string;
  buyerName: string;
  sellerId: string;
  sellerName: string;
  createdAt: Date;
  completedAt: Date | null;
}

export interface SaleFilter extends Paging {
  buyerId?: string | undefined;
  sellerId?: string | undefined;
  productId?: string | undefined;
  /** Only with a referral code. */
  referred?: boolean | undefined;
  referralCode?: string | undefined;
  status?: OrderStatus | undefined;
  from?: Date | undefined;
  to?: Date | undefined;
  /** Includes orders that were refunded later. */
  paid: boolean;
}

/** Ids sort by time, so a range of time is a range of an index. */
function matchingOrders(db: Queries, filter: SaleFilter) {
  const { buyerId, sellerId, productId, referred, referralCode, status, from, to, paid } = filter;
  let orders = db.selectFrom("orders").select("id");
  if (buyerId) orders = orders.where("buyerId", "=", buyerId);
  if (sellerId) orders = orders.where("sellerId", "=", sellerId);
  if (productId) orders = orders.where("productId", "=", productId);
  if (referred) orders = orders.where("referralCode", "is not", null);
  if (referralCode) orders = orders.where("referralCode", "=", referralCode);
  if (status) orders = orders.where("status", "=", status);
  if (from) orders = orders.where("id", ">=", minUuidAt(from));
  if (to) orders = orders.where("id", "<", minUuidAt(to));
  return paid ? orders.where("completedAt", "is not", null) : orders;
}

const selectSales = (db: Queries) =>
  db
    .selectFrom("orders as o")
    .innerJoin("users as b", "b.id", "o.buyerId")
    .innerJoin("users as s", "s.id", "o.sellerId")
    .select([
      "o.id",
      "o.status",
      "o.currency",
      "o.createdAt",
      "o.completedAt",
      "o.totalMinor",
      "o.refundedMinor",
      "o.feeMinor",
      "o.commissionMinor",
      "o.taxMinor",
      "o.sellerMinor",
      "o.referralCode",
      "o.productId",
      "o.productTitle",
      "o.productType",
      "o.productVersion",
      "o.buyerId",
      "b.name as buyerName",
      "o.sellerId",
      "s.name as sellerName",
    ]);

/** Reads the ids of the page first: the rows before it are skipped in the index, without joins. */
export async function listSales(db: Queries, filter: SaleFilter): Promise<Page<SaleRow>> {
  const page = matchingOrders(db, filter).orderBy("id", "desc").limit(filter.limit).offset(offsetOf(filter));
  const items = await selectSales(db)
    .where("o.id", "in", page)
    .orderBy("o.id", "desc")
    .$castTo<NumberAmounts<SaleRow>>()
    .execute();
  const total = await countRows(db, matchingOrders(db, filter));
  return { items: items.map((row) => toBigintAmounts(row)), ...total };
}

export interface OrderForAdmin extends SaleRow {
  referrer: { id: string; name: string } | null;
  feeBasisPoints: number;
  commissionBasisPoints: number;
  processorFeeMinor: bigint | null;
  paymentId: string | null;
  maturesAt: Date | null;
}

export async function findSale(db: Queries, id: string): Promise<OrderForAdmin | undefined> {
  const row = await selectSales(db)
    .leftJoin("users as r", "r.id", "o.referrerId")
    .select([
      "r.id as referrerId",
      "r.name as referrerName",
      "o.feeBasisPoints",
      "o.commissionBasisPoints",
      "o.processorFeeMinor",
      "o.paymentId",
      "o.maturesAt",
    ])
    .where("o.id", "=", id)
    .executeTakeFirst();
  if (!row) return undefined;
  const { referrerId, referrerName, ...rest } = row;
  const referrer =
    referrerId === null ? null : { id: referrerId, name: required(referrerName, "the name of a referrer") };
  return { ...(toBigintAmounts(rest) as Omit<OrderForAdmin, "referrer">), referrer };
}
