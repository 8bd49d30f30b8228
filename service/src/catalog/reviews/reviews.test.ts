import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createDraft, createProduct, refundEverything } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { newUuid, toId } from "../../core/ids.ts";

let market: Market;
let author: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
});
after(() => market.close());

const review = (who: Client, productId: string, body: object) =>
  who.post(`/v1/products/${productId}/reviews`, body);
const reviewsOf = async (productId: string, query = "") =>
  (await author.get(`/v1/products/${productId}/reviews?${query}`)).body;

async function hasBuyer(productId: string, name = "Buyer"): Promise<Client> {
  const buyer = await market.createUser({ name });
  await buyProduct(buyer, productId);
  return buyer;
}

async function ratingOf(productId: string) {
  const { rating, reviews } = (await author.get(`/v1/products/${productId}`)).body.data.stats;
  return { rating, reviews };
}

async function reviewEvents(who: Client) {
  return (await who.get("/v1/events?type=review.created")).body.data;
}

test("POST /reviews, a buyer: a public review", async () => {
  const productId = await createProduct(author);
  const buyer = await hasBuyer(productId, "Bea");
  const reply = await review(buyer, productId, { rating: 4, comment: "  Good.  " });
  assert.equal(reply.status, 201);
  const { id, ...rest } = reply.body.data;
  assert.match(id, /^rev_[0-9a-z]{26}$/);
  assert.deepEqual(rest, {
    productId,
    author: { id: toUserId(buyer.userId), name: "Bea" },
    rating: 4,
    comment: "Good.",
    createdAt: market.clock.now.toISOString(),
    updatedAt: null,
    refunded: false,
    reply: null,
    hidden: null,
  });
  const stranger = await market.createUser();
  assert.deepEqual((await stranger.get(`/v1/products/${productId}/reviews`)).body.data, [reply.body.data]);
  assert.deepEqual(
    (await stranger.get(`/v1/products/${productId}/reviews/${id}`)).body.data,
    reply.body.data,
  );
});

test("a review: an event to the product's author only", async () => {
  const seller = await market.createUser();
  const productId = await createProduct(seller);
  const buyer = await hasBuyer(productId);
  const { body } = await review(buyer, productId, { rating: 5, comment: "Yes." });
  const [event, ...others] = await reviewEvents(seller);
  assert.deepEqual(others, []);
  assert.deepEqual(event.data, {
    review: { id: body.data.id, productId, rating: 5, comment: "Yes.", authorId: toUserId(buyer.userId) },
  });
  assert.deepEqual(await reviewEvents(buyer), []);
});

test("POST /reviews without an entitlement: refused", async () => {
  const productId = await createProduct(author);
  const stranger = await market.createUser();
  assertError(await review(stranger, productId, { rating: 5 }), 422, "VALIDATION_ERROR", "productId");
  assertError(await review(author, productId, { rating: 5 }), 422, "VALIDATION_ERROR", "productId");
  await stranger.post("/v1/purchases", { productId, paymentMethodId: "pm_test_declined" });
  assertError(await review(stranger, productId, { rating: 5 }), 422, "VALIDATION_ERROR", "productId");
  const buyer = await hasBuyer(productId);
  await refundEverything(market, buyer);
  assertError(await review(buyer, productId, { rating: 5 }), 422, "VALIDATION_ERROR", "productId");
  assert.deepEqual(await ratingOf(productId), { rating: 0, reviews: 0 });
});

test("reviews of a product that the caller cannot see: 404", async () => {
  const stranger = await market.createUser();
  for (const id of [await createDraft(author), toId("prod", newUuid(new Date())), "nonsense"]) {
    assertError(await stranger.get(`/v1/products/${id}/reviews`), 404, "PRODUCT_NOT_FOUND");
    assertError(await review(stranger, id, { rating: 5 }), 404, "PRODUCT_NOT_FOUND");
  }
});

test("POST /reviews, an unpublished product: a buyer may review", async () => {
  const productId = await createProduct(author);
  const buyer = await hasBuyer(productId);
  await author.delete(`/v1/products/${productId}`);
  assert.equal((await review(buyer, productId, { rating: 1 })).status, 201);
});

test("a second review of one buyer: CONFLICT, the rating does not change", async () => {
  const productId = await createProduct(author);
  const buyer = await hasBuyer(productId);
  await review(buyer, productId, { rating: 5, comment: "First" });
  assertError(await review(buyer, productId, { rating: 1, comment: "Second" }), 409, "CONFLICT");
  assert.deepEqual(await ratingOf(productId), { rating: 5, reviews: 1 });
  const { data, meta } = await reviewsOf(productId);
  assert.deepEqual([data[0].comment, meta.total], ["First", 1]);
});

