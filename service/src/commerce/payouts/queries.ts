import type { PayoutStatus } from "@stoa/contract";
import { sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import { firstOf } from "../../core/required.ts";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export const OPEN_PAYOUT_STATUSES: PayoutStatus[] = ["pending", "in_transit"];
/** Banks usually return a payout within this time. */
export const RETURNED_WITHIN_MS = 14 * DAY_MS;
/** Late returns and manual reversals were seen within this time. */
export const RETURNED_LATE_WITHIN_MS = 180 * DAY_MS;

export interface NewPayout {
  id: string;
  sellerId: string;
  amountMinor: bigint;
  commissionMinor: bigint;
  currency: string;
  destination: string;
  /** YYYY-MM-DD. */
  periodStart: string;
  periodEnd: string;
  /** The day of the schedule; null: the seller requested it. */
  scheduledFor: string | null;
  createdAt: Date;
}

export interface PayoutRow extends NewPayout {
  sellerName: string;
  status: PayoutStatus;
  providerPayoutId: string | null;
  failureCode: string | null;
  /** The provider's reason for not paying yet. */
  waitsFor: string | null;
  /** A partial reversal by the provider. */
  reversedMinor: bigint;
  completedAt: Date | null;
}

/** As text: the driver would convert a date to a moment in the time zone of the process. */
const day = (column: string) => sql<string>`to_char(${sql.ref(column)}, 'YYYY-MM-DD')`;

const payouts = (db: Queries) =>
  db
    .selectFrom("payouts as p")
    .innerJoin("users as s", "s.id", "p.sellerId")
    .select([
      "p.id",
      "p.sellerId",
      "s.name as sellerName",
      "p.status",
      "p.currency",
      "p.amountMinor",
      "p.commissionMinor",
      "p.destination",
      day("p.periodStart").as("periodStart"),
      day("p.periodEnd").as("periodEnd"),
      day("p.scheduledFor").as("scheduledFor"),
      "p.providerPayoutId",
      "p.waitsFor",
      "p.reversedMinor",
      "p.failureCode",
      "p.createdAt",
      "p.completedAt",
    ])
    .$castTo<NumberAmounts<PayoutRow>>();

const findOne = async (query: ReturnType<typeof payouts>): Promise<PayoutRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && toBigintAmounts(row);
};

export const findPayout = (db: Queries, id: string) => findOne(payouts(db).where("p.id", "=", id));

export const findOwnPayout = (db: Queries, sellerId: string, id: string) =>
  findOne(payouts(db).where("p.id", "=", id).where("p.sellerId", "=", sellerId));

export const findOpenPayout = (db: Queries, sellerId: string, currency: string) =>
  findOne(
    payouts(db)
      .where("p.sellerId", "=", sellerId)
      .where("p.currency", "=", currency)
      .where("p.status", "in", OPEN_PAYOUT_STATUSES),
  );

export const findAnyOpenPayout = (db: Queries, sellerId: string) =>
  findOne(
    payouts(db).where("p.sellerId", "=", sellerId).where("p.status", "in", OPEN_PAYOUT_STATUSES).limit(1),
  );

/** Locks first, then reads: a response, a webhook and the job may arrive at once. */
export async function lockPayout(tx: Tx, id: string): Promise<PayoutRow | undefined> {
  await tx.selectFrom("payouts").select("id").where("id", "=", id).forUpdate().execute();
  return findPayout(tx, id);
}

export interface PayoutFilter extends Paging {
  sellerId?: string | undefined;
  status?: string | undefined;
  currency?: string | undefined;
}

export async function listPayouts(db: Queries, filter: PayoutFilter): Promise<Page<PayoutRow>> {
  const conditions = {
    ...(filter.sellerId && { "p.sellerId": filter.sellerId }),
    ...(filter.status && { "p.status": filter.status }),
    ...(filter.currency && { "p.currency": filter.currency }),
  };
  const items = await payouts(db)
    .where((row) => row.and(conditions))
    .orderBy("p.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .execute();
  const { total } = await db
    .selectFrom("payouts as p")
    .where((row) => row.and(conditions))
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map((row) => toBigintAmounts(row)), total };
}

