import type { ApprovalReason, RefundStatus } from "@stoa/contract";
import type { ExpressionBuilder } from "kysely";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { DB } from "../../platform/db/tables.gen.ts";
import { OPEN_REFUND_STATUSES, refundMoves } from "./refund-lifecycle.ts";

export interface RefundRow {
  id: string;
  orderId: string;
  buyerId: string;
  buyerName: string;
  sellerId: string;
  sellerName: string;
  productId: string;
  productTitle: string;
  status: RefundStatus;
  /** `provider`: it was made at the payment provider's own dashboard. */
  origin: "buyer" | "admin" | "service" | "provider";
  amountMinor: bigint;
  currency: string;
  reason: string;
  details: string | null;
  decideBy: Date | null;
  /** null: the rules decided. */
  decidedBy: string | null;
  decidedAt: Date | null;
  approvalReason: ApprovalReason | null;
  decisionNote: string | null;
  failureCode: string | null;
  createdAt: Date;
  completedAt: Date | null;
  /** When the buyer's bank sent it back. */
  returnedAt: Date | null;
  /** When the operator gave the buyer that in another way. */
  settledAt: Date | null;
}

const refunds = (db: Queries) =>
  db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.order_id")
    .innerJoin("users as b", "b.id", "o.buyer_id")
    .innerJoin("users as s", "s.id", "o.seller_id")
    .select([
      ...(["r.id", "r.order_id as orderId", "r.status", "r.origin", "r.currency"] as const),
      ...(["o.buyer_id as buyerId", "b.name as buyerName"] as const),
      ...(["o.seller_id as sellerId", "s.name as sellerName"] as const),
      ...(["o.product_id as productId", "o.product_title as productTitle"] as const),
      ...(["r.amount_minor as amountMinor", "r.reason", "r.details"] as const),
      ...(["r.decide_by as decideBy", "r.decided_by as decidedBy", "r.decided_at as decidedAt"] as const),
      ...([
        "r.approval_reason as approvalReason",
        "r.decision_note as decisionNote",
        "r.failure_code as failureCode",
      ] as const),
      ...(["r.created_at as createdAt", "r.completed_at as completedAt"] as const),
      ...(["r.returned_at as returnedAt", "r.settled_at as settledAt"] as const),
    ])
    .$castTo<NumberAmounts<RefundRow>>();

const toRow = (drawn: NumberAmounts<RefundRow>): RefundRow => toBigintAmounts(drawn);

export async function findRefundRow(db: Queries, id: string): Promise<RefundRow | undefined> {
  const drawn = await refunds(db).where("r.id", "=", id).executeTakeFirst();
  return drawn && toRow(drawn);
}

/** One that was made at the provider's dashboard, by the provider's id. */
export async function findProviderRefund(tx: Tx, providersId: string): Promise<RefundRow | undefined> {
  const drawn = await refunds(tx)
    .where("r.provider_refund_id", "=", providersId)
    .where("r.origin", "=", "provider")
    .executeTakeFirst();
  return drawn && toRow(drawn);
}

/** Newest first. */
export const listRefundsOfOrder = async (db: Queries, orderId: string): Promise<RefundRow[]> =>
  (await refunds(db).where("r.order_id", "=", orderId).orderBy("r.id", "desc").execute()).map(toRow);

/** The one that a new request would have to wait for. */
export const findOpenRefund = (db: Queries, orderId: string) =>
  db
    .selectFrom("refunds")
    .select("id")
    .where("order_id", "=", orderId)
    .where("status", "in", OPEN_REFUND_STATUSES)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();

export interface RefundFilter extends Paging {
  /** Whose purchases, or whose sales, or both. */
  buyerId?: string | undefined;
  sellerId?: string | undefined;
  status?: RefundStatus | undefined;
  /** null: an id that names no order, so that nothing fits. */
  orderId?: string | null | undefined;
}

type RowBuilder = ExpressionBuilder<{ r: DB["refunds"]; o: DB["orders"] }, "r" | "o">;

