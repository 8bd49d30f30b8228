import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { type Kysely, sql } from "kysely";
import { type Market, openMarket } from "../../../test/market.ts";
import { openPool } from "./database.ts";
import { prepared } from "./prepared.ts";
import { RepeatedStatements } from "./repeated-statements.ts";
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

test("JIT: off, since compiling a plan takes longer than our statements", async () => {
  const { rows } = await market.service.ctx.pool.query<{ jit: string }>("show jit");
  assert.deepEqual(rows, [{ jit: "off" }]);
});

test("another text under the same name: refused", async () => {
  await market.service.ctx.db.connection().execute(async (db) => {
    await double(db, 1);
    await assert.rejects(sql`${prepared("twice")} select 3 as twice`.execute(db), /must be unique/);
  });
});

const REPEATS = 6;
const isNamed = (text: string) => {
  const statements = new RepeatedStatements();
  return Array.from({ length: REPEATS }, () => statements.nameOf(text)).at(-1) !== null;
};

test("a statement of Kysely: prepared when it is repeated", async () => {
  const text = 'select "title" from "products" where "id" = $1';
  await market.service.ctx.db.connection().execute(async (db) => {
    const find = () => db.selectFrom("products").select("title").where("id", "=", randomUUID()).execute();
    const countPrepared = async () =>
      (await sql`select from pg_prepared_statements where statement = ${sql.lit(text)}`.execute(db)).rows
        .length;
    await find();
    assert.equal(await countPrepared(), 0);
    for (let sent = 1; sent < REPEATS; sent++) await find();
    assert.equal(await countPrepared(), 1);
  });
});

test("repeated statements: lists, partial conflicts and all columns are not prepared", () => {
  const notNamed = [
    "select id from orders where buyer_id = $1 order by id desc limit $2",
    "select id from orders where created_at < $1",
    "select id from orders where id = any($1)",
    "insert into orders (id) values ($1) on conflict (id) where status in ($2) do nothing",
    "select * from orders where id = $1",
    'select "r".*, u.name from reviews as r where r.id = $1',
    "update orders set status = $1 where id = $2 returning *",
    "set local lock_timeout = $1",
  ];
  assert.deepEqual(notNamed.filter(isNamed), []);
  const named = [
    "select count(*) from orders where buyer_id = $1 and status <> $2",
    'insert into "orders" ("id") values ($1) on conflict ("id") do nothing',
    "insert into orders (id) values ($1) on conflict (id) where status in ('pending') do nothing",
    "update orders set status = $1 where id = $2 returning id",
  ];
  assert.deepEqual(named.filter(isNamed), named);
});

test("a prepared statement whose columns a migration changes: refused once, then another connection prepares it anew", async (t) => {
  const pool = openPool({ target: market.target, maxConnections: 1 });
  t.after(() => pool.end());
  await pool.query("create table narrow (id integer); insert into narrow values (1)");
  const find = () =>
    pool.query({ name: "find_narrow", text: "select * from narrow where id = $1", values: [1] });
  await find();
  await pool.query("alter table narrow add column note text");
  await assert.rejects(find(), /must not change result type/);
  assert.deepEqual((await find()).rows, [{ id: 1, note: null }]);
});
