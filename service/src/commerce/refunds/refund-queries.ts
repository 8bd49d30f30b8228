import type { ApprovalReason, RefundStatus } from "@stoa/contract";
import type { ExpressionBuilder } from "kysely";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { EMPTY_PAGE, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { DB } from "../../platform/db/tables.gen.ts";
import { OPEN_REFUND_STATUSES, refundMoves } from "./refund-lifecycle.ts";
import type { RunFailures } from "./run-failures.ts";

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
  /** `provider`: made at the provider's dashboard. */
  origin: "buyer" | "admin" | "service" | "provider";
  amountMinor: bigint;
  currency: string;
  reason: string;
  details: string | null;
  decideBy: Date | null;
  /** null: the rules or the service decided. */
  decidedBy: string | null;
  decidedAt: Date | null;
  approvalReason: ApprovalReason | null;
  /** At the request; null: never used, or not requested by the buyer. */
  runs: RunFailures | null;
  decisionNote: string | null;
  failureCode: string | null;
  createdAt: Date;
  completedAt: Date | null;
  /** When the buyer's bank returned it. */
  returnedAt: Date | null;
  /** When the operator paid the returned refund in another way. */
  settledAt: Date | null;
}

const refunds = (db: Queries) =>
  db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.orderId")
    .innerJoin("users as b", "b.id", "o.buyerId")
    .innerJoin("users as s", "s.id", "o.sellerId")
    .select([
      "r.id",
      "r.orderId",
      "r.status",
      "r.origin",
      "r.currency",
      "o.buyerId",
      "b.name as buyerName",
      "o.sellerId",
      "s.name as sellerName",
      "o.productId",
      "o.productTitle",
      "r.amountMinor",
      "r.reason",
      "r.details",
      "r.decideBy",
      "r.decidedBy",
      "r.decidedAt",
      "r.approvalReason",
      "r.runs",
      "r.decisionNote",
      "r.failureCode",
      "r.createdAt",
      "r.completedAt",
      "r.returnedAt",
      "r.settledAt",
    ])
    .$castTo<NumberAmounts<RefundRow>>();

const toRow = (row: NumberAmounts<RefundRow>): RefundRow => toBigintAmounts(row);

export async function findRefundRow(db: Queries, id: string): Promise<RefundRow | undefined> {
  const row = await refunds(db).where("r.id", "=", id).executeTakeFirst();
  return row && toRow(row);
}

export async function findProviderRefund(tx: Tx, providersId: string): Promise<RefundRow | undefined> {
  const row = await refunds(tx)
    .where("r.providerRefundId", "=", providersId)
    .where("r.origin", "=", "provider")
    .executeTakeFirst();
  return row && toRow(row);
}

export const listRefundsOfOrder = async (db: Queries, orderId: string): Promise<RefundRow[]> =>
  (await refunds(db).where("r.orderId", "=", orderId).orderBy("r.id", "desc").execute()).map(toRow);

export const findOpenRefund = (db: Queries, orderId: string) =>
  db
    .selectFrom("refunds")
    .select("id")
    .where("orderId", "=", orderId)
    .where("status", "in", OPEN_REFUND_STATUSES)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();

export interface RefundFilter extends Paging {
  /** With both ids, the account may be on either side. */
  buyerId?: string | undefined;
  sellerId?: string | undefined;
  status?: RefundStatus | undefined;
  /** null: the requested id is malformed and matches nothing. */
  orderId?: string | null | undefined;
  productId?: string | null | undefined;
}

type RowBuilder = ExpressionBuilder<{ r: DB["refunds"]; o: DB["orders"] }, "r" | "o">;

