import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { Facets, ProductCard } from "@stoa/contract";
import { startEvaluation, storeTestSet, untilEvaluated } from "../../../test/evaluations.ts";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { askedDuring } from "../../../test/statements.ts";
import { startWorker } from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";
import { compactFacetCounts } from "./search-maintenance.ts";

let market: Market;
let author: Client;
let reader: Client;
let worker: ReturnType<typeof startWorker>;
const ids: Record<string, string> = {};

const ECHO = { apiKeyId: "sandbox", model: "sandbox-echo" };
const INVENTED = { apiKeyId: "sandbox", model: "Sandbox-Other" };

/** Ten cases, of which the echo passes some: Wilson's lower bounds of 10 and 5 of 10 are 72.2 and 23.7 %. */
const casesOf = (passing: number) =>
  Array.from({ length: 10 }, (_, at) => ({
    title: `Case ${at}`,
    input: { topic: `rain ${at}` },
    assert: [{ type: "contains", value: at < passing ? "{{topic}}" : "no such words" }],
  }));

async function evaluate(productId: string, models: object[] = [ECHO]): Promise<void> {
  const id = await startEvaluation(author, productId, { models, repeats: 1, maxCost: 1 });
  const { status } = await untilEvaluated(market, author, id);
  assert.equal(status, "completed");
}

async function createMeasured(title: string, passing: number, models?: object[]): Promise<string> {
  const id = await createProduct(author, { title });
  await storeTestSet(author, id, casesOf(passing));
  await evaluate(id, models);
  return id;
}

before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
  reader = await market.createUser({ name: "Reader" });
  worker = startWorker(market);
  ids["good"] = await createMeasured("Good", 10);
  ids["fair"] = await createMeasured("Fair", 5, [INVENTED, ECHO]);
  ids["bare"] = await createProduct(author, { title: "Bare" });
});
after(async () => {
  await worker.stop();
  await market.close();
});

async function listed(query: string): Promise<ProductCard[]> {
  market.clock.forward(10_000);
  const reply = await reader.get(`/v1/products?limit=100&${query}`);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.body.meta.total, reply.body.data.length);
  return reply.body.data;
}
const titlesOf = async (query: string) => (await listed(query)).map(({ title }) => title);
async function facetsOf(query = ""): Promise<Facets> {
  market.clock.forward(10_000);
  return (await reader.get(`/v1/products/facets?${query}`)).body.data;
}
const itemOf = async (title: string, query = "") =>
  (await listed(query)).find((product) => product.title === title);

test("a list item: the score of its best model with interval and runs, null without one", async () => {
  const score = (await itemOf("Fair"))?.score;
  assert.deepEqual(
    { ...score, rate: undefined, baseline: undefined },
    {
      ...{ provider: "sandbox", model: "sandbox-echo", isSandbox: true, passed: 5, n: 10, medianCost: 0 },
      ...{ rate: undefined, baseline: undefined },
    },
  );
  const card = (await reader.get(`/v1/products/${ids["fair"]}`)).body.data.scoreCard;
  const onEcho = card.models.find(({ model }: { model: string }) => model === "sandbox-echo");
  assert.deepEqual(score?.rate, onEcho.rate);
  assert.deepEqual(score?.baseline, onEcho.baseline);
  assert.equal((await itemOf("Bare"))?.score, null);
});

test("a wishlist entry: the same score", async () => {
  await reader.put(`/v1/wishlist/${ids["good"]}`);
  const [entry] = (await reader.get("/v1/wishlist")).body.data;
  assert.deepEqual(entry.product.score, (await itemOf("Good"))?.score);
});

test("testedOn: provider/model or the model, in any case, shows that model's score", async () => {
  assert.deepEqual(await titlesOf("testedOn=sandbox/sandbox-echo&sort=title&order=asc"), ["Fair", "Good"]);
  assert.deepEqual(await titlesOf("testedOn=SANDBOX-other"), ["Fair"]);
  assert.equal((await itemOf("Fair", "testedOn=sandbox-other"))?.score?.passed, 0);
  assert.deepEqual(await titlesOf("testedOn=sandbox"), []);
  assert.deepEqual(await titlesOf("testedOn=all&sort=title&order=asc"), ["Bare", "Fair", "Good"]);
});