const matchesFilter = (filter: RefundFilter) => (row: RowBuilder) => {
  const sides = [
    ...(filter.buyerId ? [row("o.buyer_id", "=", filter.buyerId)] : []),
    ...(filter.sellerId ? [row("o.seller_id", "=", filter.sellerId)] : []),
  ];
  return row.and([
    ...(sides.length > 0 ? [row.or(sides)] : []),
    ...(filter.status ? [row("r.status", "=", filter.status)] : []),
    ...(filter.orderId ? [row("r.order_id", "=", filter.orderId)] : []),
  ]);
};

export async function listRefundRows(db: Queries, filter: RefundFilter): Promise<Page<RefundRow>> {
  if (filter.orderId === null) return { items: [], total: 0 };
  const items = await refunds(db)
    .where(matchesFilter(filter))
    .orderBy("r.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .execute();
  const { total } = await db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.order_id")
    .where(matchesFilter(filter))
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map(toRow), total };
}

export interface NewRefund {
  id: string;
  order_id: string;
  origin: RefundRow["origin"];
  amount_minor: bigint;
  currency: string;
  reason: string;
  details: string | null;
  approval_reason?: ApprovalReason;
  decide_by: Date | null;
  created_at: Date;
}

export const insertRefund = (tx: Tx, refund: NewRefund) =>
  tx
    .insertInto("refunds")
    .values({ ...refund, status: "pending" })
    .execute();

export interface RefundChange {
  status: RefundStatus;
  amount_minor?: bigint;
  decided_by?: string | null;
  decided_at?: Date;
  decision_note?: string;
  provider_refund_id?: string | null;
  failure_code?: string;
  completed_at?: Date;
}

/** By compare-and-set: false when it is no longer in the state that the move starts from. */
export async function updateRefundRow(
  tx: Tx,
  id: string,
  from: RefundStatus,
  change: RefundChange,
): Promise<boolean> {
  const moved = await tx
    .updateTable("refunds")
    .set(change)
    .where("id", "=", id)
    .where("status", "=", from)
    .returning("id")
    .executeTakeFirst();
  return moved !== undefined;
}

export interface AskedRefund {
  id: string;
  paymentId: string;
  amountMinor: bigint;
  currency: string;
}

/** Undefined when the refund must not be submitted. */
export async function markRefundAsked(db: Queries, id: string, now: Date): Promise<AskedRefund | undefined> {
  const { from, to } = refundMoves.ask;
  const asked = await db
    .updateTable("refunds as r")
    .from("orders as o")
    .set({ status: to, asked_at: now })
    .whereRef("o.id", "=", "r.order_id")
    .where("r.id", "=", id)
    .where("r.status", "in", from)
    .returning(["r.id", "o.payment_id as paymentId", "r.amount_minor as amountMinor", "r.currency"])
    .executeTakeFirst();
  return asked && (toBigintAmounts(asked) as AskedRefund);
}

