import type { OrderStatus } from "@stoa/contract";
import { sql } from "kysely";
import { jsonBuildObject } from "kysely/helpers/postgres";
import type { Context } from "../../core/context.ts";
import type { CardSummary } from "../../integrations/payments/payments.ts";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { Mismatch } from "../charges/charge-attempts.ts";
import { mayBeChargedLate } from "../charges/late-charges.ts";

export const OPEN_ORDER_STATUSES: OrderStatus[] = ["pending", "requires_action"];

export interface OrderRow {
  id: string;
  buyerId: string;
  sellerId: string;
  sellerName: string;
  productId: string;
  /** As they were called when the order was made; sellerName is what the seller is called now. */
  parties: { buyer: { name: string; email: string }; seller: { name: string } };
  productTitle: string;
  productType: string;
  productVersion: string;
  latestVersion: string;
  status: OrderStatus;
  subtotalMinor: bigint;
  discountMinor: bigint;
  taxMinor: bigint;
  totalMinor: bigint;
  refundedMinor: bigint;
  /** Of refunds that are on their way. */
  refundingMinor: bigint;
  feeMinor: bigint;
  commissionMinor: bigint;
  sellerMinor: bigint;
  processorFeeMinor: bigint | null;
  /** Who referred the buyer, and so has the commission. */
  referrerId: string | null;
  referralCode: string | null;
  discountCodeId: string | null;
  discountCode: string | null;
  taxBasisPoints: number;
  /** Whether the price held the tax already. */
  taxInclusive: boolean;
  /** Where the buyer was; null: they had not said. */
  taxCountry: string | null;
  /** null until it is completed, both. */
  receiptYear: number | null;
  receiptNumber: number | null;
  refundDays: number;
  currency: string;
  /** null: nothing had to be paid. */
  paymentMethodId: string | null;
  paymentMethod: CardSummary | null;
  /** What the provider calls the charge. */
  paymentId: string | null;
  declineCode: string | null;
  actionUrl: string | null;
  createdAt: Date;
  completedAt: Date | null;
  /** From when the seller may be paid out for it. */
  maturesAt: Date | null;
  entitlementStatus: "active" | "held" | "revoked" | null;
}

export interface NewOrder {
  id: string;
  buyer_id: string;
  seller_id: string;
  product_id: string;
  buyer_name: string;
  buyer_email: string;
  seller_name: string;
  product_title: string;
  product_type: string;
  product_version: string;
  subtotal_minor: bigint;
  discount_minor: bigint;
  tax_minor: bigint;
  total_minor: bigint;
  fee_minor: bigint;
  commission_minor: bigint;
  seller_minor: bigint;
  fee_basis_points: number;
  commission_basis_points: number;
  tax_basis_points: number;
  tax_inclusive: boolean;
  tax_country: string | null;
  discount_code_id: string | null;
  discount_code: string | null;
  referrer_id: string | null;
  referral_code: string | null;
  currency: string;
  refund_days: number;
  payment_method_id: string | null;
  created_at: Date;
}

/** Writes the order as pending; false when the buyer has an open one for this product already. */
export async function insertOrder(tx: Tx, order: NewOrder): Promise<boolean> {
  const written = await tx
    .insertInto("orders")
    .values({ ...order, status: "pending" })
    .onConflict((conflict) =>
      conflict
        .columns(["buyer_id", "product_id"])
        .where("status", "in", ["pending", "requires_action"])
        .doNothing(),
    )
    .returning("id")
    .executeTakeFirst();
  return written !== undefined;
}

