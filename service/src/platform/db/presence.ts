import { randomInt } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type RawBuilder, sql } from "kysely";
import type pg from "pg";
import type { Logger } from "pino";
import { type Connection, createDirectClient } from "./database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** A session lock that shows other processes that this one is alive. */
    presence: WorkerPresence;
  }
}

/** Any number, equal in all processes: the first half of the lock; the second is the worker's key. */
const PRESENCE_LOCK = 7_200_414;
const MAX_KEY = 2 ** 31 - 1;
const CHECK_EVERY_MS = 1_000;
const RETRY_MS = 250;
const RESPONSE_TIMEOUT_MS = 5_000;
/** PostgreSQL ends the session of a process that is frozen or cut off for this long. */
const FROZEN_MS = 10_000;

const NEEDS_DIRECT =
  "A worker behind a connection pooler needs DATABASE_DIRECT_URL: without it the workflows of a killed worker wait for ten seconds, and its deliveries for a minute";

const LOCK_INVISIBLE =
  "The session lock of this process cannot be seen through DATABASE_URL: check that DATABASE_DIRECT_URL leads to the same database. Until then what a killed process held waits for its lease";

/** A lock of an older session of this process may be about to end and does not count. */
const LOCK_QUERY = `
  select case when exists (select from pg_locks
                            where locktype = 'advisory' and classid = $1::integer::oid and objid = $2::integer::oid and objsubid = 2 and granted
                              and pid = pg_backend_pid() and database = (select oid from pg_database where datname = current_database()))
              then true else pg_try_advisory_lock($1::integer, $2::integer) end as held`;

/**
 * Shows that a process is alive by a session lock, which ends with the process in every case. Without the lock, other
 * processes may take over the worker's leases.
 */
export class WorkerPresence {
  readonly #connection: Connection;
  readonly #pool: pg.Pool;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  readonly #key = randomInt(1, MAX_KEY);
  #isHeld = false;
  /** Whether the database that the pool reaches sees the lock. */
  #isVisible = false;
  #hasWarned = false;
  #checking: Promise<void> | null = null;
  #sessions = 0;
  #holding: Promise<void> = Promise.resolve();

  constructor(connection: Connection, pool: pg.Pool, log: Logger) {
    this.#connection = connection;
    this.#pool = pool;
    this.#log = log;
  }

  /** Written into leases. null while the lock is not held: such a lease simply expires. */
  get key(): number | null {
    return this.#isHeld && this.#isVisible ? this.#key : null;
  }

  /** The number of sessions so far: after a lost session, other processes may be without their locks too. */
  get sessions(): number {
    return this.#sessions;
  }

  /** Resolves after the first attempt to lock. A lost connection is replaced, with the same key. */
  async start(): Promise<void> {
    const first = Promise.withResolvers<void>();
    this.#holding = this.#keepHolding(first.resolve);
    await first.promise;
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    await this.#holding;
  }

  async #keepHolding(onAttempt: () => void): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#holdOnce(onAttempt).catch((error) => {
        if (!signal.aborted) this.#log.warn({ err: error }, "the worker's session lock is not held");
      });
      onAttempt();
      await sleep(RETRY_MS, null, { signal, ref: false }).catch(() => {});
    }
  }

  /** Returns or throws when the connection breaks. */
  async #holdOnce(onAttempt: () => void): Promise<void> {
    const client = createDirectClient(this.#connection, {
      application_name: "stoa worker",
      query_timeout: RESPONSE_TIMEOUT_MS,
      options: `-c idle_session_timeout=${FROZEN_MS} -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3`,
    });
    client.on("error", () => {}); // `ended` reports it
    const ended = once(client, "end", { signal: this.#closing.signal });
    ended.catch(() => {});
    try {
      await client.connect();
      if (client.isPooled) this.#giveUp();
      this.#sessions++;
      await Promise.race([this.#retryLock(client, onAttempt), ended]);
    } finally {
      this.#isHeld = false;
      this.#isVisible = false;
      await client.end();
    }
  }

  /** Behind a pooler, the lock would stay with the server connection and outlive this process. */
  #giveUp(): void {
    this.#log.warn(NEEDS_DIRECT);
    this.#closing.abort();
  }

  async #retryLock(client: pg.Client, onAttempt: () => void): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const { rows } = await client.query(LOCK_QUERY, [PRESENCE_LOCK, this.#key]);
      this.#isHeld = rows[0].held;
      if (this.#isHeld) await this.#checkThroughPool();
      onAttempt();
      await sleep(this.#isHeld ? CHECK_EVERY_MS : RETRY_MS, null, { signal, ref: false }).catch(() => {});
    }
  }

  /** Waits a limited time for a slow pool: PostgreSQL would end a session that is idle for longer. */
  async #checkThroughPool(): Promise<void> {
    this.#checking ??= listPresentWorkers(this.#pool, [this.#key])
      .then((present) => this.#setVisible(present.has(this.#key)))
      .catch((error) => this.#log.warn({ err: error }, "the session lock of this process was not looked for"))
      .finally(() => {
        this.#checking = null;
      });
    const { signal } = this.#closing;
    await Promise.race([
      this.#checking,
      sleep(RESPONSE_TIMEOUT_MS, null, { signal, ref: false }).catch(() => {}),
    ]);
  }

  #setVisible(isVisible: boolean): void {
    this.#isVisible = isVisible;
    if (!isVisible && !this.#hasWarned) this.#log.warn(LOCK_INVISIBLE);
    this.#hasWarned = !isVisible;
  }
}

/** In SQL, for one key. null, an unknown worker, counts as present. */
export const isWorkerPresent = (key: RawBuilder<unknown>) => sql<boolean>`(${key} is null or exists (
  select from pg_locks
   where locktype = 'advisory' and classid = ${sql.lit(PRESENCE_LOCK)}::integer::oid and objid = ${key}::integer::oid
     and objsubid = 2 and granted
     and database = (select oid from pg_database where datname = current_database())))`;

/** Filters the keys to workers that hold their lock. */
export async function listPresentWorkers(pool: pg.Pool, keys: number[]): Promise<Set<number>> {
  const { rows } = await pool.query<{ key: number }>(
    `select objid::bigint as key from pg_locks
      where locktype = 'advisory' and classid = $1::integer::oid and objid = any ($2::integer[]::oid[]) and objsubid = 2 and granted
        and database = (select oid from pg_database where datname = current_database())`,
    [PRESENCE_LOCK, keys],
  );
  return new Set(rows.map(({ key }) => key));
}
