import pg from "pg";

/** Between two statements that PostgreSQL keeps: what comes after it is not done any more, as when the process is killed there. */
export interface KillPoint {
  /** Whether it was reached. */
  wasReached: boolean;
}

const KEEPS_NOTHING = /^\s*(?:--[^\n]*\n\s*)?(?:select|begin|start transaction|listen|set)\b/i;

/**
 * Runs `work` as if the process that serves it were killed before its nth statement that PostgreSQL keeps: a commit, or a statement
 * outside a transaction. Every later statement of this process fails until `work` has ended, but for the end of what is rolled back.
 */
export async function killedBefore(nth: number, work: () => Promise<unknown>): Promise<KillPoint> {
  const point: KillPoint = { wasReached: false };
  const inTransaction = new WeakSet<pg.Client>();
  let kept = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    const [first] = given as [string | { text: string }];
    const text = typeof first === "string" ? first : first.text;
    if (/^\s*rollback/i.test(text) || /^select 1$/i.test(text)) {
      inTransaction.delete(this);
      return (query as (...given: unknown[]) => unknown).apply(this, given);
    }
    if (/^\s*(begin|start transaction)/i.test(text)) inTransaction.add(this);
    const isCommit = /^\s*commit/i.test(text);
    if (isCommit) inTransaction.delete(this);
    const isKept = isCommit || (!inTransaction.has(this) && !KEEPS_NOTHING.test(text));
    if (isKept && ++kept === nth) point.wasReached = true;
    if (!point.wasReached) return (query as (...given: unknown[]) => unknown).apply(this, given);
    const callback = given.findLast((one) => typeof one === "function") as
      | ((error: Error) => void)
      | undefined;
    if (!callback) return Promise.reject(new Error("killed"));
    process.nextTick(callback, new Error("killed"));
    return undefined;
  } as typeof query;
  try {
    await work();
  } finally {
    pg.Client.prototype.query = query;
  }
  return point;
}

/** How many rows each table has, by its name. */
export async function countRows(
  query: (text: string) => Promise<pg.QueryResult>,
  except: readonly string[],
): Promise<Record<string, number>> {
  const { rows: tables } = await query(
    `select tablename as name, format('%I.%I', schemaname, tablename) as path from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  );
  const counted = tables.filter(({ name }) => !except.includes(name));
  const texts = counted.map(
    ({ name, path }) => `select '${name}' as name, count(*)::int as rows from ${path}`,
  );
  const { rows } = await query(texts.join(" union all "));
  return Object.fromEntries(rows.map(({ name, rows: count }) => [name, count]));
}