const orders = (db: Queries) =>
  db
    .selectFrom("orders as o")
    .innerJoin("users as s", "s.id", "o.seller_id")
    .innerJoin("products as p", "p.id", "o.product_id")
    .leftJoin("entitlements as e", "e.order_id", "o.id")
    .select([
      ...(["o.id", "o.status", "o.currency"] as const),
      ...(["o.buyer_id as buyerId", "o.seller_id as sellerId", "s.name as sellerName"] as const),
      ...([
        "o.product_id as productId",
        "o.product_title as productTitle",
        "o.product_type as productType",
      ] as const),
      "o.product_version as productVersion",
      ...(["o.subtotal_minor as subtotalMinor", "o.discount_minor as discountMinor"] as const),
      ...(["o.tax_minor as taxMinor", "o.total_minor as totalMinor"] as const),
      ...(["o.refunded_minor as refundedMinor", "o.refunding_minor as refundingMinor"] as const),
      ...(["o.payment_method_id as paymentMethodId", "o.payment_id as paymentId"] as const),
      ...(["o.fee_minor as feeMinor", "o.commission_minor as commissionMinor"] as const),
      ...(["o.seller_minor as sellerMinor", "o.processor_fee_minor as processorFeeMinor"] as const),
      ...(["o.referrer_id as referrerId", "o.refund_days as refundDays"] as const),
      ...(["o.referral_code as referralCode", "o.discount_code_id as discountCodeId"] as const),
      ...(["o.discount_code as discountCode", "o.tax_country as taxCountry"] as const),
      ...(["o.tax_basis_points as taxBasisPoints", "o.tax_inclusive as taxInclusive"] as const),
      ...(["o.receipt_year as receiptYear", "o.receipt_number as receiptNumber"] as const),
      ...([
        "o.payment_method as paymentMethod",
        "o.decline_code as declineCode",
        "o.action_url as actionUrl",
      ] as const),
      ...([
        "o.created_at as createdAt",
        "o.completed_at as completedAt",
        "o.matures_at as maturesAt",
        "e.status as entitlementStatus",
      ] as const),
    ])
    // Later versions wait for moderators.
    .select(sql<string>`array_to_string(p.released, '.')`.as("latestVersion"))
    .select((row) =>
      jsonBuildObject({
        buyer: jsonBuildObject({ name: row.ref("o.buyer_name"), email: row.ref("o.buyer_email") }),
        seller: jsonBuildObject({ name: row.ref("o.seller_name") }),
      }).as("parties"),
    )
    .$castTo<NumberAmounts<OrderRow>>();

const findOne = async (query: ReturnType<typeof orders>): Promise<OrderRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && toBigintAmounts(row);
};

export const findOrder = (db: Queries, id: string) => findOne(orders(db).where("o.id", "=", id));

export const findOwnOrder = (db: Queries, buyerId: string, id: string) =>
  findOne(orders(db).where("o.id", "=", id).where("o.buyer_id", "=", buyerId));

export const findOpenOrder = (db: Queries, buyerId: string, productId: string) =>
  findOne(
    orders(db)
      .where("o.buyer_id", "=", buyerId)
      .where("o.product_id", "=", productId)
      .where("o.status", "in", OPEN_ORDER_STATUSES),
  );

/**
 * Locks the order, then reads it: an answer of the provider and a reconciling job cannot both move it. Two statements,
 * because one that had to wait for its lock goes on with the entitlements of before it waited.
 */
export async function lockOrder(tx: Tx, id: string): Promise<OrderRow | undefined> {
  await tx.selectFrom("orders").select("id").where("id", "=", id).forUpdate().execute();
  return findOrder(tx, id);
}

export interface OrderFilter extends Paging {
  status?: string | undefined;
  /** null: an id that names no product, so that nothing fits. */
  productId?: string | null | undefined;
}

export async function listOrders(
  { db }: Context,
  buyerId: string,
  filter: OrderFilter,
): Promise<Page<OrderRow>> {
  if (filter.productId === null) return { items: [], total: 0 };
  const conditions = {
    "o.buyer_id": buyerId,
    ...(filter.status && { "o.status": filter.status }),
    ...(filter.productId && { "o.product_id": filter.productId }),
  };
  const items = await orders(db)
    .where((row) => row.and(conditions))
    .orderBy("o.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .execute();
  const { total } = await db
    .selectFrom("orders as o")
    .where((row) => row.and(conditions))
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map((row) => toBigintAmounts(row)), total };
}