/** Returns false if the seller has an open payout in this currency, or had one on this day of the schedule. */
export async function insertPayout(tx: Tx, payout: NewPayout): Promise<boolean> {
  const inserted = await tx
    .insertInto("payouts")
    .values({ ...payout, status: "pending" })
    .onConflict((conflict) => conflict.doNothing())
    .returning("id")
    .executeTakeFirst();
  return inserted !== undefined;
}

export interface PayoutUpdate {
  status: PayoutStatus;
  providerPayoutId?: string | null;
  failureCode?: string | null;
  waitsFor?: string | null;
  reversedMinor?: bigint;
  completedAt?: Date;
}

export const updatePayout = (tx: Tx, id: string, move: PayoutUpdate) =>
  tx.updateTable("payouts").set(move).where("id", "=", id).execute();

export const markPayoutAsked = (db: Queries, id: string, now: Date) =>
  db.updateTable("payouts").set({ askedAt: now }).where("id", "=", id).execute();

const askedBefore = (db: Queries, status: PayoutStatus, before: Date) =>
  db
    .selectFrom("payouts")
    .select("id")
    .where("status", "=", status)
    .where((row) => row(row.fn.coalesce("askedAt", "createdAt"), "<", before))
    .orderBy("createdAt");

/** Oldest first. */
export const listAskedBefore = (db: Queries, status: PayoutStatus, before: Date) =>
  askedBefore(db, status, before).where("waitsFor", "is", null).execute();

export const listWaitingForBalance = (db: Queries, before: Date) =>
  askedBefore(db, "pending", before).where("waitsFor", "is not", null).execute();

/** Completed payouts that a bank may still return. */
export const listReturnable = (
  db: Queries,
  { completedAfter, askedBefore }: { completedAfter: Date; askedBefore: Date },
) =>
  db
    .selectFrom("payouts")
    .select("id")
    .where("status", "=", "completed")
    .where("completedAt", ">", completedAfter)
    .where("askedAt", "<", askedBefore)
    .orderBy("completedAt")
    .execute();

/** Uses only the index of the owner's entries. */
export async function listPayable(db: Queries, at: Date): Promise<{ sellerId: string; currency: string }[]> {
  const { rows } = await sql<{ sellerId: string; currency: string }>`
    select owner_id as "sellerId", currency from ledger_entries
     where owner_id is not null and account in ('seller', 'referrer') and matures_at <= ${at}
     group by owner_id, currency having sum(amount_minor) > 0 order by owner_id, currency`.execute(db);
  return rows;
}

interface MaturityRow {
  currency: string;
  amountMinor: bigint;
  at: Date;
}

/** Excludes fully refunded sales. */
export async function listNextMaturities(db: Queries, ownerId: string, now: Date): Promise<MaturityRow[]> {
  const { rows } = await sql<{ currency: string; amountMinor: number; at: Date }>`
    select distinct on (currency) currency, matures_at as at, sum(amount_minor)::bigint as "amountMinor"
      from ledger_entries where owner_id = ${ownerId} and account in ('seller', 'referrer') and matures_at > ${now}
     group by currency, matures_at having sum(amount_minor) <> 0 order by currency, matures_at`.execute(db);
  return rows.map((row) => toBigintAmounts(row));
}

interface MaturityDayRow {
  date: string;
  currency: string;
  amountMinor: bigint;
  sales: number;
}

