import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { api, Input, ProductStatus } from "@stoa/contract";
import fc from "fast-check";
import { createDraft } from "../../../test/factories.ts";
import { isFullSize, runs, sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { normalizeText } from "./tokenizer.ts";

/** A product in the model of the list. */
interface Item {
  id: string;
  author: Client;
  title: string;
  type: string;
  status: ProductStatus;
  category: string;
  priceMinor: number;
  currency: string;
  compatibility: string[];
  tags: string[];
  createdAt: number;
  updatedAt: number;
  publishedAt: number | null;
  views: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
  trending: number;
}

type Sort = Input<typeof api.products.list>["query"]["sort"];
interface Query {
  type?: string;
  category?: string;
  provider?: string;
  minMinor?: number;
  maxMinor?: number;
  currency?: string;
  tag?: string;
  minRating?: number;
  author?: "me" | "own id" | "other id" | "nobody";
  status?: ProductStatus;
  sort?: Sort;
  order?: "asc" | "desc";
}

const PRODUCTS = isFullSize ? 90 : 36;
const CATEGORIES = ["writing", "poems", "programming"];
const CURRENCIES = ["USD", "USD", "EUR", "JPY", "KWD"];

let market: Market;
let ann: Client;
let bob: Client;
let shelf: Item[];

before(async () => {
  market = await openMarket();
  market.skipLedgerCheck();
  ann = await market.createUser({ name: "Ann" });
  bob = await market.createUser({ name: "Bob" });
  await market.query("insert into categories values ('poems', 'Poems', 'writing')");
  // A fixed seed makes failures reproducible.
  const inputs = fc.sample(anyInput, { numRuns: PRODUCTS, seed: 2026 });
  shelf = [];
  for (const fields of inputs) shelf.push(await stock(fields));
});
after(() => market.close());

/** Few values of each kind, so that ties are frequent. */
const anyInput = fc.record({
  title: fc.constantFrom("Alpha", "alpha", "Beta", "Éclair", "Ωmega", "10 haiku", "2 haiku"),
  isWorkflow: fc.constantFrom(false, false, false, true),
  moves: fc.constantFrom([], ["publish"], ["publish"], ["publish"], ["publish", "unpublish"], ["delete"]),
  category: fc.constantFrom(...CATEGORIES),
  priceMinor: fc.constantFrom(1, 999, 1_000, 1_001, 99_999_999),
  currency: fc.constantFrom(...CURRENCIES),
  compatibility: fc.constantFrom<string[]>(["openai"], ["anthropic", "openai"], ["ollama"]),
  tags: fc.constantFrom<string[]>([], ["poetry"], ["poetry", "short"]),
  byAnn: fc.boolean(),
  tick: fc.constantFrom(0, 0, 1_000),
  views: fc.constantFrom(0, 1, 7),
  purchases: fc.constantFrom(0, 1, 7),
  ratings: fc.constantFrom([0, 0], [1, 5], [3, 14], [10, 35], [2, 2]),
  trending: fc.constantFrom(0, 2944.5, 2950.25),
});
type ItemInput = typeof anyInput extends fc.Arbitrary<infer W> ? W : never;

const pause = {
  format: "workflow/1",
  input: { type: "object" },
  steps: [{ id: "pause", type: "delay", seconds: 1 }],
  result: "null",
};

async function stock(fields: ItemInput): Promise<Item> {
  const { title, category, priceMinor, currency, compatibility, tags, views, purchases, trending, moves } =
    fields;
  const author = fields.byAnn ? ann : bob;
  market.clock.forward(fields.tick);
  const createdAt = market.clock.now.getTime();
  const type = fields.isWorkflow ? "WORKFLOW" : "PROMPT";
  const price = toDecimal(priceMinor, currency);
  const content = fields.isWorkflow ? JSON.stringify(pause) : "{{x}}";
  const id = await createDraft(author, {
    title,
    type,
    category,
    price,
    currency,
    compatibility,
    tags,
    content,
  });
  for (const move of moves) {
    market.clock.forward(fields.tick);
    const path = `/v1/products/${id}`;
    const reply = move === "delete" ? await author.delete(path) : await author.post(`${path}/${move}`);
    assert.equal(reply.status, 200, reply.text);
  }
  const [ratingCount, ratingSum] = fields.ratings as [number, number];
  await market.query(
    `with counted as (
       update product_stats set views = $2, purchases = $3, rating_count = $4, rating_sum = $5, trending = $6
        where product_id = $1 returning *)
     update listings l set views = c.views, purchases = c.purchases, rating_mean = c.rating_mean,
                           rating_score = c.rating_score, trending = c.trending
       from counted c where l.product_id = c.product_id`,
    [toUuid("prod", id), views, purchases, ratingCount, ratingSum, trending],
  );
  const updatedAt = market.clock.now.getTime();
  return {
    ...{
      id,
      author,
      title,
      type,
      category,
      priceMinor,
      currency,
      compatibility,
      tags,
      views,
      purchases,
      trending,
    },
    status:
      ({ publish: "published", unpublish: "unpublished", delete: "deleted" } as const)[moves.at(-1)!] ??
      "draft",
    createdAt,
    updatedAt,
    publishedAt: moves[0] === "publish" ? createdAt + fields.tick : null,
    ratingCount,
    ratingSum,
  };
}

/** The list's filters in memory. */
function isListed(item: Item, query: Query, caller: Client): boolean {
  const authors = { me: caller, "own id": caller, "other id": caller === ann ? bob : ann, nobody: null };
  const author = query.author && authors[query.author];
  const isOwnShelf = author === caller;
  const byPrice = Boolean(query.minMinor) || query.maxMinor !== undefined || query.sort === "price";
  const currency = query.currency ?? (byPrice ? "USD" : item.currency);
  return (
    (isOwnShelf ? item.status === (query.status ?? item.status) : item.status === "published") &&
    (isOwnShelf && !query.status ? item.status !== "deleted" : true) &&
    (author === undefined || item.author === author) &&
    item.type === (query.type?.toUpperCase() ?? item.type) &&
    (!query.category ||
      item.category === query.category ||
      (query.category === "writing" && item.category === "poems")) &&
    (!query.provider || item.compatibility.includes(query.provider.toLowerCase())) &&
    (!query.tag || item.tags.includes(query.tag.toLowerCase())) &&
    item.currency === currency &&
    item.priceMinor >= (query.minMinor ?? 0) &&
    item.priceMinor <= (query.maxMinor ?? Number.POSITIVE_INFINITY) &&
    item.ratingSum >= item.ratingCount * (query.minRating ?? 0) &&
    (!query.minRating || item.ratingCount > 0)
  );
}

const sortKeys: Record<Sort, (item: Item) => number | string | null> = {
  relevance: (item) => item.purchases,
  popularity: (item) => item.purchases,
  views: (item) => item.views,
  trending: (item) => item.trending,
  rating: (item) => (item.ratingSum + 35) / (item.ratingCount + 10),
  price: (item) => item.priceMinor,
  title: (item) => Buffer.from(normalizeText(item.title)).toString("hex"),
  createdAt: (item) => item.createdAt,
  updatedAt: (item) => item.updatedAt,
  publishedAt: (item) => item.publishedAt,
  passRate: () => null,
};

const compare = (a: number | string, b: number | string) => (a < b ? -1 : a > b ? 1 : 0);

/** The list's orders in memory: a missing value is the lowest, ties go by id in the same direction. */
function inOrder({ sort = "relevance", order = "desc" }: Query) {
  const way = order === "desc" || sort === "relevance" ? -1 : 1;
  const keyOf = (item: Item) => sortKeys[sort](item) ?? Number.NEGATIVE_INFINITY;
  return (a: Item, b: Item): number =>
    way * (compare(keyOf(a), keyOf(b)) || compare(toUuid("prod", a.id)!, toUuid("prod", b.id)!));
}

function toSearch({ minMinor, maxMinor, author, ...query }: Query, caller: Client): string {
  const currency = query.currency ?? "USD";
  const ids = {
    me: "me",
    "own id": toUserId(caller.userId),
    "other id": toUserId((caller === ann ? bob : ann).userId),
    nobody: "nonsense",
  };
  const texts = {
    ...query,
    minPrice: minMinor === undefined ? undefined : toDecimal(minMinor, currency),
    maxPrice: maxMinor === undefined ? undefined : toDecimal(maxMinor, currency),
    author: author && ids[author],
  };
  const given = Object.entries(texts).filter(([, value]) => value !== undefined);
  return new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
}

/** Reads every page and checks that each has the same total. */
async function walk(
  caller: Client,
  search: string,
  limit: number,
): Promise<{ ids: string[]; total: number }> {
  const ids: string[] = [];
  for (let page = 1; ; page++) {
    const { status, body, text } = await caller.get(`/v1/products?${search}&limit=${limit}&page=${page}`);
    assert.equal(status, 200, text);
    ids.push(...body.data.map(({ id }: { id: string }) => id));
    assert.deepEqual([body.meta.page, body.meta.limit], [page, limit]);
    if (body.data.length < limit) return { ids, total: body.meta.total };
  }
}

const optional = <T>(...values: T[]) => fc.constantFrom(undefined, undefined, undefined, ...values);
const anyQuery = fc
  .record({
    type: optional("prompt", "Prompt", "WORKFLOW", "agent"),
    category: optional("writing", "poems", "programming", "nowhere"),
    provider: optional("openai", "OpenAI", "anthropic", "ollama", "skynet"),
    minMinor: optional(0, 1, 1_000),
    maxMinor: optional(1_000, 1_001, 99_999_999, 3_000_000_000),
    currency: optional("USD", "JPY", "KWD", "GBP"),
    tag: optional("poetry", "Short", "none"),
    minRating: optional(0, 3.5, 4.6, 5),
    author: optional("me" as const, "own id" as const, "other id" as const, "nobody" as const),
    status: optional("draft" as const, "published" as const, "unpublished" as const, "deleted" as const),
    sort: optional(...(Object.keys(sortKeys) as Sort[])),
    order: optional("asc" as const, "desc" as const),
  })
  .map((query) => {
    const isOwnShelf = query.author === "me" || query.author === "own id";
    return { ...query, status: isOwnShelf ? query.status : undefined } as Query;
  });

test("each filter in each order: the expected products, no duplicates or gaps over pages", async () => {
  await fc.assert(
    fc.asyncProperty(anyQuery, fc.boolean(), fc.constantFrom(7, 20, 100), async (query, byAnn, limit) => {
      const caller = byAnn ? ann : bob;
      const expected = shelf.filter((item) => isListed(item, query, caller)).sort(inOrder(query));
      const { ids, total } = await walk(caller, toSearch(query, caller), limit);
      assert.deepEqual(
        ids,
        expected.map(({ id }) => id),
      );
      assert.equal(total, expected.length);
    }),
    { numRuns: runs(150) },
  );
});

test("each order, both kinds of list: total, ties by id in both directions", async () => {
  for (const author of [undefined, "me" as const]) {
    for (const sort of sampleOf(Object.keys(sortKeys) as Sort[], author ? 1 : 0)) {
      for (const order of ["asc", "desc"] as const) {
        const query = { sort, order, ...(author && { author }) };
        const expected = shelf.filter((item) => isListed(item, query, ann)).sort(inOrder(query));
        const { ids } = await walk(ann, toSearch(query, ann), 9);
        assert.deepEqual(
          ids,
          expected.map(({ id }) => id),
          `${sort} ${order} ${author}`,
        );
      }
    }
  }
});

test("an item: the product's card with its numbers", async () => {
  const item = shelf.find(({ status, ratingCount }) => status === "published" && ratingCount === 3)!;
  const { body } = await ann.get(`/v1/products?limit=100`);
  const card = body.data.find(({ id }: { id: string }) => id === item.id);
  const { content, contentFormat, ...same } = (await item.author.get(`/v1/products/${item.id}`)).body.data;
  const { bio, ...author } = same.author;
  assert.deepEqual(card, {
    ...Object.fromEntries(Object.keys(card).map((name) => [name, same[name]])),
    image: null,
    author,
    rating: { average: 4.67, count: 3 },
    stats: { views: item.views, purchases: item.purchases },
    score: null,
  });
});

test("a page past the end: empty, with the total", async () => {
  const { body, headers } = await ann.get("/v1/products?page=500&limit=10");
  assert.deepEqual(body.data, []);
  assert.equal(body.meta.total, shelf.filter(({ status }) => status === "published").length);
  assert.match(headers.get("link")!, /rel="prev"/);
});

test("an invalid parameter: refused, named", async () => {
  const refused: [query: string, field: string][] = [
    ["minPrice=5&maxPrice=4.99", "minPrice"],
    ["minPrice=-1", "minPrice"],
    ["maxPrice=cheap", "maxPrice"],
    ["minPrice=4.999", "minPrice"],
    ["maxPrice=4.5&currency=JPY", "maxPrice"],
    ["currency=dollars", "currency"],
    ["currency=XYZ", "currency"],
    ["maxPrice=99999999999999", "maxPrice"],
    ["minRating=6", "minRating"],
    ["sort=luck", "sort"],
    ["order=up", "order"],
    ["status=draft", "status"],
    [`status=draft&author=${toUserId(newUuid(new Date()))}`, "status"],
    ["status=lost&author=me", "status"],
    ["page=0", "page"],
    ["limit=101", "limit"],
    ["limit=1.5", "limit"],
    ["colour=red", "colour"],
  ];
  for (const [query, field] of refused) {
    assertError(await ann.get(`/v1/products?${query}`), 400, "INVALID_REQUEST", field);
  }
});

test("a price range of any size: exact", async () => {
  const all = shelf.filter(({ status, currency }) => status === "published" && currency === "USD").length;
  for (const maxPrice of ["21474836.47", "21474836.48", "9999999999999.99"]) {
    const { status, body, text } = await ann.get(`/v1/products?maxPrice=${maxPrice}`);
    assert.equal(status, 200, text);
    assert.equal(body.meta.total, all);
  }
  assert.equal((await ann.get("/v1/products?minPrice=9999999999999")).body.meta.total, 0);
});

test("links of a page: contain its filters", async () => {
  const { headers } = await ann.get("/v1/products?provider=openai&limit=3&page=2");
  const links = headers.get("link")!;
  for (const rel of ["first", "prev", "next", "last"]) assert.ok(links.includes(`rel="${rel}"`), rel);
  assert.ok(links.includes("/v1/products?provider=openai&limit=3&page=3>"), links);
});

test("sellerId of another author: published products only", async () => {
  const { ids } = await walk(ann, `author=${toUserId(bob.userId)}`, 100);
  const expected = shelf.filter(({ author, status }) => author === bob && status === "published");
  assert.deepEqual(ids.toSorted(), expected.map(({ id }) => id).toSorted());
  assert.deepEqual((await walk(ann, `author=${toId("usr", newUuid(new Date()))}`, 100)).ids, []);
});

test("categories: counts of published products, with their subcategories", async () => {
  const { body } = await ann.get("/v1/categories?limit=100");
  const counts = new Map<string, number>();
  for (const { slug, parent, products } of body.data) {
    counts.set(slug, products);
    assert.ok(parent === null || counts.has(parent), "parents come first");
  }
  for (const category of CATEGORIES) {
    const query = { category };
    const expected = shelf.filter((item) => isListed(item, query, ann)).length;
    assert.equal(counts.get(category), expected, category);
  }
  assert.equal(body.meta.total, body.data.length);
  const second = await ann.get("/v1/categories?limit=1&page=2");
  assert.deepEqual(second.body.data, [body.data[1]]);
});