export interface OrderUpdate {
  status?: OrderStatus;
  refunded_minor?: bigint;
  refunding_minor?: bigint;
  processor_fee_minor?: bigint | null;
  matures_at?: Date;
  receipt_year?: number;
  receipt_number?: number;
  payment_id?: string;
  payment_method?: string;
  decline_code?: string;
  action_url?: string | null;
  completed_at?: Date;
}

export const updateOrder = (tx: Tx, id: string, move: OrderUpdate) =>
  tx.updateTable("orders").set(move).where("id", "=", id).execute();

/** Keeps what the provider took in the place of what was asked for; false when it was kept before. */
export async function recordOrderMismatch(
  db: Queries,
  id: string,
  { paymentId, captured }: Mismatch,
): Promise<boolean> {
  const noted = await db
    .updateTable("orders")
    .set({ payment_id: paymentId, mismatch: captured })
    .where("id", "=", id)
    .where("mismatch", "is distinct from", captured)
    .returning("id")
    .executeTakeFirst();
  return noted !== undefined;
}

/** Returns false when the order is no longer open, so that it must not be charged. */
export async function markOrderAsked(db: Queries, id: string, now: Date): Promise<boolean> {
  const stamped = await db
    .updateTable("orders")
    .set({ asked_at: now })
    .where("id", "=", id)
    .where("status", "in", OPEN_ORDER_STATUSES)
    .returning("id")
    .executeTakeFirst();
  return stamped !== undefined;
}

/** An open order whose method the provider does not know: nothing happened, so nothing stays. */
export const deleteOpenOrder = (db: Queries, id: string) =>
  db.deleteFrom("orders").where("id", "=", id).where("status", "in", OPEN_ORDER_STATUSES).execute();

/** The seller's next number of the year, without gaps: it is taken back when the transaction is. */
export async function nextReceiptNumber(tx: Tx, sellerId: string, year: number): Promise<number> {
  const { last } = await tx
    .insertInto("receipt_counters")
    .values({ seller_id: sellerId, year, last: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(["seller_id", "year"])
        .doUpdateSet((row) => ({ last: row("receipt_counters.last", "+", 1) })),
    )
    .returning("last")
    .executeTakeFirstOrThrow();
  return last;
}

export const listOpenOrders = (db: Queries, before: Date) =>
  db
    .selectFrom("orders")
    .select((row) => [
      "id",
      "created_at as createdAt",
      row.fn.coalesce("asked_at", "created_at").as("askedAt"),
      sql<boolean>`exists (select from discount_codes c
                            where c.id = discount_code_id and c.max_redemptions is not null)`.as(
        "holdsScarce",
      ),
    ])
    .where("status", "in", OPEN_ORDER_STATUSES)
    .where((row) => row(row.fn.coalesce("asked_at", "created_at"), "<", before))
    .orderBy("created_at")
    .execute();

export const listOrdersPossiblyChargedLate = (db: Queries, now: Date) =>
  db.selectFrom("orders").select("id").where(mayBeChargedLate(now)).orderBy("created_at").execute();

/** The provider has answered of a canceled order. */
export const markOrderCheckedLate = (db: Queries, id: string, now: Date) =>
  db
    .updateTable("orders")
    .set({ asked_at: now })
    .where("id", "=", id)
    .where("status", "=", "canceled")
    .execute();

/** Of purchases and sales of an account, how many the provider has not settled. */
export async function countOpenOrders(db: Queries, userId: string) {
  const mine = (side: "buyer_id" | "seller_id") =>
    db
      .selectFrom("orders")
      .where(side, "=", userId)
      .where("status", "in", OPEN_ORDER_STATUSES)
      .select((row) => row.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
  const [purchases, sales] = [await mine("buyer_id"), await mine("seller_id")];
  return { purchases: purchases.count, sales: sales.count };
}
