import type { Plan, PlanPaymentStatus } from "@stoa/contract";
import type { CardSummary } from "../../integrations/payments/payments.ts";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { OPEN_CHARGE_STATUSES } from "../charges/charge-queries.ts";

export interface NewSubscription {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  currency: string;
  paymentMethodId: string;
  periodStart: Date;
  periodEnd: Date;
  anchorDay: number;
  nextTryAt: Date;
}

export interface SubscriptionRow extends NewSubscription {
  nextPlan: Plan | null;
  tries: number;
}

export const findPlan = (db: Queries, userId: string) =>
  db
    .selectFrom("users")
    .select("plan")
    .where("id", "=", userId)
    .$narrowType<{ plan: Plan }>()
    .executeTakeFirstOrThrow();

/** Undefined if an operator has set another plan since. */
export async function findSubscription(db: Queries, userId: string): Promise<SubscriptionRow | undefined> {
  const row = await db
    .selectFrom("subscriptions as s")
    .innerJoin("users as u", (join) => join.onRef("u.id", "=", "s.userId").onRef("u.plan", "=", "s.plan"))
    .selectAll("s")
    .where("s.userId", "=", userId)
    .$narrowType<{ plan: Plan; nextPlan: Plan | null }>()
    .executeTakeFirst();
  return row && toBigintAmounts(row);
}

export const replaceSubscription = (tx: Tx, row: NewSubscription) =>
  tx
    .insertInto("subscriptions")
    .values(row)
    .onConflict((conflict) => conflict.column("userId").doUpdateSet({ ...row, nextPlan: null, tries: 0 }))
    .execute();

export const deleteSubscription = (tx: Tx, userId: string) =>
  tx.deleteFrom("subscriptions").where("userId", "=", userId).execute();

export const updateSubscription = (
  tx: Tx,
  userId: string,
  change: { plan?: Plan; nextPlan?: Plan | null; tries?: number; nextTryAt?: Date },
) => tx.updateTable("subscriptions").set(change).where("userId", "=", userId).execute();

export const listDueDowngrades = (db: Queries, now: Date) =>
  db
    .selectFrom("subscriptions as s")
    .innerJoin("users as u", (join) => join.onRef("u.id", "=", "s.userId").onRef("u.plan", "=", "s.plan"))
    .select("s.userId")
    .where("s.nextPlan", "is not", null)
    .where("s.periodEnd", "<=", now)
    .orderBy("s.periodEnd")
    .execute();

/** Excludes users with an open payment. */
export const listDueRenewals = (db: Queries, now: Date) =>
  db
    .selectFrom("subscriptions as s")
    .innerJoin("users as u", (join) => join.onRef("u.id", "=", "s.userId").onRef("u.plan", "=", "s.plan"))
    .select(["s.userId", "s.plan"])
    .$narrowType<{ plan: Plan }>()
    .where("s.nextPlan", "is", null)
    .where("s.nextTryAt", "<=", now)
    .where((row) =>
      row.not(
        row.exists(
          row
            .selectFrom("subscriptionPayments as p")
            .select("p.id")
            .whereRef("p.userId", "=", "s.userId")
            .where("p.status", "in", OPEN_CHARGE_STATUSES),
        ),
      ),
    )
    .orderBy("s.nextTryAt")
    .execute();

export interface NewPayment {
  id: string;
  userId: string;
  buyerName: string;
  buyerEmail: string;
  plan: Plan;
  priceMinor: bigint;
  creditMinor: bigint;
  taxMinor: bigint;
  taxBasisPoints: number;
  taxInclusive: boolean;
  /** null: unknown. */
  taxCountry: string | null;
  amountMinor: bigint;
  currency: string;
  paymentMethodId: string;
  /** The start of the renewed period; null for the first payment of a plan. */
  renewsFrom: Date | null;
  ownerPresent: boolean;
  createdAt: Date;
}

export interface PaymentRow extends Omit<NewPayment, "buyerName" | "buyerEmail"> {
  /** As at the time of the payment. */
  buyer: { name: string; email: string };
  status: PlanPaymentStatus;
  paymentMethod: CardSummary | null;
  declineCode: string | null;
  actionUrl: string | null;
  /** The provider's id of a late payment that buys nothing any more. */
  unusablePaymentId: string | null;
  settledAt: Date | null;
  /** null until the payment is completed, like the receipt number. */
  period: Period | null;
  receiptYear: number | null;
  receiptNumber: number | null;
}

