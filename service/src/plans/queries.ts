import type { Plan } from "@stoa/contract";
import type { Queries, Tx } from "../db/database.ts";
import { exact } from "../db/exact.ts";
import type { Mismatch } from "../payments/attempts.ts";
import { mayBeChargedLate } from "../payments/given-up.ts";

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
  return row && exact(row);
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

export const changeSubscriptionRow = (
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
    .select("s.user_id as userId")
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
  plan: Plan;
  status: "pending" | "requires_action" | "completed" | "failed" | "canceled";
  priceMinor: bigint;
  amountMinor: bigint;
  currency: string;
  paymentMethodId: string;
  declineCode: string | null;
  actionUrl: string | null;
  /** Where the period begins that it renews the plan for; null: it begins the plan. */
  renewsFrom: Date | null;
  /** Whether they who pay were there when it was asked for. */
  ownerPresent: boolean;
}

const payments = (db: Queries) =>
  db
    .selectFrom("subscription_payments")
    .select(["id", "user_id as userId", "plan", "status", "currency"])
    .select(["price_minor as priceMinor", "amount_minor as amountMinor"])
    .select(["payment_method_id as paymentMethodId"])
    .select(["decline_code as declineCode", "action_url as actionUrl", "renews_from as renewsFrom"])
    .select(["owner_present as ownerPresent"])
    .$narrowType<{ plan: Plan; status: PaymentRow["status"] }>();

const only = async (query: ReturnType<typeof payments>): Promise<PaymentRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && exact(row);
};

export const findPayment = (db: Queries, id: string) => only(payments(db).where("id", "=", id));

export const findOpenPayment = (db: Queries, userId: string) =>
  only(payments(db).where("user_id", "=", userId).where("status", "in", OPEN));

export interface NewPayment {
  id: string;
  user_id: string;
  plan: Plan;
  price_minor: bigint;
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

export interface PaymentMove {
  status: PaymentRow["status"];
  payment_id?: string;
  payment_method?: string;
  decline_code?: string;
  action_url?: string | null;
  settled_at?: Date;
}

/** Moves an open payment, or one in another state; false when another was faster. */
export async function movePayment(
  db: Queries,
  id: string,
  move: PaymentMove,
  from: PaymentRow["status"][] = OPEN,
): Promise<boolean> {
  const moved = await db
    .updateTable("subscription_payments")
    .set(move)
    .where("id", "=", id)
    .where("status", "in", from)
    .returning("id")
    .executeTakeFirst();
  return moved !== undefined;
}

/** Keeps what the provider took in the place of what was asked for; false when it was kept before. */
export async function notePaymentMismatch(
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

/** Notes that the provider is asked now; false when the payment is open no more, so that nobody must ask. */
export async function stampAsked(db: Queries, id: string, now: Date): Promise<boolean> {
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

export const listGivenUpPayments = (db: Queries, now: Date) =>
  db
    .selectFrom("subscription_payments")
    .select("id")
    .where(mayBeChargedLate(now))
    .orderBy("created_at")
    .execute();

/** The provider has answered of a canceled payment. */
export const stampAskedAfter = (db: Queries, id: string, now: Date) =>
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
