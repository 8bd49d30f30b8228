import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { type Market, openMarket } from "../../../test/market.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

async function listNames(): Promise<string[]> {
  const { rows } = await market.query(
    `select table_name as name from information_schema.tables where table_schema = 'public'
     union select column_name from information_schema.columns where table_schema = 'public' order by 1`,
  );
  return rows.map(({ name }) => name);
}

test("column names: every table and column, camelCase in TypeScript, is itself again in SQL", async () => {
  const { db } = market.service.ctx;
  const names = await listNames();
  assert.ok(names.includes("last4") && names.includes("commission_basis_points"));
  const selected = names.map((name) => sql`1 as ${sql.raw(`"${name}"`)}`);
  const { rows } = await sql<object>`select ${sql.join(selected)}`.execute(db);
  const keys = Object.keys(rows[0]!);
  assert.deepEqual(
    keys.filter((key) => key.includes("_")),
    [],
  );
  const { sql: text } = sql`${sql.join(keys.map((key) => sql.ref(key)))}`.compile(db);
  assert.equal(text, names.map((name) => `"${name}"`).join(", "));
});

test("column names: keys inside a JSON column stay as they are", async () => {
  const { rows } = await sql`select '{"a_b": {"c_d": 1}, "list": [{"e_f": 2}]}'::jsonb as some_json`.execute(
    market.service.ctx.db,
  );
  assert.deepEqual(rows, [{ someJson: { a_b: { c_d: 1 }, list: [{ e_f: 2 }] } }]);
});
