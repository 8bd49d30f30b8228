import pg from "pg";

/** A point between two statements with lasting effects. Nothing after it happens, as if the process were killed there. */
export interface KillPoint {
  wasReached: boolean;
}

const KEEPS_NOTHING = /^\s*(?:--[^\n]*\n\s*)?(?:select|begin|start transaction|listen|set)\b/i;

/** Matches calls of functions that may write or notify, since a `select` can call them too. */
export async function callsOfWriters(query: Query): Promise<RegExp> {
  const { rows } = await query(
    `select proname as name from pg_proc
      where pronamespace = 'public'::regnamespace and provolatile = 'v' and prorettype <> 'trigger'::regtype`,
  );
  const names = [...rows.map(({ name }) => name), "pg_notify", "nextval", "setval"];
  return new RegExp(`\\b(?:${names.join("|")})\\s*\\(`, "i");
}

/**
 * Runs `work` as if its process were killed before the nth statement with a lasting effect: a commit, or a statement
 * outside a transaction. All later statements of the process fail until `work` has ended, except for rollbacks.
 */
export async function killedBefore(
  nth: number,
  writers: RegExp,
  work: () => Promise<unknown>,
): Promise<KillPoint> {
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
    const keepsNothing = KEEPS_NOTHING.test(text) && !writers.test(text);
    const isKept = isCommit || (!inTransaction.has(this) && !keepsNothing);
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

type Query = (text: string) => Promise<pg.QueryResult>;

/** A snapshot for writtenSince. */
export interface Moment {
  /** Later writes have this transaction id or a greater one. */
  transaction: string;
  tables: { name: string; path: string; rows: number }[];
  /** Digests of rows in which another request or a late event of the provider may update a time. */
  digests: Set<string>;
}

/** The digested columns of these tables, without that time. */
const DIGESTS: Record<string, string> = {
  api_keys: "md5((to_jsonb(t) - 'last_used_at')::text)",
  payouts: "md5((to_jsonb(t) - 'asked_at')::text)",
};

/** `except`: excluded tables with the reason. */
export async function momentOf(query: Query, except: Record<string, string>): Promise<Moment> {
  const next = await query("select pg_snapshot_xmax(pg_current_snapshot())::text as transaction");
  const digests = Object.entries(DIGESTS).map(
    ([name, digest]) => `select ${digest} as digest from ${name} t`,
  );
  const { rows: digested } = await query(digests.join(" union all "));
  const { rows: found } = await query(
    `select tablename as name, format('%I.%I', schemaname, tablename) as path from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  );
  const tables = found.filter(({ name }) => !(name in except));
  const counts = tables.map(({ path }) => `(select count(*)::int from ${path})`);
  const { rows } = await query(`select array[${counts.join(", ")}] as counts`);
  return {
    transaction: next.rows[0].transaction,
    tables: tables.map((table, at) => ({ ...table, rows: rows[0].counts[at] })),
    digests: new Set(digested.map(({ digest }) => digest)),
  };
}

/**
 * One line per inserted or updated row, and the growth of each table, since a moment. Masks ids, times, secrets and
 * other random texts. Nulls, numbers, states and words stay.
 */
export async function writtenSince(
  query: Query,
  before: Moment,
  except: Record<string, string>,
): Promise<string[]> {
  const texts = before.tables.map(({ name, path }) => {
    const isNew = `t.xmin::text::bigint >= ${before.transaction}`;
    return `select '${name}' as name, ${DIGESTS[name] ?? "null"} as digest, to_jsonb(t) as row from ${path} t where ${isNew}`;
  });
  const { rows: written } = await query(texts.join(" union all "));
  const after = await momentOf(query, except);
  const grown = after.tables.flatMap(({ name, rows }, at) =>
    rows === before.tables[at]!.rows ? [] : [`${name}: ${rows - before.tables[at]!.rows} rows more`],
  );
  const lines = written
    .filter(({ digest }) => !before.digests.has(digest))
    .map(({ name, row }) => `${name}: ${JSON.stringify(mask(row))}`);
  return [...grown, ...lines].sort();
}

/** Columns with counters, random values, durations, or a time as a number. */
const VARYING = new Set([
  ...["number", "receipt_number", "last", "lookup", "duration_ms", "completion_tokens"],
  "last_step",
]);

/** Masks a row and the JSON in it. */
function mask(value: unknown): unknown {
  if (typeof value === "string") return maskText(value);
  if (Array.isArray(value)) return value.map(mask);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      inner !== null && VARYING.has(name) ? "<varies>" : mask(inner),
    ]),
  );
}

const maskText = (text: string): string =>
  text
    .replace(/\\x[0-9a-f]{8,}/g, "<bytes>")
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>")
    .replace(/\b[a-z]+_[0-9a-hjkmnp-tv-z]{26}\b/g, "<id>")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)/g, "<time>")
    .replace(/[\w.+/=-]{20,}/g, "<random>");
