import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Facets, ProductCard } from "@stoa/contract";
import fc from "fast-check";
import { buyProduct, createDraft } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { compactFacetCounts, updateWordFrequencies } from "./search-maintenance.ts";

const PRODUCTS = isFullSize ? 60 : 24;
const PRICE_EDGES = [0, 5, 10, 20, 50, 100];
const RATING_EDGES = [4.5, 4, 3, 2, 1];

let market: Market;
let author: Client;
let reader: Client;
const ids: string[] = [];

before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
  reader = await market.createUser({ name: "Reader" });
  await market.query("insert into categories values ('poems', 'Poems', 'writing')");
  for (const input of fc.sample(anyInput, { numRuns: PRODUCTS, seed: 4 })) ids.push(await offer(input));
});
after(() => market.close());

const anyInput = fc.record({
  title: fc.constantFrom("Haiku", "Sonnet", "Essay about haiku"),
  category: fc.constantFrom("writing", "poems", "programming"),
  price: fc.constantFrom(0.5, 4.99, 5, 9.99, 10, 75, 100, 900),
  currency: fc.constantFrom("USD", "USD", "EUR"),
  compatibility: fc.constantFrom<string[]>(
    ["openai"],
    ["openai", "anthropic"],
    ["anthropic", "openai"],
    ["ollama"],
  ),
  tags: fc.constantFrom<string[]>([], ["poetry"], ["poetry", "short"]),
  ratings: fc.constantFrom<number[]>([], [], [5], [4, 5], [1], [3, 4]),
  isForSale: fc.constantFrom(true, true, true, false),
});

async function offer({
  ratings,
  isForSale,
  ...fields
}: typeof anyInput extends fc.Arbitrary<infer W> ? W : never) {
  const id = await createDraft(author, fields);
  if (!isForSale) return id;
  await post(author, `/v1/products/${id}/publish`);
  for (const rating of ratings) {
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await post(buyer, `/v1/products/${id}/reviews`, { rating });
  }
  return id;
}

async function post(who: Client, path: string, body?: object): Promise<void> {
  const reply = await who.post(path, body);
  assert.ok(reply.status < 300, reply.text);
}

