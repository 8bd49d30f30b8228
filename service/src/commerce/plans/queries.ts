import type { Plan, PlanPaymentStatus } from "@stoa/contract";
import { sql } from "kysely";
import type { CardSummary } from "../../integrations/payments/payments.ts";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { Mismatch } from "../charges/charge-attempts.ts";
import { mayBeChargedLate } from "../charges/late-charges.ts";

const OPEN: PaymentRow["status"][] = ["pending", "requires_action"];

export interface SubscriptionRow {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  currency: string;
  periodStart: Date;
  periodEnd: Date;
  nextPlan: Plan | null;
  paymentMethodId: string;
  anchorDay: number;
  /** How often the next period could not be paid. */
  tries: number;
  nextTryAt: Date;
}

export const findPlan = (db: Queries, userId: string) =>
  db
    .selectFrom("users")
    .select("plan")
    .where("id", "=", userId)
    .$narrowType<{ plan: Plan }>()
    .executeTakeFirstOrThrow();

/** What is paid for, as long as it is the plan that holds. */
export async function findSubscription(db: Queries, userId: string): Promise<SubscriptionRow | undefined> {
  const row = await db
    .selectFrom("subscriptions as s")
    .innerJoin("users as u", (join) => join.onRef("u.id", "=", "s.user_id").onRef("u.plan", "=", "s.plan"))
    .select(["s.user_id as userId", "s.plan", "s.price_minor as priceMinor", "s.currency"])
    .select(["s.period_start as periodStart", "s.period_end as periodEnd", "s.next_plan as nextPlan"])
    .select(["s.payment_method_id as paymentMethodId", "s.anchor_day as anchorDay"])
    .select(["s.tries", "s.next_try_at as nextTryAt"])
    .where("s.user_id", "=", userId)
    .$narrowType<{ plan: Plan; nextPlan: Plan | null }>()
    .executeTakeFirst();
  return row && toBigintAmounts(row);
}

export interface NewSubscription {
  user_id: string;
  plan: Plan;
  price_minor: bigint;
  currency: string;
  payment_method_id: string;
  period_start: Date;
  period_end: Date;
  anchor_day: number;
  next_try_at: Date;
}

export const replaceSubscription = (tx: Tx, row: NewSubscription) =>
  tx
    .insertInto("subscriptions")
    .values(row)
    .onConflict((conflict) => conflict.column("user_id").doUpdateSet({ ...row, next_plan: null, tries: 0 }))
    .execute();

export const deleteSubscription = (tx: Tx, userId: string) =>
  tx.deleteFrom("subscriptions").where("user_id", "=", userId).execute();

export const updateSubscription = (
  tx: Tx,
  userId: string,
  change: { plan?: Plan; next_plan?: Plan | null; tries?: number; next_try_at?: Date },
) => tx.updateTable("subscriptions").set(change).where("user_id", "=", userId).execute();

/** Whose period has ended with a downgrade to come. */
export const listDueDowngrades = (db: Queries, now: Date) =>
  db
    .selectFrom("subscriptions as s")
    .innerJoin("users as u", (join) => join.onRef("u.id", "=", "s.user_id").onRef("u.plan", "=", "s.plan"))
    .select("s.user_id as userId")
    .where("s.next_plan", "is not", null)
    .where("s.period_end", "<=", now)
    .orderBy("s.period_end")
    .execute();

/** Whose plan goes on after its period, and is to be paid for now. */
export const listDueRenewals = (db: Queries, now: Date) =>
  db
    .selectFrom("subscriptions as s")
    .innerJoin("users as u", (join) => join.onRef("u.id", "=", "s.user_id").onRef("u.plan", "=", "s.plan"))
    .select(["s.user_id as userId", "s.plan"])
    .$narrowType<{ plan: Plan }>()
    .where("s.next_plan", "is", null)
    .where("s.next_try_at", "<=", now)
    .where((row) =>
      row.not(
        row.exists(
          row
            .selectFrom("subscription_payments as p")
            .select("p.id")
            .whereRef("p.user_id", "=", "s.user_id")
            .where("p.status", "in", OPEN),
        ),
      ),
    )
    .orderBy("s.next_try_at")
    .execute();

