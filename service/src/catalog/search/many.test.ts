import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { askedDuring } from "../../../test/statements.ts";
import { toUuid } from "../../core/ids.ts";
import { firstOf } from "../../core/required.ts";
import { openDatabase, openPool } from "../../platform/db/database.ts";
import { ANONYMOUS_CALLER } from "./filters.ts";
import { haveMatches } from "./matches.ts";
import { listProducts } from "./product-list.ts";

/** Above all bounds: of exact totals, and of search results. */
const COPIES = 10_300;

let market: Market;
let reader: Client;

/** Copies one product in SQL, since the test is about reads. */
before(async () => {
  market = await openMarket();
  market.skipLedgerCheck();
  const author = await market.createUser();
  reader = await market.createUser();
  const id = toUuid(
    "prod",
    await createProduct(author, { title: "Zebra stripes", tags: ["striped"], price: 5 }),
  );
  await market.query(
    `create table copies as
     select n, md5(n::text)::uuid as id, (n % 5000)::bigint as purchases, 500 + n as price_minor,
            timestamptz '2026-01-01' + n * interval '1 minute' as at
       from generate_series(1, ${COPIES}) n`,
  );
  await market.query(
    `insert into products
     select copy.* from products p cross join copies c
      cross join jsonb_populate_record(p, jsonb_build_object('id', c.id, 'created_at', c.at, 'card',
              replace(p.card, '"price":5', '"price":' || (c.price_minor / 100.0)))) copy
      where p.id = $1`,
    [id],
  );
  await market.query("insert into product_stats (product_id, purchases) select id, purchases from copies");
  await market.query(
    `insert into listings
     select copy.* from listings l cross join copies c
      cross join jsonb_populate_record(l, jsonb_build_object('product_id', c.id, 'purchases', c.purchases,
              'price_minor', c.price_minor, 'created_at', c.at)) copy
      where l.product_id = $1`,
    [id],
  );
  await market.query(
    `insert into search_documents (product_id, published, purchases, type, section, category, lang, currency, price_minor,
                                   compatibility, tags, search)
     select c.id, true, c.purchases, d.type, d.section, d.category, d.lang, d.currency, c.price_minor,
            d.compatibility, d.tags, d.search
       from search_documents d, copies c where d.product_id = $1`,
    [id],
  );
});
after(() => market.close());

async function page(query: string) {
  const { status, body, text } = await reader.get(`/v1/products?${query}`);
  assert.equal(status, 200, text);
  return { ...body.meta, items: body.data };
}
const prices = (items: { price: number }[]) => items.map(({ price }) => price);

test("totals: exact for common filters at any size, bounded for others", async () => {
  for (const query of [
    "",
    "category=writing",
    "provider=openai&type=prompt",
    "minPrice=10&maxPrice=99.99&sort=price",
    "tag=Striped",
  ]) {
    const { total, totalIsEstimate } = await page(query);
    const expected = query.includes("minPrice") ? 9_000 : COPIES + 1;
    assert.deepEqual([total, totalIsEstimate], [expected, undefined], query);
  }
  const tagged = await page("tag=striped&provider=openai");
  assert.deepEqual([tagged.total, tagged.totalIsEstimate], [10_000, true]);
});

test("a page near the end: the same as by walking there", async () => {
  const all = (await page("sort=price&order=asc&limit=100&page=1")).total;
  const last = Math.ceil(all / 7);
  const ends = await Promise.all(
    [last - 1, last, last + 1].map((number) => page(`sort=price&order=asc&limit=7&page=${number}`)),
  );
  const cheapestFirst = Array.from({ length: all }, (_, at) => (500 + at) / 100);
  assert.deepEqual(
    ends.map(({ items }) => prices(items)),
    [last - 1, last, last + 1].map((number) => cheapestFirst.slice((number - 1) * 7, number * 7)),
  );
  const turned = await page(`sort=price&limit=7&page=${last}`);
  assert.deepEqual(prices(turned.items), cheapestFirst.toReversed().slice((last - 1) * 7));
});

test("a search: its thousand most bought matches, and a flag for more", async () => {
  const first = await page("search=zebra&limit=100");
  assert.deepEqual([first.total, first.totalIsEstimate], [1_000, true]);
  const bought = (items: { stats: { purchases: number } }[]) => items.map(({ stats }) => stats.purchases);
  assert.deepEqual(bought(first.items).slice(0, 4), [4_999, 4_999, 4_998, 4_998]);
  const seen = new Set<number>();
  for (let number = 1; number <= 10; number++) {
    const { items } = await page(`search=zebra&limit=100&page=${number}`);
    for (const price of prices(items)) seen.add(price);
    assert.equal(items.length, 100);
  }
  assert.equal(seen.size, 1_000, "no product stands on two pages");
  assert.deepEqual((await page("search=zebra&limit=100&page=11")).items, []);
});