test("minPassRate: the lower bound of the best model, or of the model in testedOn", async () => {
  const low = (await itemOf("Good"))?.score?.rate.low ?? 0;
  assert.ok(low > 0.72 && low < 0.73, `${low}`);
  assert.deepEqual(await titlesOf("minPassRate=0.72"), ["Good"]);
  assert.deepEqual(await titlesOf("minPassRate=0.73"), [], "the rate itself is 1");
  assert.deepEqual(await titlesOf("minPassRate=0&sort=title&order=asc"), ["Fair", "Good"]);
  assert.deepEqual(await titlesOf("minPassRate=0.1&testedOn=sandbox-other"), []);
  for (const query of ["minPassRate=1.1", "minPassRate=-0.1", "minPassRate=much"])
    assertError(await reader.get(`/v1/products?${query}`), 400, "INVALID_REQUEST", "minPassRate");
});

test("sort=passRate: by the lower bound, unmeasured products last", async () => {
  assert.deepEqual(await titlesOf("sort=passRate"), ["Good", "Fair", "Bare"]);
  assert.deepEqual(await titlesOf("sort=passRate&order=asc"), ["Bare", "Fair", "Good"]);
  assert.deepEqual(await titlesOf("sort=passRate&testedOn=sandbox-echo"), ["Good", "Fair"]);
  assert.deepEqual(await titlesOf("sort=passRate&order=asc&testedOn=sandbox-echo&minPassRate=0.1"), [
    "Fair",
    "Good",
  ]);
  const searched = await titlesOf("sort=passRate&testedOn=sandbox-echo&search=author");
  assert.deepEqual(searched, ["Good", "Fair"], "with a search");
});

test("facets: tested models and lower bounds, as many as the filtered lists have", async () => {
  for (const query of [
    "",
    "category=writing",
    "testedOn=sandbox-other",
    "minPassRate=0.7",
    "search=author",
  ]) {
    const { testedOn, passRate, estimated } = await facetsOf(query);
    assert.deepEqual(estimated, [], query);
    const without = (name: string) => query.split("&").filter((part) => !part.startsWith(name));
    for (const { value, count } of testedOn)
      assert.equal((await listed([...without("testedOn"), `testedOn=${value}`].join("&"))).length, count);
    for (const { from, count } of passRate)
      assert.equal(
        (await listed([...without("minPassRate"), `minPassRate=${from}`].join("&"))).length,
        count,
        `${query}: ${from}`,
      );
  }
  for (const query of ["", "search=author"])
    assert.deepEqual((await facetsOf(query)).testedOn, [
      { value: "sandbox/sandbox-echo", count: 2 },
      { value: "sandbox/sandbox-other", count: 1 },
    ]);
  assert.deepEqual((await facetsOf()).passRate, [
    { from: 0.85, count: 0 },
    { from: 0.7, count: 1 },
    { from: 0.5, count: 1 },
  ]);
});

test("a new version: no score until it is evaluated; the newest evaluation counts", async () => {
  const id = await createMeasured("Moving", 10);
  const scoreOf = async () => (await itemOf("Moving"))?.score?.passed;
  assert.equal(await scoreOf(), 10);
  const reply = await author.patch(`/v1/products/${id}`, { content: "A new {{topic}} {{language=English}}" });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(await scoreOf(), undefined);
  assert.ok(!(await titlesOf("testedOn=sandbox-echo")).includes("Moving"));
  await evaluate(id);
  assert.equal(await scoreOf(), 10);
  await storeTestSet(author, id, casesOf(3));
  await evaluate(id);
  assert.equal(await scoreOf(), 3);
  const before = await facetsOf();
  await compactFacetCounts(market.service.ctx, 1);
  assert.deepEqual(await facetsOf(), before);
  await author.post(`/v1/products/${id}/unpublish`);
  assert.equal((await facetsOf()).testedOn[0]?.count, 2);
  await author.delete(`/v1/products/${id}`);
});

test("a draft that was evaluated: listed with its score from its publication on", async () => {
  const id = await createDraft(author, { title: "Draft" });
  await storeTestSet(author, id, casesOf(10));
  await evaluate(id);
  assert.ok(!(await titlesOf("testedOn=sandbox-echo")).includes("Draft"));
  await author.post(`/v1/products/${id}/publish`);
  assert.equal((await itemOf("Draft", "testedOn=sandbox-echo"))?.score?.passed, 10);
  await author.post(`/v1/products/${id}/unpublish`);
});

test("the end of an evaluation beside a release: it waits, and sees the new version", async () => {
  const productId = toUuid("prod", await createMeasured("Raced", 10));
  const { pool } = market.service.ctx;
  const release = await pool.connect();
  await release.query("begin");
  await release.query("update products set released = '{9,0,0}' where id = $1", [productId]);
  const refresh = pool.query("select refresh_product_scores($1)", [productId]);
  await Promise.race([waitForBlockedStatements(market), refresh.then(() => assert.fail("it did not wait"))]);
  await release.query("commit");
  release.release();
  await refresh;
  const { rows } = await market.query("select from product_scores where product_id = $1", [productId]);
  assert.deepEqual(rows, []);
});