export interface Period {
  start: Date;
  end: Date;
}

interface PaymentColumns extends Omit<PaymentRow, "buyer" | "period"> {
  buyerName: string;
  buyerEmail: string;
  periodStart: Date | null;
  periodEnd: Date | null;
}

const payments = (db: Queries) =>
  db
    .selectFrom("subscriptionPayments")
    .select([
      "id",
      "userId",
      "plan",
      "status",
      "currency",
      "buyerName",
      "buyerEmail",
      "priceMinor",
      "creditMinor",
      "amountMinor",
      "taxMinor",
      "taxBasisPoints",
      "taxInclusive",
      "taxCountry",
      "paymentMethodId",
      "paymentMethod",
      "declineCode",
      "actionUrl",
      "renewsFrom",
      "unusablePaymentId",
      "ownerPresent",
      "createdAt",
      "settledAt",
      "periodStart",
      "periodEnd",
      "receiptYear",
      "receiptNumber",
    ])
    .$castTo<NumberAmounts<PaymentColumns>>();

function toPaymentRow(columns: NumberAmounts<PaymentColumns>): PaymentRow {
  const { buyerName, buyerEmail, periodStart, periodEnd, ...row } = toBigintAmounts(columns);
  return {
    ...row,
    buyer: { name: buyerName, email: buyerEmail },
    period: periodStart && periodEnd && { start: periodStart, end: periodEnd },
  };
}

const findOne = async (query: ReturnType<typeof payments>): Promise<PaymentRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && toPaymentRow(row);
};

export const findPayment = (db: Queries, id: string) => findOne(payments(db).where("id", "=", id));

export const lockPayment = (tx: Tx, id: string) => findOne(payments(tx).where("id", "=", id).forUpdate());

export const findOpenPayment = (db: Queries, userId: string) =>
  findOne(payments(db).where("userId", "=", userId).where("status", "in", OPEN_CHARGE_STATUSES));

export async function listPayments(db: Queries, userId: string, paging: Paging): Promise<Page<PaymentRow>> {
  const rows = await payments(db)
    .where("userId", "=", userId)
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("subscriptionPayments")
    .where("userId", "=", userId)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: rows.map(toPaymentRow), total };
}

export const insertPayment = (tx: Tx, payment: NewPayment) =>
  tx
    .insertInto("subscriptionPayments")
    .values({ ...payment, status: "pending" })
    .execute();

export interface PaymentUpdate {
  status: PaymentRow["status"];
  paymentId?: string;
  paymentMethod?: string;
  declineCode?: string;
  actionUrl?: string | null;
  settledAt?: Date;
  processorFeeMinor?: bigint | null;
  periodStart?: Date;
  periodEnd?: Date;
  receiptYear?: number;
  receiptNumber?: number;
}

/** Does not change completed and failed payments. */
export const updatePayment = (db: Queries, id: string, move: PaymentUpdate) =>
  db
    .updateTable("subscriptionPayments")
    .set(move)
    .where("id", "=", id)
    .where("status", "not in", ["completed", "failed"])
    .execute();

/** `paymentId` null: the provider refunded it. */
export const setUnusablePayment = (tx: Tx, id: string, paymentId: string | null) =>
  tx.updateTable("subscriptionPayments").set({ unusablePaymentId: paymentId }).where("id", "=", id).execute();

/** Numbers have no gaps, because a rollback also reverts the counter. */
export async function nextPlanReceiptNumber(tx: Tx, year: number): Promise<number> {
  const { last } = await tx
    .insertInto("subscriptionReceiptCounters")
    .values({ year, last: 1 })
    .onConflict((conflict) =>
      conflict
        .column("year")
        .doUpdateSet((row) => ({ last: row("subscriptionReceiptCounters.last", "+", 1) })),
    )
    .returning("last")
    .executeTakeFirstOrThrow();
  return last;
}

/** Newer payments that are completed or open. */
export async function hasLaterPayment(db: Queries, { id, userId }: PaymentRow): Promise<boolean> {
  const later = await db
    .selectFrom("subscriptionPayments")
    .select("id")
    .where("userId", "=", userId)
    .where("id", ">", id)
    .where("status", "in", [...OPEN_CHARGE_STATUSES, "completed"])
    .limit(1)
    .executeTakeFirst();
  return later !== undefined;
}
