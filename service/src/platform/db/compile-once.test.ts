import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Market, openMarket } from "../../../test/market.ts";
import { askedDuring } from "../../../test/statements.ts";
import { compileOnce } from "./compile-once.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

interface Row {
  slug: string;
  name: string;
  parent?: string | null | undefined;
}

test("a query that is compiled once: built once for each shape, with the values of each call", async () => {
  const { db } = market.service.ctx;
  let builds = 0;
  const insertRows = compileOnce((queries, { rows, name }: { rows: Row[]; name: string }) => {
    builds++;
    return queries
      .with("written", (cte) => cte.insertInto("categories").values({ slug: "compiled", name }))
      .insertInto("categories")
      .values(rows)
      .returning(["slug", "name", "parent"]);
  });
  const written: Row[][] = [];
  const insert = async (rows: Row[]) => {
    await market.query("delete from categories where slug like 'compiled%'");
    written.push((await insertRows(db, { rows, name: "First" })).rows as Row[]);
  };
  const [one, other] = [
    { slug: "compiled-a", name: "It's a name", parent: null },
    { slug: "compiled-b", name: "$1 :name", parent: "compiled" },
  ];
  const asked = await askedDuring(async () => {
    await insert([one]);
    await insert([other]);
    await insert([one, other]);
    await insert([{ ...one, parent: undefined }]);
    await insert([other, one]);
  });
  assert.deepEqual(written, [[one], [other], [one, other], [one], [other, one]]);
  assert.equal(builds, 3, "one row, two rows, and a row without its last column");
  const texts = asked.map(({ text }) => text).filter((text) => text.startsWith("with"));
  assert.equal(new Set(texts).size, 3);
  await market.query("delete from categories where slug like 'compiled%'");
});

test("a query that is compiled once: constants of the query and camelCase names", async () => {
  const { db } = market.service.ctx;
  const { userId } = await market.createUser({ name: "Compiled" });
  const find = compileOnce((queries, { id }: { id: string }) =>
    queries
      .selectFrom("users")
      .select(["id", "refundDays"])
      .where("id", "=", id)
      .where("name", "=", "Compiled"),
  );
  const [user] = (await find(db, { id: userId })).rows;
  assert.deepEqual(Object.keys(user ?? {}), ["id", "refundDays"]);
  assert.deepEqual((await find(db, { id: (await market.createUser({ name: "Other" })).userId })).rows, []);
});