test("a repeated search: PostgreSQL plans its statements for their first five uses only", async () => {
  const { ctx } = market.service;
  const pool = openPool({ target: market.target, maxConnections: 1 });
  const db = openDatabase(pool);
  try {
    await pool.query("begin");
    await pool.query("insert into search_words values ('okapi')");
    // By its statistics, PostgreSQL expects less of a word that no document has than of a hidden one. With a hundred times as many
    // products, that counts more than planning.
    await pool.query(`
      update search_documents set search = 'quagga' where product_id in (select id from copies order by n limit 8)`);
    await pool.query("analyze search_documents");
    await pool.query("update pg_class set reltuples = reltuples * 100 where relname = 'search_documents'");
    const query = { minPrice: 0, search: "okapi", sort: "relevance", order: "desc", limit: 20 } as const;
    for (let page = 1; page <= 15; page++)
      await listProducts({ ...ctx, pool, db }, ANONYMOUS_CALLER, { ...query, page });
    const { rows } = await pool.query(
      `select name like 'list_%' as "isPage", custom_plans::int as planned,
              statement !~ '(@@|limit|offset|unnest\\() *\\$' as "areValuesHidden" from pg_prepared_statements
        where name like 'list_%' or name = 'parse_search' order by 1`,
    );
    assert.deepEqual(rows, [
      { isPage: false, planned: 5, areValuesHidden: true },
      { isPage: true, planned: 5, areValuesHidden: true },
    ]);
  } finally {
    await pool.query("rollback");
    await pool.end();
  }
});

test("a search that ends within a page, in any order: no duplicates", async () => {
  for (const sort of ["relevance", "price"]) {
    const seen: number[] = [];
    for (let number = 13; number <= 15; number++)
      seen.push(...prices((await page(`search=zebra&sort=${sort}&limit=70&page=${number}`)).items));
    assert.equal(seen.length, 1_000 - 12 * 70, sort);
    assert.equal(new Set(seen).size, seen.length, sort);
    const whole = await page(`search=zebra&sort=${sort}&limit=100&page=10`);
    assert.deepEqual(seen.slice(-100), prices(whole.items), sort);
  }
});

test("a search with another order: the order of all its matches", async () => {
  const cheapest = await page("search=zebra&sort=price&order=asc&limit=3");
  assert.deepEqual(prices(cheapest.items), [5, 5.01, 5.02]);
  assert.deepEqual([cheapest.total, cheapest.totalIsEstimate], [1_000, true]);
});

test("facets of too many matches: marked as bounded", async () => {
  const facets = async (query: string) => (await reader.get(`/v1/products/facets?${query}`)).body.data;
  assert.deepEqual((await facets("")).estimated, []);
  const found = await facets("search=zebra");
  assert.deepEqual(found.estimated, [
    "type",
    "category",
    "provider",
    "tag",
    "price",
    "rating",
    "testedOn",
    "passRate",
  ]);
  assert.ok(found.type[0].count >= 1_000);
});

test("facets of a search within prices that few of its matches have: exact, and the facet of prices is not", async () => {
  const { data } = (await reader.get("/v1/products/facets?search=zebra&minPrice=103.01")).body;
  assert.deepEqual(data.type, [{ value: "PROMPT", count: 500 }]);
  assert.deepEqual(data.tag, [{ value: "striped", count: 500 }]);
  assert.deepEqual(data.estimated, ["price"]);
  const counted = data.price.reduce((sum: number, { count }: { count: number }) => sum + count, 0);
  assert.equal(counted, 1_001);
});

test("a search without results, its words seem frequent: the check of each word does not scan the table", async () => {
  const { ctx } = market.service;
  await market.query("analyze search_documents");
  const lexemes = Array.from({ length: 10 }, (_, at) => `unknown${at}`);
  const search = [{ word: "unknown", lexemes, mayMatch: true }];
  const asked = await askedDuring(async () => {
    assert.deepEqual(await haveMatches(ctx, ANONYMOUS_CALLER, { minPrice: 0 }, [search]), [false]);
  });
  const { text, values } = firstOf(asked);
  const { rows } = await ctx.pool.query<{ "QUERY PLAN": string }>(`explain ${text}`, values);
  assert.deepEqual(
    rows.map((row) => row["QUERY PLAN"]).filter((line) => line.includes("Seq Scan")),
    [],
  );
});
