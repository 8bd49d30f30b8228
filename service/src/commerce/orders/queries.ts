import type { OrderStatus, SuspensionReason } from "@stoa/contract";
import { sql } from "kysely";
import { jsonBuildObject } from "kysely/helpers/postgres";
import type { Context } from "../../core/context.ts";
import { firstOf } from "../../core/required.ts";
import type { CardSummary } from "../../integrations/payments/payments.ts";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import { columnNames } from "../../platform/db/column-names.ts";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { EMPTY_PAGE, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { waitForAll } from "../../platform/db/pipeline.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { hasSqlState } from "../../platform/db/sql-state.ts";
import { OPEN_CHARGE_STATUSES } from "../charges/charge-queries.ts";

export interface NewOrder {
  id: string;
  buyerId: string;
  sellerId: string;
  productId: string;
  productTitle: string;
  productType: string;
  productVersion: string;
  subtotalMinor: bigint;
  discountMinor: bigint;
  taxMinor: bigint;
  totalMinor: bigint;
  feeMinor: bigint;
  commissionMinor: bigint;
  sellerMinor: bigint;
  feeBasisPoints: number;
  commissionBasisPoints: number;
  taxBasisPoints: number;
  taxInclusive: boolean;
  /** null: unknown. */
  taxCountry: string | null;
  discountCodeId: string | null;
  discountCode: string | null;
  referrerId: string | null;
  referralCode: string | null;
  currency: string;
  refundDays: number;
  /** null for a free order. */
  paymentMethodId: string | null;
  createdAt: Date;
  /** The first request to the provider follows the insert. null: nothing is charged. */
  askedAt: Date | null;
}

export interface OrderRow extends Omit<NewOrder, "feeBasisPoints" | "commissionBasisPoints" | "askedAt"> {
  sellerName: string;
  sellerHandle: string | null;
  sellerAvatar: string | null;
  /** As of the purchase; `sellerName` is the present name. */
  parties: { buyer: { name: string; email: string }; seller: { name: string } };
  latestVersion: string;
  status: OrderStatus;
  refundedMinor: bigint;
  /** The sum of refunds in progress. */
  refundingMinor: bigint;
  processorFeeMinor: bigint | null;
  /** Both are null until the order is completed. */
  receiptYear: number | null;
  receiptNumber: number | null;
  paymentMethod: CardSummary | null;
  /** The provider's id of the charge. */
  paymentId: string | null;
  declineCode: string | null;
  actionUrl: string | null;
  completedAt: Date | null;
  /** The earliest payout of the sale. */
  maturesAt: Date | null;
  entitlementStatus: "active" | "held" | "revoked" | null;
}

/** Why an order was not inserted: a closed or banned account, or the buyer's open order for the product. */
export type PlacementRefusal = "buyer" | "seller" | "referrer" | "open order";

interface Placement {
  refusedBy: PlacementRefusal | null;
  buyerName: string;
  buyerEmail: string;
  sellerName: string;
  sellerHandle: string | null;
  sellerAvatar: string | null;
  latestVersion: string;
}

/** One statement, which needs no transaction. Throws an error that `isAlreadyOwned` recognizes if the buyer owns the product. */
export async function insertOrder(
  db: Queries,
  order: NewOrder,
): Promise<{ order: OrderRow } | { refusedBy: PlacementRefusal }> {
  const { rows } = await sql<Placement>`${prepared("place_order")}
    select refused_by, buyer_name, buyer_email, seller_name, seller_handle, seller_avatar, latest_version
      from place_order(${JSON.stringify(toColumns(order))})`.execute(db);
  const placement = firstOf(rows);
  return placement.refusedBy === null
    ? { order: toInsertedRow(order, placement) }
    : { refusedBy: placement.refusedBy };
}

/** Raised by place_order. */
export const isAlreadyOwned = (error: unknown) => hasSqlState(error, "ST002");

const toColumns = (order: NewOrder) =>
  Object.fromEntries(
    Object.entries(order).map(([name, value]) => [
      columnNames.toSql(name),
      typeof value === "bigint" ? String(value) : value,
    ]),
  );

const toInsertedRow = (
  { feeBasisPoints: _fee, commissionBasisPoints: _commission, askedAt: _askedAt, ...order }: NewOrder,
  { buyerName, buyerEmail, sellerName, sellerHandle, sellerAvatar, latestVersion }: Placement,
): OrderRow => ({
  ...order,
  sellerName,
  sellerHandle,
  sellerAvatar,
  parties: { buyer: { name: buyerName, email: buyerEmail }, seller: { name: sellerName } },
  latestVersion,
  status: "pending",
  refundedMinor: 0n,
  refundingMinor: 0n,
  processorFeeMinor: null,
  receiptYear: null,
  receiptNumber: null,
  paymentMethod: null,
  paymentId: null,
  declineCode: null,
  actionUrl: null,
  completedAt: null,
  maturesAt: null,
  entitlementStatus: null,
});

const ORDER_COLUMNS = [
  "o.id",
  "o.status",
  "o.currency",
  "o.buyerId",
  "o.sellerId",
  "s.name as sellerName",
  "s.handle as sellerHandle",
  "s.avatar as sellerAvatar",
  "o.productId",
  "o.productTitle",
  "o.productType",
  "o.productVersion",
  "o.subtotalMinor",
  "o.discountMinor",
  "o.taxMinor",
  "o.totalMinor",
  "o.refundedMinor",
  "o.refundingMinor",
  "o.paymentMethodId",
  "o.paymentId",
  "o.feeMinor",
  "o.commissionMinor",
  "o.sellerMinor",
  "o.processorFeeMinor",
  "o.referrerId",
  "o.refundDays",
  "o.referralCode",
  "o.discountCodeId",
  "o.discountCode",
  "o.taxCountry",
  "o.taxBasisPoints",
  "o.taxInclusive",
  "o.receiptYear",
  "o.receiptNumber",
  "o.paymentMethod",
  "o.declineCode",
  "o.actionUrl",
  "o.createdAt",
  "o.completedAt",
  "o.maturesAt",
  "e.status as entitlementStatus",
] as const;

const orders = (db: Queries) =>
  db
    .selectFrom("orders as o")
    .innerJoin("users as s", "s.id", "o.sellerId")
    .innerJoin("products as p", "p.id", "o.productId")
    .leftJoin("entitlements as e", "e.orderId", "o.id")
    .select(ORDER_COLUMNS)
    // Later versions wait for moderation.
    .select(sql<string>`array_to_string(p.released, '.')`.as("latestVersion"))
    .select((row) =>
      jsonBuildObject({
        buyer: jsonBuildObject({ name: row.ref("o.buyerName"), email: row.ref("o.buyerEmail") }),
        seller: jsonBuildObject({ name: row.ref("o.sellerName") }),
      }).as("parties"),
    )
    .$castTo<NumberAmounts<OrderRow>>();

const findOne = async (query: ReturnType<typeof orders>): Promise<OrderRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && toBigintAmounts(row);
};