/** The bank sent back what had succeeded; false when that is known already. */
export async function markReturned(tx: Tx, id: string, failureCode: string, now: Date): Promise<boolean> {
  const stamped = await tx
    .updateTable("refunds")
    .set({ returned_at: now, failure_code: failureCode })
    .where("id", "=", id)
    .where("status", "=", "succeeded")
    .where("returned_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return stamped !== undefined;
}

/** What the bank sent back was given in another way; false when that is known already. */
export async function markSettled(tx: Tx, id: string, reference: string, now: Date): Promise<boolean> {
  const stamped = await tx
    .updateTable("refunds")
    .set({ settled_at: now, settlement_reference: reference })
    .where("id", "=", id)
    .where("returned_at", "is not", null)
    .where("settled_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return stamped !== undefined;
}

/** Of ours: what was refunded at the provider's dashboard must never be asked for. */
const unpaidRefunds = (db: Queries) =>
  db
    .selectFrom("refunds")
    .select(["id", "asked_at as askedAt"])
    .where("origin", "<>", "provider")
    .where("status", "in", ["approved", "processing"]);

export const findUnpaidRefund = (db: Queries, id: string) =>
  unpaidRefunds(db).where("id", "=", id).executeTakeFirst();

/** Of which the provider was last asked before a moment, or should have been; the oldest first. */
export const listUnpaidRefunds = (db: Queries, before: Date) =>
  unpaidRefunds(db)
    .where((row) => row(row.fn.coalesce("asked_at", "decided_at"), "<", before))
    .orderBy("decided_at")
    .execute();

export const listAskedRefundsOf = (db: Queries, orderId: string) =>
  db
    .selectFrom("refunds")
    .select(["id", "asked_at as askedAt"])
    .where("order_id", "=", orderId)
    .where("origin", "<>", "provider")
    .where("status", "=", "processing")
    .execute();

/** With a refund at the provider's dashboard that we know since before a moment and that its bank has not ended. */
export const listOrdersOfProviderRefunds = (db: Queries, before: Date) =>
  db
    .selectFrom("refunds")
    .select("order_id as orderId")
    .distinct()
    .where("origin", "=", "provider")
    .where("status", "=", "processing")
    .where("decided_at", "<", before)
    .execute();

export const listOverdueRefunds = (db: Queries, now: Date) =>
  db
    .selectFrom("refunds")
    .select("id")
    .where("status", "=", "pending")
    .where("decide_by", "<=", now)
    .orderBy("decide_by")
    .execute();

export const findAutomaticRefunds = (db: Queries, buyerId: string) =>
  db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.order_id")
    .where("o.buyer_id", "=", buyerId)
    .where("r.origin", "=", "buyer")
    .where("r.decide_by", "is", null)
    .where("r.status", "in", ["approved", "processing", "succeeded"])
    .select((row) => [
      row.fn.countAll<number>().as("count"),
      row.fn.max<Date | null>("r.created_at").as("last"),
    ])
    .executeTakeFirstOrThrow();

export interface RefundableOrders {
  productId: string;
  /** Completed since then. */
  since: Date;
  /** Those that an administrator has given something of since then are done. */
  startedAt: Date;
}

const refundableOrders = (db: Queries, { productId, since, startedAt }: RefundableOrders) =>
  db
    .selectFrom("orders as o")
    .where("o.product_id", "=", productId)
    .where("o.status", "in", ["completed", "partially_refunded"])
    .where("o.completed_at", ">=", since)
    .where((row) => row("o.total_minor", ">", row("o.refunded_minor", "+", row.ref("o.refunding_minor"))))
    .where((row) =>
      row.not(
        row.exists(
          row
            .selectFrom("refunds as r")
            .select("r.id")
            .whereRef("r.order_id", "=", "o.id")
            .where("r.origin", "=", "admin")
            .where("r.created_at", ">=", startedAt),
        ),
      ),
    );

export const countRefundableOrders = async (db: Queries, of: RefundableOrders): Promise<number> =>
  (
    await refundableOrders(db, of)
      .select((row) => row.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow()
  ).count;

/** By their ids, after one of them. */
export const listRefundableOrders = (
  db: Queries,
  of: RefundableOrders,
  after: string | null,
  limit: number,
) =>
  refundableOrders(db, of)
    .$if(after !== null, (found) => found.where("o.id", ">", after!))
    .select("o.id")
    .orderBy("o.id")
    .limit(limit)
    .execute();

/** Of purchases and sales of an account, how many are neither kept nor given back for good. */
export const countOpenRefundsAndDisputes = async (db: Queries, userId: string) => {
  const ofAccount = (row: ExpressionBuilder<{ o: DB["orders"] }, "o">) =>
    row.or([row("o.buyer_id", "=", userId), row("o.seller_id", "=", userId)]);
  const openRefunds = await db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.order_id")
    .where((row) => ofAccount(row))
    .where("r.status", "in", OPEN_REFUND_STATUSES)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  const openDisputes = await db
    .selectFrom("disputes as d")
    .innerJoin("orders as o", "o.id", "d.order_id")
    .where((row) => ofAccount(row))
    .where("d.status", "=", "open")
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { openRefunds: openRefunds.count, openDisputes: openDisputes.count };
};