test("parallel reviews of one buyer: one succeeds", async () => {
  const productId = await createProduct(author);
  const buyer = await hasBuyer(productId);
  const before = (await reviewEvents(author)).length;
  const replies = await Promise.all(
    Array.from({ length: 10 }, () => review(buyer, productId, { rating: 3 })),
  );
  assert.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(9).fill(409)]);
  assert.deepEqual(await ratingOf(productId), { rating: 3, reviews: 1 });
  assert.equal((await reviewEvents(author)).length, before + 1);
});

test("the average: follows each review, rounded to two decimals", async () => {
  const productId = await createProduct(author, { tags: ["averaged"] });
  const averages = [];
  for (const rating of [5, 4, 4, 1]) {
    await review(await hasBuyer(productId), productId, { rating });
    averages.push((await ratingOf(productId)).rating);
  }
  assert.deepEqual(averages, [5, 4.5, 4.33, 3.5]);
  const { body } = await author.get("/v1/products?tag=averaged");
  assert.deepEqual(body.data[0].rating, { average: 3.5, count: 4 });
});

test("parallel reviews of many buyers: all count", async () => {
  const productId = await createProduct(author);
  const buyers = await Promise.all(Array.from({ length: 8 }, () => hasBuyer(productId)));
  await Promise.all(buyers.map((buyer, at) => review(buyer, productId, { rating: (at % 2) * 4 + 1 })));
  assert.deepEqual(await ratingOf(productId), { rating: 3, reviews: 8 });
});

test("a rating: an integer from 1 to 5; a comment: at most 5,000 characters", async () => {
  const productId = await createProduct(author);
  const buyer = await hasBuyer(productId);
  for (const rating of [0, 6, 4.5, "5", null, undefined]) {
    assertError(await review(buyer, productId, { rating }), 400, "INVALID_REQUEST", "rating");
  }
  assertError(
    await review(buyer, productId, { rating: 5, comment: "x".repeat(5_001) }),
    400,
    "INVALID_REQUEST",
    "comment",
  );
  assertError(await review(buyer, productId, { rating: 5, stars: 5 }), 400, "INVALID_REQUEST", "stars");
});

test("GET /reviews: newest first, with pages", async () => {
  const productId = await createProduct(author);
  const ids: string[] = [];
  for (let at = 0; at < 5; at++) {
    const { body } = await review(await hasBuyer(productId), productId, { rating: 5 });
    ids.unshift(body.data.id);
  }
  const pages = [
    await reviewsOf(productId, "limit=2"),
    await reviewsOf(productId, "limit=2&page=2"),
    await reviewsOf(productId, "limit=2&page=3"),
  ];
  assert.deepEqual(
    pages.flatMap(({ data }) => data.map(({ id }: { id: string }) => id)),
    ids,
  );
  assert.deepEqual(
    pages.map(({ meta }) => meta.total),
    [5, 5, 5],
  );
});

/** Posts a review and returns it with its path. */
async function hasReview(productId: string, body: object = { rating: 4, comment: "Good." }) {
  const buyer = await hasBuyer(productId);
  const reply = await review(buyer, productId, body);
  assert.equal(reply.status, 201, reply.text);
  return { buyer, path: `/v1/products/${productId}/reviews/${reply.body.data.id}`, data: reply.body.data };
}

test("GET /reviews: counts by stars, filter by stars", async () => {
  const productId = await createProduct(author);
  for (const rating of [5, 5, 4, 1]) await review(await hasBuyer(productId), productId, { rating });
  const ratings = { average: 3.75, count: 4, stars: { 1: 1, 2: 0, 3: 0, 4: 1, 5: 2 } };
  const all = await reviewsOf(productId, "limit=1");
  assert.deepEqual([all.meta.ratings, all.meta.total, all.data.length], [ratings, 4, 1]);
  const fives = await reviewsOf(productId, "rating=5");
  assert.deepEqual(
    fives.data.map(({ rating }: { rating: number }) => rating),
    [5, 5],
  );
  assert.deepEqual([fives.meta.ratings, fives.meta.total], [ratings, 2], "the stars are those of all");
  assert.deepEqual((await reviewsOf(productId, "rating=2")).meta.total, 0);
  for (const rating of ["0", "6", "4.5", "good"]) {
    const reply = await author.get(`/v1/products/${productId}/reviews?rating=${rating}`);
    assertError(reply, 400, "INVALID_REQUEST", "rating");
  }
  const none = await reviewsOf(await createProduct(author));
  assert.deepEqual(none.meta.ratings, { average: 0, count: 0, stars: { 1: 0, 2: 0, 3: 0, 4: 0, 5: 0 } });
});

