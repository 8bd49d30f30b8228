import { type RawBuilder, sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries } from "../../platform/db/database.ts";

/** These tables use the same column names for a charge. */
export type ChargedTable = "orders" | "subscriptionPayments";

type OpenStatus = "pending" | "requires_action";

export const OPEN_CHARGE_STATUSES: OpenStatus[] = ["pending", "requires_action"];

export const isChargeOpen = ({ status }: { status: string }): boolean =>
  OPEN_CHARGE_STATUSES.some((open) => open === status);

/** A late payment can still settle a canceled row. */
export const isChargeFinal = (row: { status: string }): boolean =>
  !isChargeOpen(row) && row.status !== "canceled";

interface Conditions {
  /** The row reserves a redemption of a limited discount code, which other buyers want. */
  reservesRedemption: RawBuilder<boolean>;
  /** The operator must refund money that pays for nothing. */
  isOwedBack: RawBuilder<boolean>;
}

const conditionsOf: Record<ChargedTable, Conditions> = {
  orders: {
    reservesRedemption: sql`exists (select from discount_codes c where c.id = discount_code_id and c.max_redemptions is not null)`,
    isOwedBack: sql`mismatch is not null`,
  },
  subscriptionPayments: {
    reservesRedemption: sql`false`,
    isOwedBack: sql`(mismatch is not null or unusable_payment_id is not null)`,
  },
};

export async function findStatus(db: Queries, table: ChargedTable, id: string): Promise<string | undefined> {
  const { rows } = await statusQueries[table](db, { id });
  return rows[0]?.status;
}

const statusQuery = (table: ChargedTable) =>
  compileOnce((db, { id }: { id: string }) => db.selectFrom(table).select("status").where("id", "=", id));
const statusQueries = {
  orders: statusQuery("orders"),
  subscriptionPayments: statusQuery("subscriptionPayments"),
};

/** Returns false if the row is no longer open and must not be charged. */
export async function markAsked(db: Queries, table: ChargedTable, id: string, now: Date): Promise<boolean> {
  const updated = await db
    .updateTable(table)
    .set({ askedAt: now })
    .where("id", "=", id)
    .where("status", "in", OPEN_CHARGE_STATUSES)
    .returning("id")
    .executeTakeFirst();
  return updated !== undefined;
}

export const deleteOpen = (db: Queries, table: ChargedTable, id: string) =>
  db.deleteFrom(table).where("id", "=", id).where("status", "in", OPEN_CHARGE_STATUSES).execute();

export interface OpenCharge {
  id: string;
  createdAt: Date;
  askedAt: Date;
  reservesRedemption: boolean;
}

/** Oldest first. `before`: the time of the last request to the provider. */
export const listOpen = (db: Queries, table: ChargedTable, before: Date): Promise<OpenCharge[]> =>
  db
    .selectFrom(table)
    .select((row) => [
      "id",
      "createdAt",
      row.fn.coalesce("askedAt", "createdAt").as("askedAt"),
      conditionsOf[table].reservesRedemption.as("reservesRedemption"),
    ])
    .where("status", "in", OPEN_CHARGE_STATUSES)
    .where((row) => row(row.fn.coalesce("askedAt", "createdAt"), "<", before))
    .orderBy("createdAt")
    .execute();

/** A capture of another amount or currency than requested. */
export interface Mismatch {
  paymentId: string;
  /** "1899 USD", in minor units; null: the provider refunded it. */
  captured: string | null;
}

/** Returns false if the mismatch is already recorded. */
export async function recordMismatch(
  db: Queries,
  table: ChargedTable,
  id: string,
  { paymentId, captured }: Mismatch,
): Promise<boolean> {
  const recorded = await db
    .updateTable(table)
    .set({ paymentId, mismatch: captured })
    .where("id", "=", id)
    .where("mismatch", "is distinct from", captured)
    .returning("id")
    .executeTakeFirst();
  return recorded !== undefined;
}

/** A row stays open for at most a day; a late charge is expected for a week after that. */
const LATE_CHARGE_WINDOW_MS = 8 * DAY_MS;

/**
 * A row is due when its age has doubled since the last answer, and at least once a day: about 15 requests in a week. A row with unusable
 * money stays listed until the provider refunds it.
 */
export const listPossiblyChargedLate = (db: Queries, table: ChargedTable, now: Date) =>
  db
    .selectFrom(table)
    .select("id")
    .where(
      sql<boolean>`status = 'canceled'
        and (created_at > ${new Date(now.getTime() - LATE_CHARGE_WINDOW_MS)} or ${conditionsOf[table].isOwedBack})
        and ${now}::timestamptz - asked_at >= least(greatest(asked_at - created_at, interval '10 minutes'), interval '1 day')`,
    )
    .orderBy("createdAt")
    .execute();

export const markCheckedLate = (db: Queries, table: ChargedTable, id: string, now: Date) =>
  db.updateTable(table).set({ askedAt: now }).where("id", "=", id).where("status", "=", "canceled").execute();