suite("many products", () => {
  const COPIES = 6_000;

  before(async () => {
    market.skipLedgerCheck();
    const id = toUuid("prod", ids["good"] ?? "");
    await market.query(
      `create table copies as
       select n, md5(n::text)::uuid as id, (n * 7919 % ${COPIES})::bigint as purchases,
              case when n % 3 = 0 then (n % 1000) / 1000.0 end as low
         from generate_series(1, ${COPIES}) n`,
    );
    await market.query(
      `insert into products
       select copy.* from products p cross join copies c
        cross join jsonb_populate_record(p, jsonb_build_object('id', c.id)) copy
        where p.id = $1`,
      [id],
    );
    await market.query("insert into product_stats (product_id, purchases) select id, purchases from copies");
    await market.query(
      `insert into listings
       select copy.* from listings l cross join copies c
        cross join jsonb_populate_record(l, jsonb_build_object('product_id', c.id, 'purchases', c.purchases, 'low', c.low,
                'tested_on', case when c.low is null then '[]'::jsonb else '["p/common"]'::jsonb end)) copy
        where l.product_id = $1`,
      [id],
    );
    await market.query(
      `insert into search_documents (product_id, published, purchases, type, section, category, lang, currency, price_minor,
                                     compatibility, tags, pass_band, tested_on, search)
       select c.id, true, c.purchases, d.type, d.section, d.category, d.lang, d.currency, d.price_minor,
              d.compatibility, d.tags, stoa_pass_band(c.low), case when c.low is not null then '{p/common}'::text[] end, d.search
         from search_documents d, copies c where d.product_id = $1`,
      [id],
    );
    await market.query(
      `insert into product_scores (product_id, name, evaluation_id, low, score)
       select c.id, named, s.evaluation_id, c.low, s.score
         from copies c join product_scores s on s.product_id = $1 and s.name = ''
        cross join unnest(array['', 'p/common', 'common', case when c.n % 300 = 0 then 'rare' end]) named
        where c.low is not null and named is not null`,
      [id],
    );
    await market.query("analyze products, product_stats, listings, search_documents, product_scores");
  });

  interface PlanNode {
    "Node Type": string;
    "Relation Name"?: string;
    "Actual Rows": number;
    "Actual Loops": number;
    "Rows Removed by Filter"?: number;
    Plans?: PlanNode[];
  }

  const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

  /** Rows that the statement read from tables and indexes. */
  async function readRows({ text, values }: { text: string; values: unknown[] }): Promise<number> {
    const { rows } = await market.service.ctx.pool.query(`explain (analyze, format json) ${text}`, values);
    const nodes = nodesOf(rows[0]["QUERY PLAN"][0].Plan);
    return nodes
      .filter((node) => node["Node Type"].includes("Scan") && node["Relation Name"])
      .reduce(
        (sum, node) =>
          sum + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"],
        0,
      );
  }

  for (const query of [
    "minPassRate=0.99",
    "minPassRate=0.9&sort=passRate&category=writing",
    "sort=passRate",
    "testedOn=p/common&sort=passRate",
    "testedOn=common&minPassRate=0.9&sort=passRate&order=asc",
    "testedOn=common",
    "testedOn=rare&sort=price",
    "testedOn=p/common&minPassRate=0.995&type=prompt",
  ])
    test(`${query}: a page reads a small part of the catalog`, async () => {
      const asked = await askedDuring(async () => {
        const reply = await reader.get(`/v1/products?${query}`);
        assert.equal(reply.status, 200, reply.text);
        assert.ok(reply.body.data.length > 5);
      });
      const page = asked.filter(({ text }) => text.includes("p.card"));
      assert.equal(page.length, 1);
      for (const statement of page) assert.ok((await readRows(statement)) < COPIES / 8, statement.text);
    });

  test("facets of measured products: exact without filters, bounded with them", async () => {
    const { testedOn, estimated } = await facetsOf();
    assert.equal(testedOn.find(({ value }) => value === "p/common")?.count, COPIES / 3);
    assert.deepEqual(estimated, []);
    const inCategory = await facetsOf("category=writing");
    assert.deepEqual(inCategory.estimated, ["tag", "testedOn", "passRate"]);
    assert.equal(inCategory.testedOn.find(({ value }) => value === "p/common")?.count, 1_001);
  });
});
