import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "pino";
import { transactionTimeouts } from "./client.ts";
import { type Connection, createDirectClient } from "./database.ts";
import { hasSqlState, LOCK_NOT_AVAILABLE } from "./sql-state.ts";

/** A lock by key, across all processes of the database. */
export interface Lock {
  /** A number, or a name that PostgreSQL hashes. */
  key: number | string;
  /** For example "the migration lock". */
  name: string;
  /** Several holders share it, and exclude an exclusive one. */
  isShared?: boolean;
}

export interface LockWait {
  /** After this time, LockHeld names the holder. */
  maxMs: number;
  log?: Logger | undefined;
}

export class LockHeld extends Error {
  override name = "LockHeld";
}

/** After this time, the log names the holder. */
const WARN_AFTER_MS = 3_000;
/** Pings of the lock's holder within PostgreSQL's idle timeout of transactions. */
const PINGS = 4;

/**
 * Acquires the lock until the client's current transaction ends. A connection pooler keeps a server connection for one
 * transaction only, so a session lock would stay with the pooler.
 */
export async function lockInTransaction(client: pg.ClientBase, lock: Lock, wait: LockWait): Promise<void> {
  const first = Math.min(WARN_AFTER_MS, wait.maxMs);
  if (await tryLock(client, lock, first)) return;
  const holder = await holderOf(client, lock);
  wait.log?.warn({ lock: lock.name }, `waits for ${lock.name}, held by ${holder}`);
  if (wait.maxMs > first && (await tryLock(client, lock, wait.maxMs - first))) return;
  throw new LockHeld(
    `${capitalized(lock.name)} was not free within ${wait.maxMs / 1000} s: held by ${await holderOf(client, lock)}. Wait for it to end, or end it with select pg_terminate_backend(…), then try again.`,
  );
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

async function tryLock(client: pg.ClientBase, lock: Lock, ms: number): Promise<boolean> {
  const take = lock.isShared ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock";
  await client.query("savepoint before_lock");
  try {
    await client.query(
      `set local statement_timeout = 0; set local lock_timeout = ${Math.max(1, Math.ceil(ms))}`,
    );
    await client.query(`select ${take}(${keyOf(lock)})`, [lock.key]);
    await client.query("set local lock_timeout = 0");
    return true;
  } catch (error) {
    if (!hasSqlState(error, LOCK_NOT_AVAILABLE)) throw error;
    await client.query("rollback to savepoint before_lock");
    return false;
  }
}

const keyOf = ({ key }: Lock) => (typeof key === "number" ? "$1::bigint" : "hashtext($1)::bigint");

/** For example: process 4711 (stoa backup, 10.0.0.3, since 2026-11-21T12:00:00.000Z). */
async function holderOf(client: pg.ClientBase, lock: Lock): Promise<string> {
  const { rows } = await client.query<Holder>(
    `select l.pid, a.application_name as name, host(a.client_addr) as address,
            coalesce(a.xact_start, a.backend_start) as since
       from pg_locks l left join pg_stat_activity a using (pid)
      where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
        and ((l.classid::bigint << 32) | l.objid::bigint) = ${keyOf(lock)}
      order by since limit 1`,
    [lock.key],
  );
  const [holder] = rows;
  if (!holder) return "a process that has ended by now";
  const { name, address, since } = holder;
  const details = [name, address, since && `since ${since.toISOString()}`].filter(Boolean);
  return `process ${holder.pid} (${details.join(", ")})`;
}

interface Holder {
  pid: number;
  name: string | null;
  address: string | null;
  since: Date | null;
}

/**
 * Runs `work` while a connection of its own holds the lock in an otherwise empty transaction. PostgreSQL ends that of a
 * frozen or cut-off process, which releases the lock. Work that must not outlive the lock calls `mustBeHeld` before it
 * commits.
 */
export async function withLock<T>(
  connection: Connection,
  lock: Lock,
  wait: LockWait,
  work: (mustBeHeld: () => Promise<void>) => Promise<T>,
): Promise<T> {
  const { idleMs } = connection.transactionTimeouts ?? transactionTimeouts;
  const client = createDirectClient(connection, { application_name: `stoa: ${lock.name}`, keepAlive: true });
  client.on("error", () => {}); // mustBeHeld reports it
  await client.connect();
  const ended = new AbortController();
  try {
    await client.query(`begin; set local idle_in_transaction_session_timeout = ${idleMs}`);
    await lockInTransaction(client, lock, wait);
    void ping(client, idleMs / PINGS, ended.signal);
    return await work(async () => void (await client.query("select")));
  } finally {
    ended.abort();
    await client.end();
  }
}

/** Until the signal aborts or the connection breaks. */
async function ping(client: pg.ClientBase, everyMs: number, signal: AbortSignal): Promise<void> {
  try {
    for (;;) {
      await sleep(everyMs, null, { signal, ref: false });
      await client.query("select");
    }
  } catch {
    // mustBeHeld reports a lost connection.
  }
}
