import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { sql } from "kysely";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { toUuid } from "../../core/ids.ts";

let market: Market;
let seller: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

interface Review {
  id: string;
  buyer: Client;
  productId: string;
  path: string;
}

async function hasReview(product?: string): Promise<Review> {
  const productId = product ?? (await createProduct(seller, { title: "A product" }));
  const buyer = await market.createUser({ name: "Buyer" });
  await buyProduct(buyer, productId);
  const { id } = (await buyer.post(`/v1/products/${productId}/reviews`, { rating: 1, comment: "Bad." })).body
    .data;
  return { id, buyer, productId, path: `/v1/products/${productId}/reviews/${id}` };
}

const report = (who: Client, { path }: Review, reason = "Spam") => who.post(`${path}/report`, { reason });
const hide = ({ id }: Review, reason = "Spam") => admin.post(`/v1/admin/reviews/${id}/hide`, { reason });
const restore = ({ id }: Review) => admin.post(`/v1/admin/reviews/${id}/restore`);
const queue = async (query = "") => (await admin.get(`/v1/admin/reviews?limit=100&${query}`)).body;
const inQueue = async ({ id }: Review, query = "") =>
  (await queue(query)).data.find((item: { id: string }) => item.id === id);
const ratingOf = async ({ productId }: Review) => {
  const { rating, reviews } = (await seller.get(`/v1/products/${productId}`)).body.data.stats;
  return [rating, reviews];
};
const listFor = async (who: Client, { productId }: Review) =>
  (await who.get(`/v1/products/${productId}/reviews`)).body;

suite("POST /reviews/:reviewId/report", () => {
  test("any user, once: the review enters the moderation queue", async () => {
    const review = await hasReview();
    const reader = await market.createUser({ name: "Reader" });
    const createdAt = market.clock.now.toISOString();
    const reply = await report(reader, review, "  Advertises  ");
    assert.deepEqual([reply.status, reply.body.data], [201, { id: review.id, reported: true }]);
    assertError(await report(reader, review), 409, "CONFLICT");
    market.clock.forward(1);
    assert.equal((await report(seller, review, "Never used it")).status, 201);
    const item = await inQueue(review);
    assert.deepEqual([item.product.title, item.rating, item.openReports], ["A product", 1, 2]);
    assert.deepEqual(item.reports[0], {
      reporter: { id: toUserId(reader.userId), name: "Reader" },
      reason: "Advertises",
      createdAt,
    });
    assert.deepEqual(await ratingOf(review), [1, 1], "it alone changes nothing");
  });

  test("ten parallel reports of one user: one", async () => {
    const [review, reader] = [await hasReview(), await market.createUser()];
    const replies = await Promise.all(Array.from({ length: 10 }, () => report(reader, review)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(9).fill(409)]);
    assert.equal((await inQueue(review)).openReports, 1);
  });

  test("the author's own review: refused; a reason of 1 to 500 characters is required", async () => {
    const review = await hasReview();
    assertError(await report(review.buyer, review), 422, "VALIDATION_ERROR", "reviewId");
    for (const reason of ["", " ", "x".repeat(501)])
      assertError(await report(seller, review, reason), 400, "INVALID_REQUEST", "reason");
  });

  test("a review that is being hidden: 404", async () => {
    const review = await hasReview();
    const id = toUuid("rev", review.id);
    const { reply } = await market.service.ctx.db.transaction().execute(async (tx) => {
      await sql`select from reviews where id = ${id} for update`.execute(tx);
      const reply = report(seller, review);
      await waitForBlockedStatements(market);
      await sql`update reviews set hidden_at = created_at, hidden_reason = 'Spam' where id = ${id}`.execute(
        tx,
      );
      return { reply };
    });
    assertError(await reply, 404, "REVIEW_NOT_FOUND");
  });

  test("the review is deleted: its reports are deleted", async () => {
    const review = await hasReview();
    await report(seller, review);
    await review.buyer.delete(review.path);
    assert.equal(await inQueue(review), undefined);
  });

  test("the queue shows the oldest twenty", async () => {
    const review = await hasReview();
    for (let at = 0; at < 22; at++) {
      market.clock.forward(1);
      assert.equal((await report(await market.createUser(), review, `Reason ${at}`)).status, 201);
    }
    const { openReports, reports } = await inQueue(review);
    assert.deepEqual([openReports, reports.length, reports[0].reason], [22, 20, "Reason 0"]);
  });
});