test("PATCH a review: the rating follows, and updatedAt is set", async () => {
  const productId = await createProduct(author);
  const { buyer, path, data } = await hasReview(productId);
  market.clock.forward(1_000);
  const changed = await buyer.patch(path, { rating: 2 });
  assert.equal(changed.status, 200);
  const updatedAt = market.clock.now.toISOString();
  assert.deepEqual(changed.body.data, { ...data, rating: 2, updatedAt });
  assert.deepEqual(await ratingOf(productId), { rating: 2, reviews: 1 });
  market.clock.forward(1_000);
  for (const same of [{}, { rating: 2 }, { comment: "Good." }])
    assert.equal((await buyer.patch(path, same)).body.data.updatedAt, updatedAt, "nothing changed");
  assert.equal((await buyer.patch(path, { comment: "" })).body.data.comment, "");
});

test("PATCH a review with an outdated ETag: refused", async () => {
  const { buyer, path } = await hasReview(await createProduct(author));
  const etag = (await buyer.get(path)).headers.get("etag")!;
  const changed = await buyer.patch(path, { rating: 1 }, { "if-match": etag });
  assert.equal(changed.status, 200);
  assertError(await buyer.patch(path, { rating: 5 }, { "if-match": etag }), 412, "PRECONDITION_FAILED");
  const next = changed.headers.get("etag")!;
  assert.equal((await buyer.patch(path, { rating: 5 }, { "if-match": next })).status, 200);
});

test("DELETE a review: a new one can be posted", async () => {
  const productId = await createProduct(author);
  const { buyer, path, data } = await hasReview(productId);
  const removed = await buyer.delete(path);
  assert.deepEqual([removed.status, removed.body.data], [200, { id: data.id, deleted: true }]);
  assert.deepEqual(await ratingOf(productId), { rating: 0, reviews: 0 });
  assertError(await buyer.delete(path), 404, "REVIEW_NOT_FOUND");
  assertError(await buyer.patch(path, { rating: 1 }), 404, "REVIEW_NOT_FOUND");
  assert.equal((await review(buyer, productId, { rating: 1 })).status, 201);
  assert.deepEqual(await ratingOf(productId), { rating: 1, reviews: 1 });
});

test("another user's PATCH or DELETE: refused", async () => {
  const { path } = await hasReview(await createProduct(author));
  const admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
  for (const who of [await market.createUser(), author, admin]) {
    assertError(await who.patch(path, { rating: 1 }), 403, "UNAUTHORIZED");
    assertError(await who.delete(path), 403, "UNAUTHORIZED");
  }
});

test("a review: found below its own product only, not by ids of other kinds", async () => {
  const [productId, other] = [await createProduct(author), await createProduct(author)];
  const { buyer, data } = await hasReview(productId);
  for (const path of [
    `${other}/reviews/${data.id}`,
    `${productId}/reviews/${productId}`,
    `${productId}/reviews/x`,
  ]) {
    assertError(await buyer.get(`/v1/products/${path}`), 404, "REVIEW_NOT_FOUND");
    assertError(await buyer.patch(`/v1/products/${path}`, { rating: 1 }), 404, "REVIEW_NOT_FOUND");
  }
  assertError(await buyer.get(`/v1/products/nothing/reviews/${data.id}`), 404, "PRODUCT_NOT_FOUND");
});

test("the product is no longer visible: the author can still delete the review", async () => {
  const productId = await createProduct(author);
  const { buyer, path } = await hasReview(productId);
  await refundEverything(market, buyer);
  await author.post(`/v1/products/${productId}/unpublish`);
  assertError(await buyer.get(`/v1/products/${productId}`), 404, "PRODUCT_NOT_FOUND");
  assertError(await (await market.createUser()).get(path), 404, "PRODUCT_NOT_FOUND");
  assert.equal((await buyer.patch(path, { rating: 1 })).status, 200);
  assert.equal((await buyer.delete(path)).status, 200);
});

test("a change of a review: no event", async () => {
  const seller = await market.createUser();
  const { buyer, path } = await hasReview(await createProduct(seller));
  await buyer.patch(path, { rating: 1 });
  await seller.post(`${path}/reply`, { comment: "Sorry." });
  await buyer.delete(path);
  assert.equal((await reviewEvents(seller)).length, 1);
});
