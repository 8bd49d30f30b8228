import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let reader: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller" });
  reader = await market.createUser();
  productId = await createProduct(seller, {
    title: "Rain haiku",
    category: "writing",
    tags: ["poem", "rain"],
  });
});
after(() => market.close());

async function similarTo(id: string, query = "") {
  const reply = await reader.get(`/v1/products/${id}/similar${query}`);
  assert.equal(reply.status, 200, reply.text);
  const { data, meta } = reply.body;
  return { ids: data.map((product: { id: string }) => product.id), total: meta.total };
}

test("GET /v1/products/{id}/similar: tags in common first, then the category and the title; not itself", async () => {
  const make = (title: string, category: string, tags: string[]) =>
    createProduct(seller, { title, category, tags });
  const other = await make("Tax form", "finance", ["money"]);
  const sameCategory = await make("Novel outline", "writing", []);
  const oneTag = await make("Song about love", "writing", ["poem"]);
  const twoTags = await make("Storm ballad", "business", ["poem", "rain"]);
  const sameTitle = await make("Rain haiku two", "writing", []);
  const { ids, total } = await similarTo(productId);
  assert.deepEqual(ids, [twoTags, oneTag, sameTitle, sameCategory]);
  assert.equal(total, 4);
  assert.ok(!ids.includes(other));
  assert.deepEqual((await similarTo(productId, "?limit=2&page=2")).ids, [sameTitle, sameCategory]);
  await seller.post(`/v1/products/${twoTags}/unpublish`);
  assert.ok(!(await similarTo(productId)).ids.includes(twoTags), "only what is on sale");
});

test("a product that the reader may not see: 404", async () => {
  const draft = await createDraft(seller);
  assertError(await reader.get(`/v1/products/${draft}/similar`), 404, "PRODUCT_NOT_FOUND");
  assert.equal((await seller.get(`/v1/products/${draft}/similar`)).status, 200);
});
