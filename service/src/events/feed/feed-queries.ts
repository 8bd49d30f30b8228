import type { EventType } from "@stoa/contract";
import type pg from "pg";
import { required } from "../../core/required.ts";

export interface FeedEvent {
  seq: number;
  id: string;
  type: EventType;
  /** null: the reader did not ask for this type. */
  body: string | null;
}

const MAX_EVENTS_PER_READER = 100;
/** A page may exceed this by one event, so that a large event is delivered at all. */
const MAX_BYTES_PER_READER = 256 * 1024;

/**
 * The highest number that an event has. Numbers become visible in order, so a reader that passed it has seen all
 * events before.
 */
export async function findLastSequence(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query({
    name: "find-head-of-events",
    text: "select coalesce(max(seq), 0) as head from events",
  });
  return rows[0].head;
}

/** The next events of each reader up to `head`, in order. One statement serves all readers. */
export async function listEventsAfter(
  pool: pg.Pool,
  readers: readonly { userId: string; after: number; types: readonly EventType[] | null }[],
  head: number,
): Promise<FeedEvent[][]> {
  const rowsByReader = readers.map(({ userId, after, types }, n) => ({ n, user_id: userId, after, types }));
  const { rows } = await pool.query<FeedEvent & { n: number }>({
    name: "list-events-ahead",
    text: `
      select n, seq, id, type, body from (
        select reader.n, r.seq, r.event_id as id, r.type, e.body, octet_length(e.body) as bytes,
               sum(octet_length(e.body)) over (partition by reader.n order by r.seq) as bytes_so_far
          from jsonb_to_recordset($1) as reader (n integer, user_id uuid, after bigint, types text[])
         cross join lateral (select seq, event_id, type from event_recipients
                              where user_id = reader.user_id and seq > reader.after and seq <= $2
                              order by seq limit ${MAX_EVENTS_PER_READER}) r
          left join events e on e.id = r.event_id and (reader.types is null or r.type = any (reader.types))) ahead
       where coalesce(bytes_so_far, 0) - coalesce(bytes, 0) < ${MAX_BYTES_PER_READER}
       order by n, seq`,
    values: [JSON.stringify(rowsByReader), head],
  });
  const pages: FeedEvent[][] = readers.map(() => []);
  for (const { n, ...event } of rows) required(pages[n], "the page of a reader").push(event);
  return pages;
}

export interface StreamPosition {
  id: string;
  after: number;
}

/** The position after an event. An event without a number comes after all events that have one. */
export async function findPosition(
  pool: pg.Pool,
  userId: string,
  eventId: string,
): Promise<StreamPosition | undefined> {
  const text = `
    select event_id as id, coalesce(seq, (select max(seq) from event_recipients where user_id = $1), 0) as after
      from event_recipients where user_id = $1 and event_id = $2`;
  return (await pool.query<StreamPosition>(text, [userId, eventId])).rows[0];
}

export async function findLastPosition(pool: pg.Pool, userId: string): Promise<StreamPosition | undefined> {
  const text = `select event_id as id, seq as after from event_recipients
                 where user_id = $1 and seq is not null order by seq desc limit 1`;
  return (await pool.query<StreamPosition>(text, [userId])).rows[0];
}

/** When the oldest event without deliveries happened; null: there is none. */
export async function findOldestUnprocessedEvent(pool: pg.Pool): Promise<Date | null> {
  const { rows } = await pool.query<{ at: Date }>(
    "select created_at as at from events where seq is null order by id limit 1",
  );
  return rows[0]?.at ?? null;
}