const matchesFilter = (filter: RefundFilter) => (row: RowBuilder) => {
  const sides = [
    ...(filter.buyerId ? [row("o.buyerId", "=", filter.buyerId)] : []),
    ...(filter.sellerId ? [row("o.sellerId", "=", filter.sellerId)] : []),
  ];
  return row.and([
    ...(sides.length > 0 ? [row.or(sides)] : []),
    ...(filter.status ? [row("r.status", "=", filter.status)] : []),
    ...(filter.orderId ? [row("r.orderId", "=", filter.orderId)] : []),
    ...(filter.productId ? [row("o.productId", "=", filter.productId)] : []),
  ]);
};

export async function listRefundRows(db: Queries, filter: RefundFilter): Promise<Page<RefundRow>> {
  if (filter.orderId === null || filter.productId === null) return EMPTY_PAGE;
  const items = await refunds(db)
    .where(matchesFilter(filter))
    .orderBy("r.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .execute();
  const { total } = await db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.orderId")
    .where(matchesFilter(filter))
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map(toRow), total };
}

export interface NewRefund {
  id: string;
  orderId: string;
  origin: RefundRow["origin"];
  amountMinor: bigint;
  currency: string;
  reason: string;
  details: string | null;
  approvalReason?: ApprovalReason;
  /** JSON of RunFailures. */
  runs?: string | null;
  decideBy: Date | null;
  createdAt: Date;
}

export const insertRefund = (tx: Tx, refund: NewRefund) =>
  tx
    .insertInto("refunds")
    .values({ ...refund, status: "pending" })
    .execute();

export interface RefundChange {
  status: RefundStatus;
  amountMinor?: bigint;
  decidedBy?: string | null;
  decidedAt?: Date;
  decisionNote?: string;
  providerRefundId?: string | null;
  failureCode?: string;
  completedAt?: Date;
}

/** Compare-and-set: returns false if the status is no longer `from`. */
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

/** Returns undefined if the refund must not be submitted. */
export async function markRefundAsked(db: Queries, id: string, now: Date): Promise<AskedRefund | undefined> {
  const { from, to } = refundMoves.ask;
  const row = await db
    .updateTable("refunds as r")
    .from("orders as o")
    .set({ status: to, askedAt: now })
    .whereRef("o.id", "=", "r.orderId")
    .where("r.id", "=", id)
    .where("r.status", "in", from)
    .returning(["r.id", "o.paymentId", "r.amountMinor", "r.currency"])
    .executeTakeFirst();
  return row && (toBigintAmounts(row) as AskedRefund);
}

/** Returns false if the return is already recorded. */
export async function markReturned(tx: Tx, id: string, failureCode: string, now: Date): Promise<boolean> {
  const updated = await tx
    .updateTable("refunds")
    .set({ returnedAt: now, failureCode })
    .where("id", "=", id)
    .where("status", "=", "succeeded")
    .where("returnedAt", "is", null)
    .returning("id")
    .executeTakeFirst();
  return updated !== undefined;
}

/** Returns false if the settlement is already recorded. */
export async function markSettled(tx: Tx, id: string, reference: string, now: Date): Promise<boolean> {
  const updated = await tx
    .updateTable("refunds")
    .set({ settledAt: now, settlementReference: reference })
    .where("id", "=", id)
    .where("returnedAt", "is not", null)
    .where("settledAt", "is", null)
    .returning("id")
    .executeTakeFirst();
  return updated !== undefined;
}

/** Excludes refunds made at the provider's dashboard, which must never be submitted. */
const unpaidRefunds = (db: Queries) =>
  db
    .selectFrom("refunds")
    .select(["id", "askedAt"])
    .where("origin", "<>", "provider")
    .where("status", "in", ["approved", "processing"]);

export const findUnpaidRefund = (db: Queries, id: string) =>
  unpaidRefunds(db).where("id", "=", id).executeTakeFirst();

/** Oldest decision first. */
export const listUnpaidRefunds = (db: Queries, before: Date) =>
  unpaidRefunds(db)
    .where((row) => row(row.fn.coalesce("askedAt", "decidedAt"), "<", before))
    .orderBy("decidedAt")
    .execute();

