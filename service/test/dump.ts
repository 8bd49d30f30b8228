import type { Market } from "./market.ts";

/** Every row as text after its table's name, like a stolen dump, without the tables in `except`. */
export async function dumpDatabase(market: Market, except: string[] = []): Promise<string> {
  const { rows: tables } = await market.query(
    `select tablename, format('%I.%I', schemaname, tablename) as path from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema') and tablename <> all ($1)`,
    [except],
  );
  const texts = tables.map(
    ({ tablename, path }) => `select '${tablename} ' || t::text as row from ${path} t`,
  );
  const { rows } = await market.query(texts.join(" union all "));
  return rows.map(({ row }) => row).join("\n");
}
