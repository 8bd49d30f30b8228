import { Kysely, PostgresDialect, type Transaction } from "kysely";
import pg from "pg";
import { PreparingClient, type TransactionTimeouts, transactionTimeouts } from "./prepared.ts";
import type { DB } from "./tables.gen.ts";

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

export interface Connection {
  /** A postgres:// URL, or the socket of the embedded server. */
  target: string | { host: string; port: number; user: string; database: string };
  maxConnections?: number;
  transactionTimeouts?: TransactionTimeouts;
}

// Solid-state disks read anywhere at nearly the same cost; and of short statements several workers make long ones. The server ends the
// session of a machine that is cut off after 11 seconds, and with it whatever it had locked.
const SESSION_OPTIONS = `-c random_page_cost=1.1 -c timezone=UTC -c statement_timeout=30000 -c max_parallel_workers_per_gather=0\
 -c idle_in_transaction_session_timeout=${transactionTimeouts.idleMs}\
 -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c tcp_user_timeout=10000`;

const settingsOf = ({ target }: Connection): pg.ClientConfig => ({
  ...(typeof target === "string" ? { connectionString: target } : target),
  options: SESSION_OPTIONS,
  connectionTimeoutMillis: 10_000,
  // The other way round: this process notices that the server's machine is cut off.
  keepAlive: true,
  keepAliveInitialDelayMillis: 5_000,
});

export function openPool(connection: Connection): pg.Pool {
  const pool = new pg.Pool({
    ...settingsOf(connection),
    max: connection.maxConnections ?? 8,
    application_name: "stoa",
    Client: PreparingClient,
    transactionTimeouts: connection.transactionTimeouts ?? transactionTimeouts,
  } as pg.PoolConfig);
  // The pool listens to idle clients alone. Of one in use the query hears that the connection is gone; unheard, the same
  // event would end the process.
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** One connection beside the pool, not yet connected. */
export const oneClient = (connection: Connection, wish: pg.ClientConfig): pg.Client =>
  new pg.Client({ ...settingsOf(connection), ...wish });

export const openDatabase = (pool: pg.Pool): Database =>
  new Kysely<DB>({ dialect: new PostgresDialect({ pool }) });

/** Queries of a connection that has begun a transaction by itself. */
export const transactionOn = (client: pg.Client): Tx =>
  new Kysely<DB>({
    dialect: new PostgresDialect({
      pool: {
        options: {},
        connect: async () => Object.assign(client, { release: () => {} }),
        end: async () => {},
      },
    }),
  }) as Tx;

/**
 * Connection and shutdown errors: of sockets, of PostgreSQL (classes 08 and 57P, 53300) and of the pool's own waiting;
 * 57014, a statement that took too long or was stopped; 55P03, one that waited too long for a lock; and 25P03, a transaction that the
 * server ended because this process sent nothing for too long.
 */
const DOWN = /^(ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|08\w{3}|57P0\d|57014|53300|55P03|25P03)$/;

/** Raised by the triggers of 0014_closing.sql. */
export const isAccountClosed = (error: unknown) => (error as { code?: string }).code === "ST001";

/** Whether an error says that the database is away or too busy, rather than that a query was wrong. */
export function isDatabaseDown(error: unknown): boolean {
  const { code, message, syscall } = error as { code?: string; message?: string; syscall?: string };
  if (code === "ENOENT" && syscall !== "connect") return false;
  return (
    DOWN.test(code ?? "") ||
    /timeout exceeded when trying to connect|^Connection terminated|connection error and is not queryable/.test(
      message ?? "",
    )
  );
}

const DEADLOCK = "40P01";
const MOST_TRIES = 5;

/** A transaction that locks what many others do, made anew where PostgreSQL broke it off for one of them. */
export async function untilNotDeadlocked<T>(transact: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await transact();
    } catch (error) {
      if ((error as { code?: string }).code !== DEADLOCK || tries === MOST_TRIES) throw error;
    }
  }
}
