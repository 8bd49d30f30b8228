import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

/** By the provider's ids, of orders and of payments for plans. */
export async function listOpenDisputes(db: Queries): Promise<{ id: string }[]> {
  const { rows } = await sql<{ id: string }>`
    select id from (
      select provider_dispute_id as id, opened_at from disputes where status in ('inquiry', 'open')
      union all
      select provider_dispute_id, opened_at from subscription_disputes where status in ('inquiry', 'open')) as open
     order by opened_at, id`.execute(db);
  return rows;
}

/** Listed disputes that could not be applied, by the provider's ids. */
export const listUnapplied = (db: Queries) =>
  db
    .selectFrom("unapplied_disputes")
    .select("provider_dispute_id as id")
    .orderBy("since")
    .orderBy("provider_dispute_id")
    .execute();

interface Unapplied {
  provider_dispute_id: string;
  order_id: string | null;
  payment_id: string | null;
  since: Date;
}

export const insertUnapplied = (db: Queries, dispute: Unapplied) =>
  db
    .insertInto("unapplied_disputes")
    .values(dispute)
    .onConflict((conflict) => conflict.doNothing())
    .execute();

export const deleteUnapplied = (db: Queries, providersId: string) =>
  db.deleteFrom("unapplied_disputes").where("provider_dispute_id", "=", providersId).execute();

/** Until when a list of the provider's has been read; null: never. */
export async function readCursor(db: Queries, list: string): Promise<Date | null> {
  const row = await db
    .selectFrom("provider_cursors")
    .select("read_until as readUntil")
    .where("list", "=", list)
    .executeTakeFirst();
  return row?.readUntil ?? null;
}

export const writeCursor = (db: Queries, list: string, readUntil: Date) =>
  db
    .insertInto("provider_cursors")
    .values({ list, read_until: readUntil })
    .onConflict((conflict) => conflict.column("list").doUpdateSet({ read_until: readUntil }))
    .execute();
