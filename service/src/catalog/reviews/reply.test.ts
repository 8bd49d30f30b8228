import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let buyer: Client;
let path: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
});
after(() => market.close());

async function hasReview(): Promise<void> {
  const productId = await createProduct(seller);
  buyer = await market.createUser();
  await buyProduct(buyer, productId);
  const { body } = await buyer.post(`/v1/products/${productId}/reviews`, { rating: 3 });
  path = `/v1/products/${productId}/reviews/${body.data.id}`;
}

const answer = (who: Client, comment: string) => who.post(`${path}/reply`, { comment });
const shown = async () => (await (await market.createUser()).get(path)).body.data.reply;

suite("a reply to a review", () => {
  test("by the product's author, public below the review", async () => {
    await hasReview();
    const reply = await answer(seller, "  Thank you!  ");
    assert.equal(reply.status, 201);
    const expected = { comment: "Thank you!", createdAt: market.clock.now.toISOString(), updatedAt: null };
    assert.deepEqual(reply.body.data.reply, expected);
    assert.deepEqual(await shown(), expected);
  });

  test("one only: another replaces it and shows when it changed", async () => {
    await hasReview();
    const createdAt = market.clock.now.toISOString();
    await answer(seller, "First");
    market.clock.forward(1_000);
    assert.equal((await answer(seller, "First")).body.data.reply.updatedAt, null, "nothing changed");
    await answer(seller, "Second");
    const updatedAt = market.clock.now.toISOString();
    assert.deepEqual(await shown(), { comment: "Second", createdAt, updatedAt });
  });

  test("deleted once, and posted again", async () => {
    await hasReview();
    await answer(seller, "First");
    assert.equal((await seller.delete(`${path}/reply`)).body.data.reply, null);
    assert.equal(await shown(), null);
    assertError(await seller.delete(`${path}/reply`), 409, "INVALID_STATE");
    assert.equal((await answer(seller, "Second")).body.data.reply.updatedAt, null);
  });

  test("the reviewer changes the review: stays; deletes it: deleted", async () => {
    await hasReview();
    await answer(seller, "Why?");
    await buyer.patch(path, { rating: 5 });
    assert.equal((await shown()).comment, "Why?");
    await buyer.delete(path);
    assertError(await answer(seller, "Why?"), 404, "REVIEW_NOT_FOUND");
  });

  test("by anyone else, also an administrator: refused", async () => {
    await hasReview();
    await answer(seller, "Mine");
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    for (const who of [buyer, await market.createUser({ role: "seller" }), admin]) {
      assertError(await answer(who, "Not mine"), 403, "UNAUTHORIZED");
      assertError(await who.delete(`${path}/reply`), 403, "UNAUTHORIZED");
    }
    assert.equal((await shown()).comment, "Mine");
  });

  test("1 to 5,000 characters", async () => {
    await hasReview();
    for (const comment of ["", "   ", "x".repeat(5_001)])
      assertError(await answer(seller, comment), 400, "INVALID_REQUEST", "comment");
  });

  test("an API key: needs products:write", async () => {
    await hasReview();
    const { key } = await market.createUser({ permissions: ["purchases:write"] });
    const details = assertError(await answer(market.as(key), "x"), 403, "UNAUTHORIZED");
    assert.equal(details.required, "products:write");
  });
});

test("GET /reviews: the reviews of the seller's products, those without a reply first", async () => {
  const owner = await market.createUser();
  const productId = await createProduct(owner, { title: "Poet" });
  const ids: string[] = [];
  for (const rating of [2, 4, 5]) {
    const reviewer = await market.createUser();
    await buyProduct(reviewer, productId);
    ids.push((await reviewer.post(`/v1/products/${productId}/reviews`, { rating })).body.data.id);
  }
  const [first, second, third] = ids;
  await owner.post(`/v1/products/${productId}/reviews/${third}/reply`, { comment: "Thank you!" });
  const list = async (query = "") => {
    const { data } = (await owner.get(`/v1/reviews?${query}`)).body;
    return data.map(({ id }: { id: string }) => id);
  };
  assert.deepEqual(await list(), [second, first, third]);
  assert.deepEqual(await list("status=unanswered"), [second, first]);
  assert.deepEqual(await list("status=answered"), [third]);
  assert.deepEqual(await list(`rating=2&productId=${productId}`), [first]);
  assert.deepEqual(await list("productId=prod_unknown"), []);
  const [shown] = (await owner.get("/v1/reviews")).body.data;
  assert.deepEqual(shown.product, { id: productId, title: "Poet" });
  const stranger = await market.createUser({ role: "seller" });
  assert.deepEqual((await stranger.get("/v1/reviews")).body.data, []);
});