export async function findOrder(db: Queries, id: string): Promise<OrderRow | undefined> {
  const { rows } = await findOrderRow(db, { id });
  return rows[0] && toBigintAmounts(rows[0]);
}

const findOrderRow = compileOnce((db, { id }: { id: string }) => orders(db).where("o.id", "=", id));

export const findOwnOrder = (db: Queries, buyerId: string, id: string) =>
  findOne(orders(db).where("o.id", "=", id).where("o.buyerId", "=", buyerId));

export const findOpenOrder = (db: Queries, buyerId: string, productId: string) =>
  findOne(
    orders(db)
      .where("o.buyerId", "=", buyerId)
      .where("o.productId", "=", productId)
      .where("o.status", "in", OPEN_CHARGE_STATUSES),
  );

/** Serializes webhooks and jobs. Two statements: a single one that waits for the lock would return the entitlement from before the wait. */
export async function lockOrder(tx: Tx, id: string): Promise<OrderRow | undefined> {
  const [, order] = await waitForAll([lockOrderRow(tx, { id }), findOrder(tx, id)]);
  return order;
}

const lockOrderRow = compileOnce((tx, { id }: { id: string }) =>
  tx.selectFrom("orders").select("id").where("id", "=", id).forUpdate(),
);

/** Why a paid order would give its buyer nothing. */
export interface Usability {
  isOwned: boolean;
  moderationCode: SuspensionReason | null;
  isPartyGone: boolean;
}

export interface OrderToSettle {
  order: OrderRow;
  usability: Usability;
  /** Of an earlier purchase, which was refunded: only an owner of the product can write a review. */
  hasReview: boolean;
}

