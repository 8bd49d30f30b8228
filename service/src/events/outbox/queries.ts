import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { prepared } from "../../platform/db/prepared.ts";

export interface NewEvent {
  id: string;
  type: string;
  body: string;
  sealedBody: string | null;
  executionId: string | null;
  createdAt: Date;
}

export async function insertEvent(tx: Tx, event: NewEvent, recipients: string[]): Promise<void> {
  await sql`${prepared("insert_event")}
    with written as (
      insert into events (id, type, body, sealed_body, execution_id, created_at)
      values (${event.id}, ${event.type}, ${event.body}, ${event.sealedBody}, ${event.executionId}::uuid, ${event.createdAt})
      returning id, type)
    insert into event_recipients (user_id, event_id, type)
    select recipient, written.id, written.type
      from written, unnest(${recipients}::uuid[]) as recipient`.execute(tx);
}

/** Each for one recipient. */
export async function insertEvents(tx: Tx, events: (NewEvent & { recipient: string })[]): Promise<void> {
  await sql`${prepared("insert_events")}
    with given as (
      select * from json_to_recordset(${JSON.stringify(events)}::json) as e (
             id uuid, type text, body text, "createdAt" timestamptz, recipient uuid)),
    written as (insert into events (id, type, body, created_at) select id, type, body, "createdAt" from given)
    insert into event_recipients (user_id, event_id, type) select recipient, id, type from given`.execute(tx);
}

const ownEvents = (db: Queries, userId: string, type: string | undefined) => {
  const own = db.selectFrom("eventRecipients as r").where("r.userId", "=", userId);
  return type === undefined ? own : own.where("r.type", "=", type);
};

export async function listEvents(
  db: Queries,
  userId: string,
  filter: Paging & { type?: string | undefined },
): Promise<Page<string>> {
  const matching = () => ownEvents(db, userId, filter.type).select("r.eventId");
  const page = matching().orderBy("r.eventId", "desc").limit(filter.limit).offset(offsetOf(filter));
  // The index finds the page first, so that only its events are read.
  const rows = await db
    .selectFrom("events")
    .select("body")
    .where("id", "in", page)
    .orderBy("id", "desc")
    .execute();
  return { items: rows.map((row) => row.body), ...(await countRows(db, matching())) };
}

export const findEvent = (db: Queries, userId: string, id: string) =>
  ownEvents(db, userId, undefined)
    .innerJoin("events as e", "e.id", "r.eventId")
    .select("e.body")
    .where("r.eventId", "=", id)
    .executeTakeFirst();

export async function deleteEventsBefore(db: Queries, before: Date, limit: number): Promise<number> {
  const old = db
    .selectFrom("events")
    .select("id")
    .where("createdAt", "<", before)
    .orderBy("createdAt")
    .limit(limit)
    .forUpdate()
    .skipLocked();
  const { numDeletedRows } = await db.deleteFrom("events").where("id", "in", old).executeTakeFirst();
  return Number(numDeletedRows);
}
