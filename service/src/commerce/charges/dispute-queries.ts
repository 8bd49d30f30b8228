import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

/** The provider's ids. */
export async function listOpenDisputes(db: Queries): Promise<{ id: string }[]> {
  const { rows } = await sql<{ id: string }>`
    select id from (
      select provider_dispute_id as id, opened_at from disputes where status in ('inquiry', 'open')
      union all
      select provider_dispute_id, opened_at from subscription_disputes where status in ('inquiry', 'open')) as open
     order by opened_at, id`.execute(db);
  return rows;
}

/** The provider's ids of disputes that could not be applied. */
export const listUnapplied = (db: Queries) =>
  db
    .selectFrom("unappliedDisputes")
    .select("providerDisputeId as id")
    .orderBy("since")
    .orderBy("providerDisputeId")
    .execute();

interface Unapplied {
  providerDisputeId: string;
  orderId: string | null;
  paymentId: string | null;
  since: Date;
}

export const insertUnapplied = (db: Queries, dispute: Unapplied) =>
  db
    .insertInto("unappliedDisputes")
    .values(dispute)
    .onConflict((conflict) => conflict.doNothing())
    .execute();

export const deleteUnapplied = (db: Queries, providersId: string) =>
  db.deleteFrom("unappliedDisputes").where("providerDisputeId", "=", providersId).execute();

/** null: the list was never read. */
export async function readCursor(db: Queries, list: string): Promise<Date | null> {
  const row = await db
    .selectFrom("providerCursors")
    .select("readUntil")
    .where("list", "=", list)
    .executeTakeFirst();
  return row?.readUntil ?? null;
}

export const writeCursor = (db: Queries, list: string, readUntil: Date) =>
  db
    .insertInto("providerCursors")
    .values({ list, readUntil })
    .onConflict((conflict) => conflict.column("list").doUpdateSet({ readUntil }))
    .execute();