/** Excludes days on which all was refunded. */
export async function listMaturityDays(
  db: Queries,
  ownerId: string,
  now: Date,
  filter: Paging & { currency?: string | undefined },
): Promise<Page<MaturityDayRow>> {
  const inCurrency = filter.currency ? sql`and currency = ${filter.currency}` : sql``;
  const { rows } = await sql<Omit<MaturityDayRow, "amountMinor"> & { amountMinor: number; all: number }>`
    select to_char(matures_at at time zone 'UTC', 'YYYY-MM-DD') as date, currency,
           sum(amount_minor)::bigint as "amountMinor", count(distinct order_id)::int as sales,
           (count(*) over ())::int as "all"
      from ledger_entries
     where owner_id = ${ownerId} and account in ('seller', 'referrer') and matures_at > ${now} ${inCurrency}
     group by 1, 2 having sum(amount_minor) <> 0
     order by 1, 2 limit ${filter.limit} offset ${offsetOf(filter)}`.execute(db);
  const items = rows.map(({ all: _, ...row }) => toBigintAmounts(row));
  return { items, total: rows[0]?.all ?? 0 };
}

interface Earned {
  ownerId: string;
  currency: string;
  now: Date;
}

/** Excludes failed and returned payouts. */
export async function sumPaidOut(db: Queries, sellerId: string, currency: string): Promise<bigint> {
  const { rows } = await sql<{ paid: string }>`
    select coalesce(sum(amount_minor), 0)::text as paid from payouts
     where seller_id = ${sellerId} and currency = ${currency} and status in ('pending', 'in_transit', 'completed')`.execute(
    db,
  );
  return BigInt(firstOf(rows).paid);
}

/** The day by which an amount had matured: payouts pay earnings in order of maturity. Payouts and their returns are not earnings. */
export async function findDayOfEarnings(
  db: Queries,
  { ownerId, currency, now }: Earned,
  amountMinor: bigint,
): Promise<string> {
  const { rows } = await sql<{ day: string }>`
    with days as (
      select (e.matures_at at time zone 'UTC')::date as day, sum(e.amount_minor) as amount
        from ledger_entries e join ledger_transactions t on t.id = e.transaction_id
       where e.owner_id = ${ownerId} and e.currency = ${currency} and e.account in ('seller', 'referrer')
         and e.matures_at <= ${now} and t.kind not in ('payout', 'payout_failed', 'payout_returned')
       group by 1),
    sums as (select day, sum(amount) over (order by day) as so_far from days)
    select to_char(min(day), 'YYYY-MM-DD') as day from sums where so_far >= ${amountMinor.toString()}::numeric`.execute(
    db,
  );
  return firstOf(rows).day;
}

export async function findFirstDay(db: Queries, ownerId: string, currency: string): Promise<string> {
  const { rows } = await sql<{ day: string }>`
    select to_char(min(t.occurred_at) at time zone 'UTC', 'YYYY-MM-DD') as day
      from ledger_entries e join ledger_transactions t on t.id = e.transaction_id
     where e.owner_id = ${ownerId} and e.currency = ${currency}`.execute(db);
  return firstOf(rows).day;
}

/** Excludes failed and returned payouts. */
export async function findLastPaidDay(
  db: Queries,
  sellerId: string,
  currency: string,
): Promise<string | null> {
  const row = await db
    .selectFrom("payouts")
    .select(sql<string | null>`to_char(max(period_end), 'YYYY-MM-DD')`.as("last"))
    .where("sellerId", "=", sellerId)
    .where("currency", "=", currency)
    .where("status", "in", [...OPEN_PAYOUT_STATUSES, "completed"])
    .executeTakeFirstOrThrow();
  return row.last;
}

export const insertLastAddress = (tx: Tx, userId: string, email: string) =>
  tx.insertInto("closedAccountEmails").values({ userId, email }).execute();

export async function findLastAddress(db: Queries, userId: string): Promise<string | null> {
  const row = await db
    .selectFrom("closedAccountEmails")
    .select("email")
    .where("userId", "=", userId)
    .executeTakeFirst();
  return row?.email ?? null;
}

/** Addresses of users without a balance and without a completed payout since `paidBefore`. */
export const deletePaidOffAddresses = (db: Queries, paidBefore: Date) =>
  sql`
    delete from closed_account_emails a
     where not exists (select from payouts p where p.seller_id = a.user_id and p.completed_at > ${paidBefore})
       and not exists (select from ledger_entries e where e.owner_id = a.user_id
                        group by e.currency having sum(e.amount_minor) > 0)`.execute(db);
