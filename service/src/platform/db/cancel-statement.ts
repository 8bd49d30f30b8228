import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Database, Tx } from "./database.ts";

const REPEAT_MS = 200;

/**
 * Runs `work` in the transaction, and cancels its statement when the signal aborts. Repeats that until `work` has ended,
 * because PostgreSQL ignores it between two statements. Waits for the last one, which must not meet the connection's next user.
 */
export async function runCancelable<T>(
  db: Database,
  tx: Tx,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
  const { pid } = firstOf(rows);
  let timer: NodeJS.Timeout | undefined;
  let canceling: Promise<unknown> = Promise.resolve();
  const cancel = () => {
    canceling = canceling.then(() => sql`select pg_cancel_backend(${pid})`.execute(db)).catch(() => {});
  };
  const begin = () => {
    cancel();
    timer = setInterval(cancel, REPEAT_MS);
  };
  if (signal.aborted) begin();
  signal.addEventListener("abort", begin, { once: true });
  try {
    return await work();
  } finally {
    signal.removeEventListener("abort", begin);
    clearInterval(timer);
    await canceling;
  }
}
