import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { from } from "pg-copy-streams";

type Value = string | number | boolean | Date | null | string[];

/** The text format of COPY: https://www.postgresql.org/docs/current/sql-copy.html */
export async function copyInto(client: pg.Client, table: string, columns: string, rows: Value[][]) {
  if (rows.length === 0) return;
  const lines = rows.map((row) => `${row.map(textOf).join("\t")}\n`);
  await pipeline([lines.join("")], client.query(from(`copy ${table} (${columns}) from stdin`)));
}

const ESCAPES: Record<string, string> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" };
const escaped = (text: string) => text.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character]!);

function textOf(value: Value): string {
  if (value === null) return "\\N";
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return escaped(`{${value.map((one) => JSON.stringify(one)).join(",")}}`);
  return typeof value === "string" ? escaped(value) : String(value);
}
