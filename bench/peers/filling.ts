import { createHash } from "node:crypto";
import type { Client, PeerPostgres } from "./peer-postgres.ts";
import { DIFFERENT, productAt } from "./products.ts";

const SAMPLE = 100;

/** How to copy rows of a peer's catalogue. `k` is the number of the copy, `t` the row. */
export interface Copying {
  /** Every table with rows of a product. */
  tables: string[];
  /** Columns with ids of rows in these tables. */
  ids: RegExp;
  idOf(column: string): string;
  /** Columns that must stay unique in another way. */
  unique: RegExp;
  /** Other changed columns; undefined: copied unchanged. */
  changed(table: string, column: string): string | undefined;
}

export interface Filler {
  name: string;
  version: string;
  copying: Copying;
  /** The peer's own script that loads the products. */
  loader: string;
  /** Loads this many products into an empty database with the peer's own tools. */
  load(database: string, count: number): Promise<unknown>;
}

/** Returns the peer's database with this many products, and creates it if missing. */
export async function fillDatabase(postgres: PeerPostgres, filler: Filler, size: number): Promise<string> {
  const { copying, load } = filler;
  const database = databaseOf(filler, size);
  if (await postgres.has(database)) return database;
  if (size <= DIFFERENT) await postgres.make(database, null, (draft) => load(draft, size));
  else {
    const original = await fillDatabase(postgres, filler, DIFFERENT);
    const copy = (draft: string) =>
      postgres.in(draft, (client) => multiply(client, copying, size / DIFFERENT));
    await postgres.make(database, original, copy);
  }
  return database;
}

/** Contains a digest of products, version and loader, so that a change gets another database. */
export function databaseOf({ name, version, loader }: Filler, size: number): string {
  const sample = Array.from({ length: SAMPLE }, (_, at) => productAt((at * DIFFERENT) / SAMPLE));
  const digest = createHash("sha256")
    .update(JSON.stringify([version, loader, sample]))
    .digest("hex");
  return `${name}_${size}_${digest.slice(0, 8)}`;
}

/** Copies every product with all its rows, since loading them would take the peers hours. */
async function multiply(client: Client, copying: Copying, times: number): Promise<void> {
  // Skips the check of foreign keys: the copies have both ends.
  await client.query("set session_replication_role = replica");
  for (const table of copying.tables) await copyRows(client, copying, table, times);
}

async function copyRows(client: Client, copying: Copying, table: string, times: number): Promise<void> {
  const { rows } = await client.query<{ name: string; counted: string | null }>(
    `select column_name as name, pg_get_serial_sequence(quote_ident(table_name), column_name) as counted
       from information_schema.columns
      where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER' order by ordinal_position`,
    [table],
  );
  if (rows.length === 0) throw new Error(`The database has no table ${table}: has the peer another version?`);
  const expressionOf = (column: string) => {
    if (copying.ids.test(column)) return copying.idOf(column);
    if (copying.unique.test(column)) return `t."${column}" || '-' || k`;
    return copying.changed(table, column) ?? `t."${column}"`;
  };
  const columns = rows.map(({ name }) => `"${name}"`);
  const values = rows.map(({ name }) => expressionOf(name));
  await client.query(
    `insert into "${table}" (${columns}) select ${values} from "${table}" t, generate_series(1, ${times - 1}) k`,
  );
  for (const { name, counted } of rows) {
    if (counted) await client.query(`select setval($1, (select max("${name}") from "${table}"))`, [counted]);
  }
}

/** The SKU of a product: the loaders number them, and each copy adds its number. */
export function skuAt(at: number): string {
  const copy = Math.floor(at / DIFFERENT);
  return `SKU${at % DIFFERENT}${copy > 0 ? `-${copy}` : ""}`;
}
