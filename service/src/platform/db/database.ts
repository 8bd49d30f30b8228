import { setTimeout as sleep } from "node:timers/promises";
import { Kysely, type Transaction } from "kysely";
import pg from "pg";
import { PrimaryFinder, splitDatabaseUrl } from "../../core/config/database-hosts.ts";
import { firstOf } from "../../core/required.ts";
import {
  ServiceClient,
  type ServiceClientConfig,
  type TransactionTimeouts,
  transactionTimeouts,
} from "./client.ts";
import { columnNames, SnakeCaseDialect } from "./column-names.ts";
import type { DB } from "./tables.gen.ts";

declare module "../../core/context.ts" {
  interface Context {
    db: Database;
    /** For hot reads in plain SQL with named statements; everything else uses `db`. */
    pool: pg.Pool;
    /** How to reach the database, for connections beside the pool. */
    connection: Connection;
  }
}

export type Database = Kysely<DB>;
export type Tx = Transaction<DB>;
/** What a query runs on: a transaction where it must be part of one, else the pool. */
export type Queries = Database | Tx;

// Counts and sums of ours stay below 2^53, so a bigint reads as a number; anything larger is a defect, said aloud.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => {
  const number = Number(text);
  if (!Number.isSafeInteger(number)) throw new RangeError(`bigint ${text} is too large for a number`);
  return number;
});

type Target = string | { host: string; port: number; user: string; database: string };

export interface Connection {
  /** A postgres:// URL, maybe of several servers, or the socket of the embedded server. */
  target: Target;
  /**
   * The same database without a connection pooler in between: for LISTEN, locks that last longer than a transaction, and
   * backups. undefined: `target`.
   */
  direct?: Target | undefined;
  maxConnections?: number;
  transactionTimeouts?: TransactionTimeouts;
}

export const DEFAULT_CONNECTIONS = 8;

// Solid-state disks read anywhere at nearly the same cost; and of short statements several workers make long ones. The server ends the
// session of a machine that is cut off after 11 seconds, and with it whatever it had locked.
export const SESSION_SETTINGS = {
  random_page_cost: "1.1",
  timezone: "UTC",
  statement_timeout: "30000",
  max_parallel_workers_per_gather: "0",
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
    // The other way round: this process notices that the server's machine is cut off.
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
  } as pg.PoolConfig);
  // The pool listens to idle clients alone. Of one in use the query hears that the connection is gone; unheard, the same
  // event would end the process.
  pool.on("connect", (client) => client.on("error", () => {}));
  // A server that became read-only stays so for its connections: the next one goes to the new primary. Of a connection that is
  // not `_queryable` the pool takes leave (it has no other word for it).
  pool.on("release", (_error, client) => {
    if ((client as pg.Client as DatabaseClient).isReadOnly) Object.assign(client, { _queryable: false });
  });
  return pool;
}

/** Of our own class, but with the types of pg's queries. */
export type DatabaseClient = pg.Client & Pick<ServiceClient, "isPooled" | "isReadOnly">;

/** One connection beside the pool, not yet connected. */
export const createClient = (
  { target }: Pick<Connection, "target">,
  settings: pg.ClientConfig,
): DatabaseClient => new ServiceClient({ ...settingsOf(target), ...settings });

/** The same without a connection pooler in between, where the settings name a way around it. */
export const createDirectClient = (
  { target, direct }: Connection,
  settings: pg.ClientConfig,
): DatabaseClient => createClient({ target: direct ?? target }, settings);

export const openDatabase = (pool: pg.Pool): Database =>
  new Kysely<DB>({ dialect: new SnakeCaseDialect({ pool }), plugins: [columnNames] });

/** Queries of a connection that has begun a transaction by itself. */
export const asTransaction = (client: pg.Client): Tx =>
  new Kysely<DB>({
    dialect: new SnakeCaseDialect({
      pool: {
        options: {},
        connect: async () => Object.assign(client, { release: () => {} }),
        end: async () => {},
      },
    }),
    plugins: [columnNames],
  }) as Tx;

/**
 * Errors that a later try may not meet: of sockets and names; of PostgreSQL's classes 08 (connection), 53 (out of connections,
 * memory or disk) and 57P0 (shutting down, starting); 25006 (read-only: a failover), 40001 and 40P01 (serialization failure,
 * deadlock), 57014, a statement that took too long or was stopped; 55P03, one that waited too long for a lock; and 25P03, a
 * transaction that the server ended because this process sent nothing for too long.
 */
const UNAVAILABLE =
  /^(ECONN(REFUSED|RESET|ABORTED)|ENOENT|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|08\w{3}|53\w{3}|57P0\w|25006|25P03|40001|40P01|55P03|57014)$/;

/** Raised by the triggers of 0014_closing.sql. */
export const isAccountClosed = (error: unknown) => (error as { code?: string }).code === "ST001";

/** Whether an error says that the database is away or too busy, rather than that a query was wrong. */
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
 * Work that fails because the database is away, done again until it is back: what it holds in memory is not lost with a connection. It
 * may be done twice. Given up when the signal aborts, or after ten minutes.
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

const DEADLOCK = "40P01";
const MOST_TRIES = 5;

/** A transaction that locks what many others do, made anew where PostgreSQL broke it off for one of them. */
export async function retryOnDeadlock<T>(transact: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await transact();
    } catch (error) {
      if ((error as { code?: string }).code !== DEADLOCK || tries === MOST_TRIES) throw error;
    }
  }
}