suite("POST /admin/reviews/:reviewId/hide", () => {
  test("removes it from list and rating; its author sees it with the reason", async () => {
    const review = await hasReview();
    await hasReview(review.productId).then((other) => other.buyer.patch(other.path, { rating: 5 }));
    assert.deepEqual(await ratingOf(review), [3, 2]);
    const reply = await hide(review, "Advertises");
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(await ratingOf(review), [5, 1]);
    for (const who of [seller, await market.createUser()]) {
      const { data, meta } = await listFor(who, review);
      assert.deepEqual([data.length, meta.total, meta.ratings.count, meta.ratings.stars[1]], [1, 1, 1, 0]);
      assertError(await who.get(review.path), 404, "REVIEW_NOT_FOUND");
    }
    const own = await listFor(review.buyer, review);
    assert.deepEqual([own.data.length, own.meta.total, own.meta.ratings.count], [2, 2, 1]);
    const hidden = { reason: "Advertises", at: market.clock.now.toISOString() };
    assert.deepEqual((await review.buyer.get(review.path)).body.data.hidden, hidden);
  });

  test("no change, deletion, second review, reply or report is possible", async () => {
    const review = await hasReview();
    await hide(review);
    const { buyer, path, productId } = review;
    assertError(await buyer.patch(path, { rating: 5 }), 409, "INVALID_STATE");
    assertError(await buyer.delete(path), 409, "INVALID_STATE");
    assertError(await buyer.post(`/v1/products/${productId}/reviews`, { rating: 5 }), 409, "CONFLICT");
    assertError(await seller.post(`${path}/reply`, { comment: "Why?" }), 404, "REVIEW_NOT_FOUND");
    assertError(await report(seller, review), 404, "REVIEW_NOT_FOUND");
    assert.deepEqual(await ratingOf(review), [0, 0]);
  });

  test("restore: everything as before", async () => {
    const review = await hasReview();
    const before = (await review.buyer.get(review.path)).body.data;
    await hide(review);
    assert.equal((await restore(review)).body.data.hidden, null);
    assert.deepEqual((await review.buyer.get(review.path)).body.data, before);
    assert.deepEqual(await ratingOf(review), [1, 1]);
    assert.equal(await inQueue(review), undefined);
  });

  test("resolves its reports; so does restore", async () => {
    const [bad, fine] = [await hasReview(), await hasReview()];
    for (const review of [bad, fine]) await report(seller, review);
    for (const reply of [await hide(bad), await restore(fine)]) {
      const { openReports, reports } = reply.body.data;
      assert.deepEqual([openReports, reports], [0, []]);
    }
    assert.deepEqual([await inQueue(bad, "status=reported"), await inQueue(fine)], [undefined, undefined]);
    assert.ok(await inQueue(bad, "status=hidden"));
    assertError(await report(seller, fine), 409, "CONFLICT");
  });

  test("an unchanged state: refused", async () => {
    const review = await hasReview();
    assertError(await restore(review), 409, "INVALID_STATE");
    await hide(review);
    assertError(await hide(review), 409, "INVALID_STATE");
    const unknown = { ...review, id: review.productId };
    for (const reply of [await hide(unknown), await restore(unknown)])
      assertError(reply, 404, "REVIEW_NOT_FOUND");
    assertError(await hide(review, ""), 400, "INVALID_REQUEST", "reason");
  });

  test("ten parallel requests: one succeeds", async () => {
    const review = await hasReview();
    const replies = await Promise.all(Array.from({ length: 10 }, () => hide(review)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(9).fill(409)]);
    assert.deepEqual(await ratingOf(review), [0, 0]);
  });

  test("an audit entry with the reason", async () => {
    const review = await hasReview();
    await report(seller, review);
    await hide(review, "Advertises");
    await restore(review);
    const { data } = (await admin.get(`/v1/admin/audit?target=${review.id}`)).body;
    assert.deepEqual(
      data.map((entry: { action: string; details: object }) => [entry.action, entry.details]),
      [
        ["review.restored", { productId: review.productId, reason: "Advertises", settledReports: 0 }],
        ["review.hidden", { productId: review.productId, reason: "Advertises", settledReports: 1 }],
      ],
    );
  });
});

test("the queue: reported and hidden reviews, newest first, each once, over pages", async () => {
  const reviews = [await hasReview(), await hasReview(), await hasReview(), await hasReview()];
  await report(seller, reviews[0]!);
  await hide(reviews[1]!);
  await report(seller, reviews[2]!);
  await hide(reviews[2]!);
  const ids = async (query = "") => (await queue(query)).data.map((item: { id: string }) => item.id);
  const [first, second, third, fourth] = reviews.map(({ id }) => id);
  assert.deepEqual((await ids()).slice(0, 3), [third, second, first]);
  assert.ok(!(await ids()).includes(fourth));
  assert.deepEqual((await ids("status=hidden")).slice(0, 2), [third, second]);
  assert.equal((await ids("status=reported"))[0], first);
  const { data, meta } = (await admin.get("/v1/admin/reviews?limit=1&page=2")).body;
  assert.deepEqual([data[0].id, meta.total], [second, (await ids()).length]);
});
