import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { type Market, openMarket } from "../../../test/market.ts";
import { readStatement } from "./statement.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const TEXT = `-- A comment with a :value that nobody binds.
select :value::int * 2 as twice, :value::int as same, :extra as extra
`;

async function hasStatementFile(t: { after(fn: () => unknown): void }): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-statement-"));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "double-value.sql");
  await writeFile(path, TEXT);
  return pathToFileURL(path);
}

const read = (file: URL, variant?: string) =>
  readStatement<{ value: number; extra: unknown }, object>(file, variant);

test("a statement of a file: binds each value wherever it is named, and is prepared once under the file's name", async (t) => {
  const file = await hasStatementFile(t);
  const double = read(file);
  await market.service.ctx.db.connection().execute(async (db) => {
    for (const value of [1, 2]) {
      const { rows } = await double({ value, extra: sql`'x'` }).execute(db);
      assert.deepEqual(rows, [{ twice: 2 * value, same: value, extra: "x" }]);
    }
    await read(file, "with_y")({ value: 1, extra: sql`'y'` }).execute(db);
    const { rows } = await sql`
      select name from pg_prepared_statements where name like 'double%' order by name`.execute(db);
    assert.deepEqual(rows, [{ name: "double_value" }, { name: "double_value_with_y" }]);
  });
});

test("a statement of a file: another fragment under the same name is refused", async (t) => {
  const file = await hasStatementFile(t);
  const double = read(file);
  await market.service.ctx.db.connection().execute(async (db) => {
    await double({ value: 1, extra: sql`'x'` }).execute(db);
    await assert.rejects(double({ value: 1, extra: sql`'y'` }).execute(db), /must be unique/);
  });
});
