import { AsyncLocalStorage } from "node:async_hooks";
import { Server } from "node:http";
import pg from "pg";
import { PROOF_CHANNEL } from "../src/platform/db/notifications.ts";

export interface Asked {
  /** The index of the connection, in order of first use. */
  connection: number;
  text: string;
  values: unknown[];
  /** Sent while its connection waited for no answer; others went with the one before. */
  startsRoundTrip: boolean;
}

/**
 * A process sends these regularly or when it opens a connection: clock readings, session locks, LISTEN and its probes,
 * who serves a connection, the request log, and the job queue's own maintenance.
 */
const SENT_BESIDE =
  /clock_timestamp\(\)|pg_locks|pg_try_advisory_lock|^select 1$|^listen |^select pg_backend_pid\(\)|insert into request_logs|pgboss\.version/i;

/** The recording to which statements of this async context belong. */
const askedBy = new AsyncLocalStorage<Asked[]>();

/**
 * The statements that `work` sends, and those of the requests that reach this process meanwhile. Timers, workers and earlier
 * requests send theirs in contexts of their own, which it does not record.
 */
export async function askedDuring(work: () => Promise<unknown>): Promise<Asked[]> {
  const asked: Asked[] = [];
  const restore = bindRequests(asked);
  try {
    return await recordDuring(
      asked,
      () => askedBy.run(asked, work),
      () => askedBy.getStore() === asked,
    );
  } finally {
    restore();
  }
}

/** Requests run in the context of `asked` until the returned function is called. A socket has no context of its client. */
function bindRequests(asked: Asked[]): () => void {
  const { emit } = Server.prototype;
  Server.prototype.emit = function (this: Server, name: string, ...args: unknown[]) {
    const emitNow = () => Reflect.apply(emit, this, [name, ...args]);
    return name === "request" ? askedBy.run(asked, emitNow) : emitNow();
  } as typeof emit;
  return () => {
    Server.prototype.emit = emit;
  };
}

async function recordDuring(
  asked: Asked[],
  work: () => Promise<unknown>,
  isRecorded: () => boolean,
): Promise<Asked[]> {
  const connections: pg.Client[] = [];
  const unanswered = new Map<pg.Client, number>();
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
    const [first, second] = args as [string | { text: string; values?: unknown[] }, unknown];
    const named = typeof first === "string" ? { text: first } : first;
    const values = named.values ?? (Array.isArray(second) ? second : []);
    if (!isRecorded() || SENT_BESIDE.test(named.text) || values[0] === PROOF_CHANNEL)
      return (query as (...args: unknown[]) => unknown).apply(this, args);
    if (!connections.includes(this)) connections.push(this);
    const waiting = unanswered.get(this) ?? 0;
    unanswered.set(this, waiting + 1);
    const connection = connections.indexOf(this);
    asked.push({ connection, text: named.text, values, startsRoundTrip: waiting === 0 });
    const onAnswer = () => unanswered.set(this, (unanswered.get(this) ?? 1) - 1);
    return callAnswered(query.bind(this) as (...args: unknown[]) => unknown, args, onAnswer);
  } as typeof query;
  try {
    await work();
  } finally {
    pg.Client.prototype.query = query;
  }
  return asked;
}

/** pg takes a callback as the last argument, or returns a promise. */
function callAnswered(
  query: (...args: unknown[]) => unknown,
  args: unknown[],
  onAnswer: () => void,
): unknown {
  const callback = args.at(-1);
  if (typeof callback === "function")
    return query(...args.slice(0, -1), (...result: unknown[]) => {
      onAnswer();
      callback(...result);
    });
  const answer = query(...args);
  if (answer instanceof Promise) answer.then(onAnswer, onAnswer);
  return answer;
}

/** A `select` of a function that writes. */
const callsWritingFunction = (text: string): boolean => /\bplace_order\(/.test(text);

/** What a request costs the database. */
export function costOf(asked: Asked[]): { statements: number; roundTrips: number; transactions: number } {
  const open = new Set<number>();
  let transactions = 0;
  for (const { connection, text } of asked) {
    if (/^begin/i.test(text)) open.add(connection);
    const isOnlyRead = /^\s*(?:--[^\n]*\n\s*)?select/i.test(text) && !callsWritingFunction(text);
    if (/^commit/i.test(text) || (!open.has(connection) && !isOnlyRead)) transactions++;
    if (/^(commit|rollback)/i.test(text)) open.delete(connection);
  }
  const roundTrips = asked.filter(({ startsRoundTrip }) => startsRoundTrip).length;
  return { statements: asked.length, roundTrips, transactions };
}

/** The texts of the statements that `askedDuring` returns. */
export const statementsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await askedDuring(work)).map(({ text }) => text);

/** The texts of all statements of this process while `work` runs, without SENT_BESIDE: for tests of its timers and workers. */
export const statementsOfProcess = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await recordDuring([], work, () => true)).map(({ text }) => text);