export interface PaymentRow {
  id: string;
  userId: string;
  /** As they were called when it was asked for. */
  buyer: { name: string; email: string };
  plan: Plan;
  status: PlanPaymentStatus;
  /** A whole month's. */
  priceMinor: bigint;
  /** What was unused of the period before. */
  creditMinor: bigint;
  taxMinor: bigint;
  taxBasisPoints: number;
  /** Whether the price held the tax already. */
  taxInclusive: boolean;
  /** Where the buyer was; null: they had not said. */
  taxCountry: string | null;
  /** What is charged. */
  amountMinor: bigint;
  currency: string;
  paymentMethodId: string;
  paymentMethod: CardSummary | null;
  declineCode: string | null;
  actionUrl: string | null;
  /** The provider's id of a late payment that no longer buys anything. */
  unusablePaymentId: string | null;
  /** Where the period begins that it renews the plan for; null: it begins the plan. */
  renewsFrom: Date | null;
  /** Whether they who pay were there when it was asked for. */
  ownerPresent: boolean;
  createdAt: Date;
  settledAt: Date | null;
  /** What it paid for; null until it is completed, as its receipt's number. */
  period: Period | null;
  receiptYear: number | null;
  receiptNumber: number | null;
}

/** A month that is paid for. */
export interface Period {
  start: Date;
  end: Date;
}

/** As the driver hands it out. */
interface PaymentColumns extends Omit<PaymentRow, "buyer" | "period"> {
  buyerName: string;
  buyerEmail: string;
  periodStart: Date | null;
  periodEnd: Date | null;
}

const payments = (db: Queries) =>
  db
    .selectFrom("subscription_payments")
    .select(["id", "user_id as userId", "plan", "status", "currency"])
    .select(["buyer_name as buyerName", "buyer_email as buyerEmail"])
    .select(["price_minor as priceMinor", "credit_minor as creditMinor", "amount_minor as amountMinor"])
    .select(["tax_minor as taxMinor", "tax_basis_points as taxBasisPoints"])
    .select(["tax_inclusive as taxInclusive", "tax_country as taxCountry"])
    .select(["payment_method_id as paymentMethodId", "payment_method as paymentMethod"])
    .select(["decline_code as declineCode", "action_url as actionUrl", "renews_from as renewsFrom"])
    .select("unusable_payment_id as unusablePaymentId")
    .select(["owner_present as ownerPresent", "created_at as createdAt", "settled_at as settledAt"])
    .select(["period_start as periodStart", "period_end as periodEnd"])
    .select(["receipt_year as receiptYear", "receipt_number as receiptNumber"])
    .$castTo<NumberAmounts<PaymentColumns>>();

function toPaymentRow(drawn: NumberAmounts<PaymentColumns>): PaymentRow {
  const { buyerName, buyerEmail, periodStart, periodEnd, ...row } = toBigintAmounts(drawn);
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
  findOne(payments(db).where("user_id", "=", userId).where("status", "in", OPEN));

export async function listPayments(db: Queries, userId: string, paging: Paging): Promise<Page<PaymentRow>> {
  const rows = await payments(db)
    .where("user_id", "=", userId)
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("subscription_payments")
    .where("user_id", "=", userId)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: rows.map(toPaymentRow), total };
}

export interface NewPayment {
  id: string;
  user_id: string;
  buyer_name: string;
  buyer_email: string;
  plan: Plan;
  price_minor: bigint;
  credit_minor: bigint;
  tax_minor: bigint;
  tax_basis_points: number;
  tax_inclusive: boolean;
  tax_country: string | null;
  amount_minor: bigint;
  currency: string;
  payment_method_id: string;
  renews_from: Date | null;
  owner_present: boolean;
  created_at: Date;
}

export const insertPayment = (tx: Tx, payment: NewPayment) =>
  tx
    .insertInto("subscription_payments")
    .values({ ...payment, status: "pending" })
    .execute();

