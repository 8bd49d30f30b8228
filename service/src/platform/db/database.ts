import { setTimeout as sleep } from "node:timers/promises";
import { Kysely, type Transaction } from "kysely";
import pg from "pg";
import { splitDatabaseUrl } from "../../core/config/database-hosts.ts";
import { firstOf } from "../../core/required.ts";
import {
  ServiceClient,
  type ServiceClientConfig,
  type TransactionTimeouts,
  transactionTimeouts,
} from "./client.ts";
import { columnNames, SnakeCaseDialect } from "./column-names.ts";
import { PrimaryFinder } from "./primary-finder.ts";
import { RepeatedStatements } from "./repeated-statements.ts";
import { DEADLOCK_DETECTED, hasSqlState } from "./sql-state.ts";
import type { DB } from "./tables.gen.ts";

declare module "../../core/context.ts" {
  interface Context {
    db: Database;
    /** For frequent reads in plain SQL with named statements; all other code uses `db`. */
    pool: pg.Pool;
    /** For connections beside the pool. */
    connection: Connection;
  }
}

export type Database = Kysely<DB>;
export type Tx = Transaction<DB>;
/** A transaction, or the pool. */
export type Queries = Database | Tx;

// Counts and sums stay below 2^53, so a bigint is read as a number. A larger value is a defect and throws.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`bigint ${text} is too large for a number`);
  return number;
});

type Target = string | { host: string; port: number; user: string; database: string };

export interface Connection {
  /** A postgres:// URL with one or more servers, or the socket of the embedded server. */
  target: Target;
  /** The same database without a connection pooler: for LISTEN, locks that outlast a transaction, and backups. undefined: `target`. */
  direct?: Target | undefined;
  maxConnections?: number;
  transactionTimeouts?: TransactionTimeouts;
}

export const DEFAULT_CONNECTIONS = 8;

// On SSDs, random reads cost about as much as sequential ones. Parallel workers and JIT slow short statements down: compiling
// a search takes 30 times as long as running it (docs/decisions/0019-search.md). After 11 seconds, the server ends the session
// of a machine that is cut off, and releases its locks.
export const SESSION_SETTINGS = {
  random_page_cost: "1.1",
  timezone: "UTC",
  statement_timeout: "30000",
  max_parallel_workers_per_gather: "0",
  jit: "off",
  idle_in_transaction_session_timeout: String(transactionTimeouts.idleMs),
  tcp_keepalives_idle: "5",
  tcp_keepalives_interval: "2",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "10000",
};
const SESSION_OPTIONS = Object.entries(SESSION_SETTINGS)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(" ");

function settingsOf(target: Target): ServiceClientConfig {
  const settings = {
    options: SESSION_OPTIONS,
    connectionTimeoutMillis: 10_000,
    // Lets this process detect that the server's machine is cut off.
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
  };
  if (typeof target !== "string") return { ...settings, ...target };
  const urls = splitDatabaseUrl(target);
  return {
    ...settings,
    connectionString: firstOf(urls),
    primary: urls.length > 1 ? new PrimaryFinder(urls) : null,
  };
}

export function openPool(connection: Connection): pg.Pool {
  const pool = new pg.Pool({
    ...settingsOf(connection.target),
    max: connection.maxConnections ?? DEFAULT_CONNECTIONS,
    application_name: "stoa",
    Client: ServiceClient,
    transactionTimeouts: connection.transactionTimeouts ?? transactionTimeouts,
    repeatedStatements: new RepeatedStatements(),
  } as pg.PoolConfig);
  // The pool listens to idle clients only. For a client in use the query rejects; without a listener, the event would end the process.
  pool.on("connect", (client) => client.on("error", () => {}));
  // Connections of a read-only server stay read-only, so the pool must open a new one to the new primary. `_queryable` is
  // the pool's only way to drop a client.
  pool.on("release", (_error, client) => {
    if ((client as pg.Client as DatabaseClient).isUnusable) Object.assign(client, { _queryable: false });
  });
  return pool;
}

/** ServiceClient with the types of pg's queries. */
export type DatabaseClient = pg.Client & Pick<ServiceClient, "isPooled" | "isUnusable">;

/** A connection beside the pool, not yet connected. */
export const createClient = (
  { target }: Pick<Connection, "target">,
  settings: pg.ClientConfig,
): DatabaseClient => new ServiceClient({ ...settingsOf(target), ...settings });

/** Without a connection pooler, if the settings have a direct URL. */
export const createDirectClient = (
  { target, direct }: Connection,
  settings: pg.ClientConfig,
): DatabaseClient => createClient({ target: direct ?? target }, settings);

export const openDatabase = (pool: pg.Pool): Database =>
  new Kysely<DB>({ dialect: new SnakeCaseDialect({ pool }), plugins: [columnNames] });

/** For a connection that has begun a transaction itself. */
export function asTransaction(client: pg.ClientBase): Tx {
  const query = (text: string, values?: unknown[]) => client.query(text, values);
  const connection = { query, release: () => {} } as unknown as pg.PoolClient;
  return new Kysely<DB>({
    dialect: new SnakeCaseDialect({
      pool: { options: {}, connect: async () => connection, end: async () => {} },
    }),
    plugins: [columnNames],
  }) as Tx;
}

/**
 * Errors that a retry may not meet: sockets and DNS; PostgreSQL's classes 08 (connection), 53 (no connections, memory or
 * disk) and 57P0 (shutdown, start); 25006 (read-only: a failover), 40001 (serialization failure), 40P01 (deadlock),
 * 57014 (canceled or timed out), 55P03 (lock timeout) and 25P03 (idle transaction ended by the server).
 */
const UNAVAILABLE =
  /^(ECONN(REFUSED|RESET|ABORTED)|ENOENT|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|08\w{3}|53\w{3}|57P0\w|25006|25P03|40001|40P01|55P03|57014)$/;

/** Raised by the triggers of 0014_closing.sql. */
export const isAccountClosed = (error: unknown) => hasSqlState(error, "ST001");

/** Whether the database is unavailable or overloaded, as opposed to a wrong query. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const { code, message, syscall } = error as { code?: string; message?: string; syscall?: string };
  if (code === "ENOENT" && syscall !== "connect") return false;
  return (
    UNAVAILABLE.test(code ?? "") ||
    /timeout exceeded when trying to connect|^Connection terminated|connection error and is not queryable/.test(
      message ?? "",
    )
  );
}

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
const GIVE_UP_AFTER_MS = 10 * 60_000;

/**
 * Repeats `work` while the database is unavailable, so that an outage loses no state in memory. `work` may run twice.
 * Throws when the signal aborts, or after ten minutes.
 */
export async function retryWhileUnavailable<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const begunAt = performance.now();
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      const isOver = signal.aborted || performance.now() - begunAt > GIVE_UP_AFTER_MS;
      if (isOver || !isDatabaseUnavailable(error)) throw error;
      await sleep(pauseMs, null, { signal, ref: false }).catch(() => {});
    }
  }
}

const MOST_TRIES = 5;

/** Repeats the transaction when PostgreSQL ends it because of a deadlock. */
export async function retryOnDeadlock<T>(transact: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await transact();
    } catch (error) {
      if (!hasSqlState(error, DEADLOCK_DETECTED) || tries === MOST_TRIES) throw error;
    }
  }
}
