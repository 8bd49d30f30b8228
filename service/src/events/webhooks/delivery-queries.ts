import { sql } from "kysely";
import type pg from "pg";
import { NIL } from "uuid";
import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { type AttemptResult, type LeasedDelivery, toPace } from "./attempt-result.ts";

interface FanOutBatch {
  oldest: number;
  byAccount: number;
  after: string | null;
}

interface PolledWork {
  /** Attempts that a lock or a refused row kept from being recorded. */
  unrecorded: RecordedAttempt[];
  /** The number of events whose deliveries were created. */
  handled: number;
  /** null when the next batch starts with the first account. */
  lastAccount: string | null;
  claimed: ClaimedDelivery[];
  /** A queue of a slow endpoint is due. */
  hasSlow: boolean;
}

/**
 * Records attempts, creates the deliveries of new events and claims due ones of endpoints that are not slow. An idle worker asks this ten
 * times a second.
 */
export async function pollDeliveries(
  pool: pg.Pool,
  { newId }: Pick<Context, "newId">,
  { oldest, byAccount, after }: FanOutBatch,
  lease: Lease,
  { limit, perAccount }: Omit<ClaimLimits, "isSlow">,
  results: RecordedAttempt[],
): Promise<PolledWork> {
  const { rows } = await pool.query({
    name: "poll-deliveries",
    text: `select unrecorded, handled, last_account as "lastAccount", has_slow as "hasSlow", ${CLAIMED_COLUMNS}
             from poll_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    values: [
      ...[lease.now, newId(), oldest, byAccount, after ?? NIL],
      ...[limit, perAccount, lease.token, lease.until, lease.worker],
      results.length > 0 ? toRows(results) : null,
      [...new Set(results.map(({ delivery }) => delivery.endpointId))],
    ],
  });
  const [{ unrecorded, handled, lastAccount, hasSlow }, ...claimed] = rows;
  return {
    unrecorded: unrecorded ? results.filter(({ attempt }) => unrecorded.includes(attempt.id)) : [],
    ...{ handled: handled ?? 0, lastAccount: handled === null ? after : lastAccount, hasSlow, claimed },
  };
}

/** Always by id, so that two transactions do not deadlock. */
export const lockQueues = (tx: Tx, endpointIds: string[]) =>
  sql`
    select from webhook_queues where endpoint_id = any (${endpointIds}::uuid[])
     order by endpoint_id for no key update`.execute(tx);

export interface NewDelivery {
  id: string;
  eventId: string;
  endpointId: string;
}

/**
 * Due now when the endpoint is enabled and its owner not banned, else skipped. The caller holds the lock of the queue.
 */
export const insertDelivery = (
  tx: Tx,
  { id, eventId, endpointId }: NewDelivery,
  now: Date,
  { isUrgent = false } = {},
) =>
  sql`
  select insert_deliveries(array[${id}::uuid], array[${eventId}::uuid], array[${endpointId}::uuid], ${now}, ${isUrgent})`.execute(
    tx,
  );

/** Marks the queues due. Urgent deliveries ignore `blocked_until`. The caller holds the locks. */
export const wakeQueues = (tx: Tx, endpointIds: string[], now: Date, { isUrgent = false } = {}) =>
  sql`update webhook_queues set next_due = least(next_due, ${now}), has_urgent = has_urgent or ${isUrgent}
       where endpoint_id = any (${endpointIds}::uuid[])`.execute(tx);

/** Resets what an earlier URL caused. The caller holds the lock of the queue. */
export const unblockQueue = (tx: Tx, endpointId: string) =>
  sql`update webhook_queues set blocked_until = '-infinity', max_in_flight = default where endpoint_id = ${endpointId}`.execute(
    tx,
  );

/** A delivery with everything that one attempt needs. */
export interface ClaimedDelivery extends LeasedDelivery {
  /** As stored: not yet unsealed. */
  body: string;
  sealedBody: string | null;
  userId: string;
  url: string;
  content: "timestamp_body" | "body";
  prefix: boolean;
  /** Active secrets, newest first. */
  secrets: { id: string; sealed: string }[];
}

const CLAIMED_COLUMNS = `
  id, event_id as "eventId", endpoint_id as "endpointId", status, attempts, scheduled_attempts as "scheduledAttempts",
  is_manual as "isManual", resume_at as "resumeAt", lease_token as "leaseToken", body, sealed_body as "sealedBody",
  user_id as "userId", url, content, prefix, secrets`;

export interface Lease {
  now: Date;
  token: string;
  until: Date;
  /** The key of the worker's session lock; null: the lease ends only by time. */
  worker: number | null;
}

export interface ClaimLimits {
  isSlow: boolean;
  limit: number;
  /** Limit of deliveries in flight for one account. */
  perAccount: number;
}

export async function claimDeliveries(
  pool: pg.Pool,
  lease: Lease,
  { isSlow, limit, perAccount }: ClaimLimits,
): Promise<ClaimedDelivery[]> {
  const { rows } = await pool.query({
    name: "claim-deliveries",
    text: "select id from claim_deliveries($1, $2, $3, $4, $5, $6, $7)",
    values: [lease.now, isSlow, limit, perAccount, lease.token, lease.until, lease.worker],
  });
  return readClaimed(pool, lease, rows);
}

/**
 * Frees expired leases and those of dead workers. Leases deliveries that killed several workers, so that they are
 * recorded as failed.
 */
export async function reclaimDeliveries(
  pool: pg.Pool,
  lease: Lease,
  dead: number[],
): Promise<ClaimedDelivery[]> {
  const text = "select id from reclaim_deliveries($1, $2, $3, $4, $5)";
  const { rows } = await pool.query(text, [lease.now, dead, lease.token, lease.until, lease.worker]);
  return readClaimed(pool, lease, rows);
}

/** By the keys of their session locks. */
export async function listLeasingWorkers(pool: pg.Pool): Promise<number[]> {
  const { rows } = await pool.query<{ worker: number }>(
    "select distinct leased_by as worker from webhook_deliveries where lease_token is not null and leased_by is not null",
  );
  return rows.map(({ worker }) => worker);
}

/**
 * A second statement: the snapshot of the one that leased is older than the queue locks and misses events committed
 * since.
 */
async function readClaimed(
  pool: pg.Pool,
  { now, token }: Lease,
  leased: { id: string }[],
): Promise<ClaimedDelivery[]> {
  if (leased.length === 0) return [];
  const { rows } = await pool.query({
    name: "read-claimed-deliveries",
    text: `select ${CLAIMED_COLUMNS} from read_claimed_deliveries($1, $2, $3)`,
    values: [now, leased.map(({ id }) => id), token],
  });
  return rows;
}

export interface DeliveryAttempt {
  id: string;
  startedAt: Date;
  endedAt: Date;
  durationMs: number;
  requestHeaders: Record<string, string>;
  response: { status: number; headers: Record<string, string>; body: string } | null;
}

export interface RecordedAttempt {
  delivery: ClaimedDelivery;
  attempt: DeliveryAttempt;
  result: AttemptResult;
}

/**
 * Returns the ids of the accepted attempts. An attempt whose lease has passed to another worker is logged and changes
 * nothing.
 */
export async function recordAttempts(db: Queries, results: RecordedAttempt[]): Promise<Set<string>> {
  const { rows: moved } = await sql<{
    id: string;
  }>`${prepared("record_attempts")}select record_attempts(${toRows(results)}::jsonb) as id`.execute(db);
  return new Set(moved.map(({ id }) => id));
}

const toRows = (results: RecordedAttempt[]): string => JSON.stringify(results.map(toRow));

const toRow = ({ delivery, attempt, result }: RecordedAttempt) => ({
  id: delivery.id,
  attempt_id: attempt.id,
  endpoint_id: delivery.endpointId,
  token: delivery.leaseToken,
  n: delivery.attempts + 1,
  started_at: attempt.startedAt,
  ended_at: attempt.endedAt,
  duration_ms: attempt.durationMs,
  url: delivery.url,
  request_headers: attempt.requestHeaders,
  answer: attempt.response?.status ?? null,
  response_headers: attempt.response?.headers ?? null,
  response_body: attempt.response?.body ?? null,
  error: result.error,
  status: result.status,
  scheduled_attempts: result.scheduledAttempts,
  due_at: result.dueAt,
  blocked_until: result.blockedUntil,
  pace: toPace(attempt.durationMs, result),
  // A delivery that had failed before and was retried by hand counts once.
  is_exhausted: result.status === "failed" && delivery.status !== "failed",
});

/** Ends the lease of an attempt that shutdown aborted. The attempt does not count. */
export const releaseDelivery = (pool: pg.Pool, { id, leaseToken }: ClaimedDelivery, now: Date) =>
  pool.query(
    "update webhook_deliveries set lease_until = $3, leases = leases - 1 where id = $1 and lease_token = $2",
    [id, leaseToken, now],
  );

/** Wakes queues that sleep past their first delivery. None should; this is a safety net. Returns how many it found. */
export async function repairQueues(db: Queries, now: Date): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    with late as (
      select l.endpoint_id, first.due_at
        from webhook_queues l
        cross join lateral (select due_at from webhook_deliveries d
                             where d.endpoint_id = l.endpoint_id and d.due_at is not null and d.lease_token is null
                             order by due_at, id limit 1) first
       -- A full queue is checked again soon, however long its deliveries have waited.
       where l.next_due > greatest(first.due_at, ${now}) + interval '1 second'
       order by l.endpoint_id for no key update of l skip locked)
    update webhook_queues l set next_due = late.due_at from late where l.endpoint_id = late.endpoint_id
    returning l.endpoint_id as id`.execute(db);
  return rows.length;
}

export async function deleteDeliveryLogBatch(db: Queries, userId: string, limit: number): Promise<number> {
  const some = db
    .selectFrom("webhookDeliveries as d")
    .innerJoin("webhookEndpoints as e", "e.id", "d.endpointId")
    .select("d.id")
    .where("e.userId", "=", userId)
    .where("e.deletedAt", "is not", null)
    .limit(limit);
  const { numDeletedRows } = await db
    .deleteFrom("webhookDeliveries")
    .where("id", "in", some)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