async function facetsOf(query: Record<string, string>): Promise<Facets> {
  market.clock.forward(10_000);
  const reply = await reader.get(`/v1/products/facets?${new URLSearchParams(query)}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

async function listed(query: Record<string, string>): Promise<ProductCard[]> {
  market.clock.forward(10_000);
  const reply = await reader.get(`/v1/products?limit=100&${new URLSearchParams(query)}`);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.meta.total, reply.body.data.length);
  return reply.body.data;
}

function countBy(products: ProductCard[], valuesOf: (product: ProductCard) => (string | null)[]) {
  const counts = new Map<string, number>();
  for (const value of products.flatMap(valuesOf)) {
    if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
}

/** Recounts the list without the facet's own filter. */
async function recount(query: Record<string, string>): Promise<Omit<Facets, "estimated">> {
  const without = (...fields: string[]) =>
    listed(Object.fromEntries(Object.entries(query).filter(([field]) => !fields.includes(field))));
  const currency = query["currency"] ?? "USD";
  const priced = (await without("minPrice", "maxPrice")).filter((one) => one.currency === currency);
  const rated = await without("minRating");
  return {
    type: countBy(await without("type"), ({ type }) => [type]),
    category: countBy(await without("category"), ({ category }) => [category]),
    provider: countBy(await without("provider"), ({ compatibility }) => compatibility),
    tag: countBy(await without("tag"), ({ tags }) => tags),
    price: PRICE_EDGES.map((from, at) => {
      const next = PRICE_EDGES[at + 1];
      const to = next === undefined ? null : Math.round(next * 100 - 1) / 100;
      const count = priced.filter(({ price }) => price >= from && (to === null || price <= to)).length;
      return { from, to, count };
    }),
    rating: RATING_EDGES.map((from) => ({
      from,
      count: rated.filter(({ rating }) => rating.count > 0 && rating.average >= from).length,
    })),
    // scores.test.ts has products with score cards.
    testedOn: [],
    passRate: [0.85, 0.7, 0.5].map((from) => ({ from, count: 0 })),
    currency,
  };
}

const anyQuery = fc
  .record(
    {
      type: fc.constantFrom("prompt", "workflow"),
      category: fc.constantFrom("writing", "poems", "programming", "nowhere"),
      provider: fc.constantFrom("openai", "ollama", "xai"),
      tag: fc.constantFrom("poetry", "short"),
      minPrice: fc.constantFrom("5", "10", "4.5"),
      maxPrice: fc.constantFrom("99.99", "49.99", "60"),
      minRating: fc.constantFrom("4", "4.5", "4.2"),
      currency: fc.constantFrom("USD", "EUR"),
      search: fc.constantFrom("haiku", "essay", "hai", "motorcycle"),
    },
    { requiredKeys: [] },
  )
  .map((query) => query as Record<string, string>);

test("facets: count the list without their own filter", { timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(anyQuery, async (query) => {
      const { estimated, ...facets } = await facetsOf(query);
      assert.deepEqual(facets, await recount(query));
      assert.deepEqual(estimated, []);
    }),
    { numRuns: runs(20), seed: 11, examples: [[{ maxPrice: "0" }]] },
  );
});

test("facets of a misspelled search: those of the corrected list", async () => {
  for (const query of [{ search: "sonett" }, { search: "esay haiku", provider: "openai" }]) {
    const { estimated, ...facets } = await facetsOf(query);
    assert.ok(facets.type.length > 0, query.search);
    assert.deepEqual(facets, await recount(query));
  }
});

test("facets of a word without matches in a filter: not those of another word", async () => {
  const id = await createDraft(author, { title: "Bonnet", description: "x", tags: [] });
  await post(author, `/v1/products/${id}/publish`);
  const query = { search: "sonnet", category: "nowhere" };
  const { estimated, ...facets } = await facetsOf(query);
  assert.ok(facets.category.length > 0);
  assert.deepEqual(facets, await recount(query));
});

test("facet counts: follow each change, before and after compaction", { timeout: 300_000 }, async () => {
  const { ctx } = market.service;
  const anyChange = fc.record({
    id: fc.constantFrom(...ids),
    change: fc.oneof(
      fc.constantFrom("publish", "unpublish", "compact"),
      fc.record({ price: fc.constantFrom(1, 7, 300), tags: fc.constantFrom<string[]>([], ["new"]) }),
      fc.record({ category: fc.constantFrom("poems", "programming") }),
    ),
  });
  for (const { id, change } of fc.sample(anyChange, { numRuns: isFullSize ? 60 : 24, seed: 5 })) {
    if (change === "compact") await compactFacetCounts(ctx, 1);
    else if (typeof change === "string") await author.post(`/v1/products/${id}/${change}`);
    else await author.patch(`/v1/products/${id}`, change);
  }
  const before = await facetsOf({});
  assert.deepEqual({ ...before, estimated: undefined }, { ...(await recount({})), estimated: undefined });
  await Promise.all([compactFacetCounts(ctx, 1), compactFacetCounts(ctx, 1)]);
  assert.deepEqual(await facetsOf({}), before);
  const { rows } = await market.query(
    "select count(*) from facet_counts where not compacted or products = 0",
  );
  assert.deepEqual(rows, [{ count: 0 }]);
});

test("search documents: what facets count, as in the listings, after each change", async () => {
  const { rows } = await market.query(
    `select d.tags as "documentTags", l.tags, d.rating_band as "documentBand", stoa_rating_band(l.rating_mean) as band
       from listings l left join search_documents d on d.product_id = l.product_id`,
  );
  assert.ok(new Set(rows.map(({ band }) => band)).size > 3);
  for (const { documentTags, tags, documentBand, band } of rows)
    assert.deepEqual([documentTags, documentBand], [tags, band]);
});

test("categories and tags: the counts of published products", async () => {
  market.clock.forward(10_000);
  const { body } = await reader.get("/v1/categories?limit=100");
  const writing = body.data.find(({ slug }: { slug: string }) => slug === "writing");
  assert.equal(writing.products, (await listed({ category: "writing" })).length);
  const tags = (await reader.get("/v1/tags")).body;
  assert.deepEqual(
    tags.data.map(({ tag, products }: { tag: string; products: number }) => ({
      value: tag,
      count: products,
    })),
    countBy(await listed({}), ({ tags }) => tags),
  );
  assert.equal(tags.meta.total, tags.data.length);
  const begins = (await reader.get("/v1/tags?search=PO")).body.data;
  assert.deepEqual(
    begins.map(({ tag }: { tag: string }) => tag),
    ["poetry"],
  );
  assert.deepEqual((await reader.get("/v1/tags?page=9")).body.data, []);
});

test("facet of tags, more than 20: the most frequent ones, equal counts by name", async () => {
  const tags = Array.from({ length: 20 }, (_, at) => `tag ${String(at).padStart(2, "0")}`);
  const id = await createDraft(author, { title: "Haiku with tags", tags: tags.toReversed() });
  await post(author, `/v1/products/${id}/publish`);
  const queries: Record<string, string>[] = [{}, { minRating: "0.1" }, { lang: "en" }, { search: "haiku" }];
  for (const query of queries) {
    const counted = countBy(await listed(query), ({ tags }) => tags);
    assert.deepEqual((await facetsOf(query)).tag, counted.slice(0, 20));
  }
  await post(author, `/v1/products/${id}/unpublish`);
});

test("facets: refuse what the list refuses", async () => {
  assertError(await reader.get("/v1/products/facets?page=1"), 400, "INVALID_REQUEST", "page");
  assertError(await reader.get("/v1/products/facets?sort=price"), 400, "INVALID_REQUEST", "sort");
  assertError(
    await reader.get("/v1/products/facets?minPrice=9&maxPrice=8"),
    400,
    "INVALID_REQUEST",
    "minPrice",
  );
  assertError(await reader.get("/v1/products/facets?currency=XXX"), 400, "INVALID_REQUEST", "currency");
  assertError(await reader.get("/v1/products/facets?status=draft"), 400, "INVALID_REQUEST", "status");
});

test("the frequency of a word: counts published products", async () => {
  await updateWordFrequencies(market.service.ctx);
  const { rows } = await market.query("select listings from search_words where word = 'haiku'");
  const { total } = (await reader.get("/v1/products?search=haiku")).body.meta;
  assert.deepEqual(rows, [{ listings: total }]);
});
