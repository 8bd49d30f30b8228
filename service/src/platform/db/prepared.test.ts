import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Kysely, sql } from "kysely";
import { type Market, openMarket } from "../../../test/market.ts";
import { prepared } from "./prepared.ts";
import type { DB } from "./tables.gen.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const double = (db: Kysely<DB>, value: number) =>
  sql<{ twice: number }>`${prepared("twice")} select ${value}::int * 2 as twice`.execute(db);

test("a prepared statement: planned once per connection, for all values", async () => {
  await market.service.ctx.db.connection().execute(async (db) => {
    for (const value of [1, 2, 3]) assert.deepEqual((await double(db, value)).rows, [{ twice: value * 2 }]);
    const { rows } = await sql`select name from pg_prepared_statements where name = 'twice'`.execute(db);
    assert.equal(rows.length, 1);
  });
});

test("another text under the same name: refused", async () => {
  await market.service.ctx.db.connection().execute(async (db) => {
    await double(db, 1);
    await assert.rejects(sql`${prepared("twice")} select 3 as twice`.execute(db), /must be unique/);
  });
});
