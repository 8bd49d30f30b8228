import type { Writable } from "node:stream";
import type pg from "pg";
import { asTransaction, type Database, type Queries, type Tx } from "./database.ts";
import { IN_FAILED_SQL_TRANSACTION, INVALID_SQL_STATEMENT_NAME } from "./sql-state.ts";

/** pg sends a statement without waiting for the answers before it. Its types omit the fields. */
type PipelineClient = pg.PoolClient & { pipeline: boolean; connection: { stream: Writable } };

/** Follow from the error of an earlier statement: the transaction is aborted, so that a later one was not prepared either. */
const FOLLOW_UP_ERRORS: ReadonlySet<unknown> = new Set([
  IN_FAILED_SQL_TRANSACTION,
  INVALID_SQL_STATEMENT_NAME,
]);

/**
 * Throws the first error when all have ended: what continued after a rollback would write outside of the transaction.
 */
export async function waitForAll<const Work extends readonly unknown[]>(
  work: Work,
): Promise<{ -readonly [Key in keyof Work]: Awaited<Work[Key]> }> {
  const results = await Promise.allSettled(work);
  const errors = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  if (errors.length > 0) throw errors.find((error) => !FOLLOW_UP_ERRORS.has(error?.code)) ?? errors[0];
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as never;
}

/**
 * Sends the statements of several functions, in their order: together in a pipeline, else one after the other, because pg
 * sends no statement of other transactions before the answer to the last one.
 */
export async function sendInOrder<const Work extends readonly (() => unknown)[]>(
  db: Queries,
  work: Work,
): Promise<{ -readonly [Key in keyof Work]: Awaited<ReturnType<Work[Key]>> }> {
  const client = pipelines.get(db);
  if (client) {
    writeTogether(client);
    return waitForAll(work.map((start) => start())) as never;
  }
  const results: unknown[] = [];
  for (const start of work) results.push(await start());
  return results as never;
}

/** The statements that start now are written by one system call, which wakes the server's process once. */
function writeTogether({ connection: { stream } }: PipelineClient): void {
  stream.cork();
  // Kysely sends a statement some microtasks after its start; the next tick is after all of them.
  process.nextTick(() => stream.uncork());
}

/** Statements that start together are sent together, in that order. */
export const inPipeline = <T>(pool: pg.Pool, work: (db: Queries) => Promise<T>): Promise<T> =>
  withPipeline(pool, (client, db) => {
    writeTogether(client);
    return work(db);
  });

/**
 * A transaction whose statements are sent together if they start together: a round trip each for `read`, for `work` if
 * it starts all at once, and for the commit. `read` only reads and locks, because `begin` may turn out to have failed.
 * `begin` is the statement that opens the transaction.
 */
export const inPipelinedTransaction = <Found, T>(
  pool: pg.Pool,
  read: (tx: Tx) => Promise<Found>,
  work: (tx: Tx, found: Found) => Promise<T>,
  begin = "begin",
): Promise<T> =>
  withPipeline(pool, async (client, tx) => {
    try {
      writeTogether(client);
      const [, found] = await waitForAll([client.query(begin), read(tx)]);
      writeTogether(client);
      const result = await work(tx, found);
      const { command } = await client.query("commit");
      if (command !== "COMMIT") throw new Error("A statement failed, so the transaction was rolled back");
      return result;
    } catch (error) {
      // The pool drops a connection that is lost.
      await client.query("rollback").catch(() => {});
      throw error;
    }
  });

/**
 * A transaction that only reads, all of it from one snapshot, so that the parts of an answer agree despite concurrent writes.
 * `begin` and the statements that `read` starts at once are sent together.
 */
export const inPipelinedSnapshot = <T>(pool: pg.Pool, read: (tx: Tx) => Promise<T>): Promise<T> =>
  inPipelinedTransaction(pool, read, async (_tx, found) => found, BEGIN_SNAPSHOT);
const BEGIN_SNAPSHOT = "begin isolation level repeatable read, read only";

async function withPipeline<T>(
  pool: pg.Pool,
  work: (client: PipelineClient, tx: Tx) => Promise<T>,
): Promise<T> {
  const client = (await pool.connect()) as PipelineClient;
  client.pipeline = true;
  try {
    return await work(client, await transactionOn(client));
  } finally {
    client.release();
  }
}

const opened = new WeakMap<pg.PoolClient, Promise<Tx>>();
const pipelines = new WeakMap<Queries, PipelineClient>();

function transactionOn(client: PipelineClient): Promise<Tx> {
  const known = opened.get(client) ?? openTransaction(client);
  opened.set(client, known);
  return known;
}

/** Kysely starts at the first use; statements that wait for that could be sent in another order. */
async function openTransaction(client: PipelineClient): Promise<Tx> {
  const tx = asTransaction(client);
  const db: Database = tx;
  await db.connection().execute(async () => {});
  pipelines.set(tx, client);
  return tx;
}
