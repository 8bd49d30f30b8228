import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface NewEvent {
  id: string;
  type: string;
  body: string;
  sealed_body: string | null;
  execution_id: string | null;
  created_at: Date;
}

export async function insertEvent(tx: Tx, event: NewEvent, recipients: string[]): Promise<void> {
  await sql`
    with written as (
      insert into events (id, type, body, sealed_body, execution_id, created_at)
      values (${event.id}, ${event.type}, ${event.body}, ${event.sealed_body}, ${event.execution_id}::uuid, ${event.created_at})
      returning id, type)
    insert into event_recipients (user_id, event_id, type)
    select recipient, written.id, written.type
      from written, unnest(${recipients}::uuid[]) as recipient`.execute(tx);
}

const ownEvents = (db: Queries, userId: string, type: string | undefined) => {
  const own = db.selectFrom("event_recipients as r").where("r.user_id", "=", userId);
  return type === undefined ? own : own.where("r.type", "=", type);
};

export async function listEvents(
  db: Queries,
  userId: string,
  filter: Paging & { type?: string | undefined },
): Promise<Page<string>> {
  const fitting = () => ownEvents(db, userId, filter.type).select("r.event_id");
  const page = fitting().orderBy("r.event_id", "desc").limit(filter.limit).offset(offsetOf(filter));
  // The index finds the page first, so that only its events are read.
  const rows = await db
    .selectFrom("events")
    .select("body")
    .where("id", "in", page)
    .orderBy("id", "desc")
    .execute();
  return { items: rows.map((row) => row.body), ...(await countRows(db, fitting())) };
}

export const findEvent = (db: Queries, userId: string, id: string) =>
  ownEvents(db, userId, undefined)
    .innerJoin("events as e", "e.id", "r.event_id")
    .select("e.body")
    .where("r.event_id", "=", id)
    .executeTakeFirst();

export async function deleteEventsBefore(db: Queries, before: Date, limit: number): Promise<number> {
  const old = db
    .selectFrom("events")
    .select("id")
    .where("created_at", "<", before)
    .orderBy("created_at")
    .limit(limit)
    .forUpdate()
    .skipLocked();
  const { numDeletedRows } = await db.deleteFrom("events").where("id", "in", old).executeTakeFirst();
  return Number(numDeletedRows);
}