export const listAskedRefundsOf = (db: Queries, orderId: string) =>
  db
    .selectFrom("refunds")
    .select(["id", "askedAt"])
    .where("orderId", "=", orderId)
    .where("origin", "<>", "provider")
    .where("status", "=", "processing")
    .execute();

export const listOrdersOfProviderRefunds = (db: Queries, before: Date) =>
  db
    .selectFrom("refunds")
    .select("orderId")
    .distinct()
    .where("origin", "=", "provider")
    .where("status", "=", "processing")
    .where("decidedAt", "<", before)
    .execute();

export const listOverdueRefunds = (db: Queries, now: Date) =>
  db
    .selectFrom("refunds")
    .select("id")
    .where("status", "=", "pending")
    .where("decideBy", "<=", now)
    .orderBy("decideBy")
    .execute();

export const findAutomaticRefunds = (db: Queries, buyerId: string) =>
  db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.orderId")
    .where("o.buyerId", "=", buyerId)
    .where("r.origin", "=", "buyer")
    .where("r.decideBy", "is", null)
    .where("r.status", "in", ["approved", "processing", "succeeded"])
    .select((row) => [
      row.fn.countAll<number>().as("count"),
      row.fn.max<Date | null>("r.createdAt").as("last"),
    ])
    .executeTakeFirstOrThrow();

/** The setting of the seller. */
export async function refundsFailedRuns(db: Queries, sellerId: string): Promise<boolean> {
  const seller = await db
    .selectFrom("users")
    .select("refundFailedRuns")
    .where("id", "=", sellerId)
    .executeTakeFirst();
  return seller?.refundFailedRuns ?? false;
}

export interface RefundableOrders {
  productId: string;
  since: Date;
  /** Skips orders that an administrator refunded since then. */
  startedAt: Date;
}

const refundableOrders = (db: Queries, { productId, since, startedAt }: RefundableOrders) =>
  db
    .selectFrom("orders as o")
    .where("o.productId", "=", productId)
    .where("o.status", "in", ["completed", "partially_refunded"])
    .where("o.completedAt", ">=", since)
    .where((row) => row("o.totalMinor", ">", row("o.refundedMinor", "+", row.ref("o.refundingMinor"))))
    .where((row) =>
      row.not(
        row.exists(
          row
            .selectFrom("refunds as r")
            .select("r.id")
            .whereRef("r.orderId", "=", "o.id")
            .where("r.origin", "=", "admin")
            .where("r.createdAt", ">=", startedAt),
        ),
      ),
    );

export const countRefundableOrders = async (db: Queries, of: RefundableOrders): Promise<number> =>
  (
    await refundableOrders(db, of)
      .select((row) => row.fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow()
  ).count;

export const listRefundableOrders = (
  db: Queries,
  of: RefundableOrders,
  after: string | null,
  limit: number,
) => {
  const orders = refundableOrders(db, of);
  const rest = after === null ? orders : orders.where("o.id", ">", after);
  return rest.select("o.id").orderBy("o.id").limit(limit).execute();
};

export const countOpenRefundsAndDisputes = async (db: Queries, userId: string) => {
  const ofAccount = (row: ExpressionBuilder<{ o: DB["orders"] }, "o">) =>
    row.or([row("o.buyerId", "=", userId), row("o.sellerId", "=", userId)]);
  const openRefunds = await db
    .selectFrom("refunds as r")
    .innerJoin("orders as o", "o.id", "r.orderId")
    .where((row) => ofAccount(row))
    .where("r.status", "in", OPEN_REFUND_STATUSES)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  const openDisputes = await db
    .selectFrom("disputes as d")
    .innerJoin("orders as o", "o.id", "d.orderId")
    .where((row) => ofAccount(row))
    .where("d.status", "=", "open")
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return { openRefunds: openRefunds.count, openDisputes: openDisputes.count };
};
