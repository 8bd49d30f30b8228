import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { type Client, clientOf, type Market, openMarket } from "../../../test/market.ts";
import { type Service, startService } from "../../app.ts";

let market: Market;
let second: Service;
let author: Client;
let here: Client;
let there: Client;
before(async () => {
  market = await openMarket();
  const { config, pool } = market.service.ctx;
  second = await startService(
    config,
    { target: pool.options.connectionString!, maxConnections: 4 },
    { now: () => market.clock.now, log: market.service.ctx.log },
  );
  author = await market.createUser({ name: "Author" });
  here = await market.createUser({ name: "Reader" });
  there = clientOf(second.origin, here.key);
});
after(async () => {
  await second.close();
  await market.close();
});

const move = async (id: string, action: string) => {
  const reply = await author.post(`/v1/products/${id}/${action}`);
  assert.equal(reply.status, 200, reply.text);
};

/**
 * The total of the list on both nodes, twice each: the second answer comes from the cache. Waits a second first, so that
 * the other node has received the notification.
 */
async function totals(query: string): Promise<number[]> {
  await second.ctx.notifications.catchUp();
  const found = [];
  for (const who of [here, there, here, there]) {
    const { body } = await who.get(`/v1/products?${query}`);
    found.push(body.meta.total);
  }
  return found;
}

async function assertTotal(query: string, expected: number): Promise<void> {
  assert.deepEqual(await totals(query), Array(4).fill(expected), query);
}

test("totals: follow each move, on this node and another", async () => {
  const id = await createDraft(author, { tags: ["moves"] });
  await assertTotal("tag=moves", 0);
  await move(id, "publish");
  await assertTotal("tag=moves", 1);
  await move(id, "unpublish");
  await assertTotal("tag=moves", 0);
  await move(id, "publish");
  await assertTotal("tag=moves", 1);
  await author.delete(`/v1/products/${id}`);
  await assertTotal("tag=moves", 0);
});

test("totals: follow each change that a filter sees", async () => {
  const id = await createProduct(author, { tags: ["changes"], price: 50 });
  const same = await createProduct(author, { tags: ["changes"], price: 50 });
  const change = (input: object) => author.patch(`/v1/products/${id}`, input);
  await assertTotal("tag=changes&maxPrice=50", 2);
  await change({ price: 50.01 });
  await assertTotal("tag=changes&maxPrice=50", 1);
  await assertTotal("tag=changes&provider=ollama", 0);
  await change({ compatibility: ["ollama"] });
  await assertTotal("tag=changes&provider=ollama", 1);
  await change({ title: "Quixotic" });
  await assertTotal("search=quixotic", 1);
  await change({ tags: [] });
  await assertTotal("tag=changes", 1);
  await author.delete(`/v1/products/${same}`);
  await assertTotal("tag=changes", 0);
});

test("a card: shows a change, on another node too", async () => {
  const id = await createProduct(author, { tags: ["card"], title: "Before" });
  const titleOn = async (who: Client) => (await who.get("/v1/products?tag=card")).body.data[0].title;
  assert.equal(await titleOn(there), "Before");
  await author.patch(`/v1/products/${id}`, { title: "After" });
  await second.ctx.notifications.catchUp();
  assert.deepEqual([await titleOn(here), await titleOn(there)], ["After", "After"]);
});

test("totals: cached per filter", async () => {
  await createProduct(author, { tags: ["mixed"], currency: "EUR" });
  await createProduct(author, { tags: ["mixed"] });
  await assertTotal("tag=mixed", 2);
  await assertTotal("tag=mixed&sort=price", 1);
  await assertTotal("tag=mixed&currency=EUR", 1);
  await assertTotal("tag=mixed&order=asc&limit=1", 2);
  await assertTotal("tag=mixed&page=9", 2);
});

test("the total of an author's own products: not shown to others", async () => {
  await createDraft(author, { tags: ["own"] });
  const own = async () => (await author.get("/v1/products?tag=own&author=me")).body.meta.total;
  assert.equal(await own(), 1);
  await assertTotal("tag=own&author=me", 0);
  await assertTotal("tag=own", 0);
  assert.equal(await own(), 1);
});

test("a total with a rating filter: follows ratings within five seconds", async () => {
  const id = await createProduct(author, { tags: ["rated"] });
  await assertTotal("tag=rated&minRating=4", 0);
  await here.post("/v1/purchases", { productId: id });
  await here.post(`/v1/products/${id}/reviews`, { rating: 5 });
  market.clock.forward(5_000);
  await assertTotal("tag=rated&minRating=4", 1);
});

test("publishing and deleting under load: the total is never older than the page", async () => {
  const ids = await Promise.all(Array.from({ length: 6 }, () => createDraft(author, { tags: ["busy"] })));
  const reads = Array.from({ length: 60 }, async (_, at) => {
    const { body } = await (at % 2 ? here : there).get("/v1/products?tag=busy&limit=100");
    assert.ok(body.meta.total >= body.data.length, `${body.data.length} of ${body.meta.total}`);
  });
  await Promise.all([...reads, ...ids.map((id) => move(id, "publish"))]);
  await assertTotal("tag=busy", 6);
});