export interface PaymentUpdate {
  status: PaymentRow["status"];
  payment_id?: string;
  payment_method?: string;
  decline_code?: string;
  action_url?: string | null;
  settled_at?: Date;
  processor_fee_minor?: bigint | null;
  period_start?: Date;
  period_end?: Date;
  receipt_year?: number;
  receipt_number?: number;
}

/** Moves a payment; one that is completed or failed stays as it is. */
export const updatePayment = (db: Queries, id: string, move: PaymentUpdate) =>
  db
    .updateTable("subscription_payments")
    .set(move)
    .where("id", "=", id)
    .where("status", "not in", ["completed", "failed"])
    .execute();

/** Keeps what the provider took in the place of what was asked for; false when it was kept before. */
export async function recordPaymentMismatch(
  db: Queries,
  id: string,
  { paymentId, captured }: Mismatch,
): Promise<boolean> {
  const noted = await db
    .updateTable("subscription_payments")
    .set({ payment_id: paymentId, mismatch: captured })
    .where("id", "=", id)
    .where("mismatch", "is distinct from", captured)
    .returning("id")
    .executeTakeFirst();
  return noted !== undefined;
}

/** Null: the payment was refunded. */
export const setUnusablePayment = (tx: Tx, id: string, paymentId: string | null) =>
  tx
    .updateTable("subscription_payments")
    .set({ unusable_payment_id: paymentId })
    .where("id", "=", id)
    .execute();

/** The marketplace's next number of the year, without gaps: it is taken back when the transaction is. */
export async function nextPlanReceiptNumber(tx: Tx, year: number): Promise<number> {
  const { last } = await tx
    .insertInto("subscription_receipt_counters")
    .values({ year, last: 1 })
    .onConflict((conflict) =>
      conflict
        .column("year")
        .doUpdateSet((row) => ({ last: row("subscription_receipt_counters.last", "+", 1) })),
    )
    .returning("last")
    .executeTakeFirstOrThrow();
  return last;
}

/** Returns false when the payment is no longer open, so that it must not be charged. */
export async function markPaymentAsked(db: Queries, id: string, now: Date): Promise<boolean> {
  const stamped = await db
    .updateTable("subscription_payments")
    .set({ asked_at: now })
    .where("id", "=", id)
    .where("status", "in", OPEN)
    .returning("id")
    .executeTakeFirst();
  return stamped !== undefined;
}

/** A payment whose method the provider does not know: nothing happened, so nothing stays. */
export const deleteOpenPayment = (db: Queries, id: string) =>
  db.deleteFrom("subscription_payments").where("id", "=", id).where("status", "in", OPEN).execute();

export const listOpenPayments = (db: Queries, before: Date) =>
  db
    .selectFrom("subscription_payments")
    .select((row) => [
      "id",
      "created_at as createdAt",
      row.fn.coalesce("asked_at", "created_at").as("askedAt"),
    ])
    .where("status", "in", OPEN)
    .where((row) => row(row.fn.coalesce("asked_at", "created_at"), "<", before))
    .orderBy("created_at")
    .execute();

export const listPaymentsPossiblyChargedLate = (db: Queries, now: Date) =>
  db
    .selectFrom("subscription_payments")
    .select("id")
    .where(mayBeChargedLate(now, sql`(mismatch is not null or unusable_payment_id is not null)`))
    .orderBy("created_at")
    .execute();

/** The provider has answered of a canceled payment. */
export const markPaymentCheckedLate = (db: Queries, id: string, now: Date) =>
  db
    .updateTable("subscription_payments")
    .set({ asked_at: now })
    .where("id", "=", id)
    .where("status", "=", "canceled")
    .execute();

/** Whether its owner has paid for a plan since, or is about to. */
export async function hasLaterPayment(db: Queries, { id, userId }: PaymentRow): Promise<boolean> {
  const later = await db
    .selectFrom("subscription_payments")
    .select("id")
    .where("user_id", "=", userId)
    .where("id", ">", id)
    .where("status", "in", [...OPEN, "completed"])
    .limit(1)
    .executeTakeFirst();
  return later !== undefined;
}