/** Locks the order, then reads it with its usability by one statement. */
export async function lockOrderToSettle(tx: Tx, id: string): Promise<OrderToSettle | undefined> {
  const [, { rows }] = await waitForAll([lockOrderRow(tx, { id }), findOrderToSettle(tx, { id })]);
  if (!rows[0]) return undefined;
  const { isOwned, moderationCode, isPartyGone, hasReview, ...order } = rows[0];
  return { order: toBigintAmounts(order), usability: { isOwned, moderationCode, isPartyGone }, hasReview };
}

const findOrderToSettle = compileOnce((db, { id }: { id: string }) =>
  orders(db)
    .innerJoin("users as b", "b.id", "o.buyerId")
    .select((row) => [
      "p.moderationCode",
      row
        .exists(
          row
            .selectFrom("entitlements as owned")
            .whereRef("owned.buyerId", "=", "o.buyerId")
            .whereRef("owned.productId", "=", "o.productId")
            .where("owned.status", "<>", sql.lit("revoked")),
        )
        .as("isOwned"),
      row.or([row("b.closedAt", "is not", null), row("s.closedAt", "is not", null)]).as("isPartyGone"),
      row
        .exists(
          row
            .selectFrom("reviews as r")
            .whereRef("r.authorId", "=", "o.buyerId")
            .whereRef("r.productId", "=", "o.productId"),
        )
        .as("hasReview"),
    ])
    .where("o.id", "=", id)
    .$castTo<NumberAmounts<OrderRow> & Usability & Pick<OrderToSettle, "hasReview">>(),
);

export interface OrderFilter extends Paging {
  status?: string | undefined;
  /** null: the requested id is malformed and matches nothing. */
  productId?: string | null | undefined;
}

export async function listOrders(
  { db }: Context,
  buyerId: string,
  filter: OrderFilter,
): Promise<Page<OrderRow>> {
  if (filter.productId === null) return EMPTY_PAGE;
  const conditions = {
    "o.buyerId": buyerId,
    ...(filter.status && { "o.status": filter.status }),
    ...(filter.productId && { "o.productId": filter.productId }),
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
  refundedMinor?: bigint;
  refundingMinor?: bigint;
  processorFeeMinor?: bigint | null;
  maturesAt?: Date;
  receiptYear?: number;
  receiptNumber?: number;
  paymentId?: string;
  paymentMethod?: string;
  declineCode?: string;
  actionUrl?: string | null;
  completedAt?: Date;
}

export const updateOrder = (tx: Tx, id: string, move: OrderUpdate) =>
  tx.updateTable("orders").set(move).where("id", "=", id).execute();

type Completion = Required<Pick<OrderUpdate, "completedAt" | "maturesAt">> &
  Pick<OrderUpdate, "paymentId" | "paymentMethod" | "processorFeeMinor">;

/**
 * Completes the order with the seller's next receipt number of the year, and returns what changed besides the payment.
 * Numbers have no gaps, because a rollback also reverts the counter.
 */
export async function completeOrderRow(
  tx: Tx,
  { id, sellerId }: { id: string; sellerId: string },
  completion: Completion,
) {
  const { completedAt, maturesAt } = completion;
  const year = completedAt.getUTCFullYear();
  const changed = {
    status: "completed" as const,
    actionUrl: null,
    receiptYear: year,
    completedAt,
    maturesAt,
  };
  const { rows } = await writeCompletion(tx, { id, sellerId, year, ...completion, ...changed });
  return { ...changed, ...firstOf(rows) };
}

const writeCompletion = compileOnce(
  (tx, { id, sellerId, year, ...change }: OrderUpdate & { id: string; sellerId: string; year: number }) =>
    tx
      .with("receipt", (db) =>
        db
          .insertInto("receiptCounters")
          .values({ sellerId, year, last: 1 })
          .onConflict((conflict) =>
            conflict
              .columns(["sellerId", "year"])
              .doUpdateSet((row) => ({ last: row("receiptCounters.last", "+", 1) })),
          )
          .returning("last"),
      )
      .updateTable("orders")
      .from("receipt")
      .set((row) => ({ ...change, receiptNumber: row.ref("receipt.last") }))
      .where("id", "=", id)
      .returning("receipt.last as receiptNumber"),
);

/** As buyer and as seller. */
export async function countOpenOrders(db: Queries, userId: string) {
  const countSide = (side: "buyerId" | "sellerId") =>
    db
      .selectFrom("orders")
      .where(side, "=", userId)
      .where("status", "in", OPEN_CHARGE_STATUSES)
      .select((row) => row.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
  const [purchases, sales] = [await countSide("buyerId"), await countSide("sellerId")];
  return { purchases: purchases.count, sales: sales.count };
}
