import pg from "pg";
import { PROOF_CHANNEL } from "../src/platform/db/notifications.ts";

export interface Asked {
  /** The index of the connection, in order of first use. */
  connection: number;
  text: string;
  values: unknown[];
}

/**
 * A process sends these regularly or when the pool opens a connection: clock readings, session locks, probes of its
 * LISTEN connection, who serves a connection, and the request log.
 */
const SENT_BESIDE =
  /clock_timestamp\(\)|pg_locks|pg_try_advisory_lock|^select 1$|^select pg_backend_pid\(\)|insert into request_logs/;

/** The statements of this process while `work` runs, without those that it sends beside them. */
export async function askedDuring(work: () => Promise<unknown>): Promise<Asked[]> {
  const asked: Asked[] = [];
  const connections: pg.Client[] = [];
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [first, second] = args as [string | { text: string; values?: unknown[] }, unknown];
    const named = typeof first === "string" ? { text: first } : first;
    const values = named.values ?? (Array.isArray(second) ? second : []);
    if (SENT_BESIDE.test(named.text) || values[0] === PROOF_CHANNEL)
      return (query as (...args: unknown[]) => unknown).apply(this, args);
    if (!connections.includes(this)) connections.push(this);
    asked.push({ connection: connections.indexOf(this), text: named.text, values });
    return (query as (...args: unknown[]) => unknown).apply(this, args);
  } as typeof query;
  try {
    await work();
  } finally {
    pg.Client.prototype.query = query;
  }
  return asked;
}

/** The texts of the same statements. */
export const statementsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await askedDuring(work)).map(({ text }) => text);
