import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { hasBought, hasProduct } from "../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../test/market.ts";
import { toUuid } from "../ids.ts";
import { createKey } from "../keys/keys.ts";
import { flushViews, ViewBuffer } from "./views.ts";

const DAY_MS = 86_400_000;

let market: Market;
let author: Client;
before(async () => {
  market = await openMarket();
  author = await market.hasUser({ name: "Author" });
});
after(() => market.close());

const read = (who: Client, id: string, headers = {}) => who.get(`/v1/products/${id}`, headers);

async function viewsOf(id: string): Promise<number> {
  await flushViews(market.service.ctx);
  return (await read(author, id)).body.data.stats.views;
}

test("a viewer counts once a product and UTC day, however often they look", async () => {
  const id = await hasProduct(author);
  const [ann, bob] = [await market.hasUser(), await market.hasUser()];
  await Promise.all([read(ann, id), read(ann, id), read(bob, id)]);
  assert.equal(await viewsOf(id), 2);
  await read(ann, id);
  assert.equal(await viewsOf(id), 2, "once a day, also when the first look was written long ago");
});

test("a new UTC day counts anew", async () => {
  const id = await hasProduct(author);
  const viewer = await market.hasUser();
  const midnight = Math.ceil((market.clock.now.getTime() + 1) / DAY_MS) * DAY_MS;
  market.clock.forward(midnight - 1 - market.clock.now.getTime());
  await read(viewer, id);
  assert.equal(await viewsOf(id), 1);
  market.clock.forward(1);
  await read(viewer, id);
  assert.equal(await viewsOf(id), 2);
});

test("the author's own looks never count, a buyer's do", async () => {
  const id = await hasProduct(author);
  await read(author, id);
  assert.equal(await viewsOf(id), 0);
  const buyer = await market.hasUser();
  await hasBought(buyer, id);
  await read(buyer, id);
  assert.equal(await viewsOf(id), 1);
});

test("a look that finds nothing is no view", async () => {
  const id = await hasProduct(author);
  await author.post(`/v1/products/${id}/unpublish`);
  const viewer = await market.hasUser();
  assert.equal((await read(viewer, id)).status, 404);
  assert.equal(await viewsOf(id), 0);
});

test("two keys of one account are one viewer", async () => {
  const id = await hasProduct(author);
  const viewer = await market.hasUser();
  const { key } = await createKey(market.service.ctx, {
    userId: viewer.userId,
    name: "another",
    permissions: ["products:read"],
  });
  await read(viewer, id);
  await read(market.as(key), id);
  assert.equal(await viewsOf(id), 1);
});

test("views change no ETag, and an answer of 304 is a view too", async () => {
  const id = await hasProduct(author);
  const [ann, bob] = [await market.hasUser(), await market.hasUser()];
  const etag = (await read(ann, id)).headers.get("etag")!;
  assert.equal(await viewsOf(id), 1);
  assert.equal((await read(bob, id, { "if-none-match": etag })).status, 304);
  assert.equal(await viewsOf(id), 2);
  assert.equal((await read(ann, id)).headers.get("etag"), etag);
});

test("views order the list and show on its items", async () => {
  const ids = [await hasProduct(author, { tags: ["seen"] }), await hasProduct(author, { tags: ["seen"] })];
  await read(await market.hasUser(), ids[0]!);
  await flushViews(market.service.ctx);
  const { body } = await author.get("/v1/products?tag=seen&sort=views");
  assert.deepEqual(
    body.data.map(({ id, stats }: { id: string; stats: { views: number } }) => [id, stats.views]),
    [
      [ids[0], 1],
      [ids[1], 0],
    ],
  );
});

test("views that could not be written wait for the next time", async () => {
  const { ctx } = market.service;
  const buffer = new ViewBuffer();
  const productId = toUuid("prod", await hasProduct(author))!;
  buffer.add({ productId, day: "2026-06-15", viewer: "somebody" });
  await market.query("alter table product_views rename to elsewhere");
  await assert.rejects(buffer.flush(ctx.db));
  await market.query("alter table elsewhere rename to product_views");
  await buffer.flush(ctx.db);
  await buffer.flush(ctx.db);
  const { rows } = await market.query("select viewer from product_views where product_id = $1", [productId]);
  assert.deepEqual(rows, [{ viewer: "somebody" }]);
});

test("a view of a product that is gone keeps no other from being counted", async () => {
  const { ctx } = market.service;
  const buffer = new ViewBuffer();
  const id = await hasProduct(author);
  const seen = { day: "2026-06-15", viewer: "somebody" };
  buffer.add({ ...seen, productId: "00000000-0000-7000-8000-000000000000" });
  buffer.add({ ...seen, productId: toUuid("prod", id)! });
  await buffer.flush(ctx.db);
  assert.equal(await viewsOf(id), 1);
});
