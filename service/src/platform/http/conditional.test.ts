import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { flushViews } from "../../catalog/search/views.ts";

let market: Market;
let seller: Client;
let productId: string;
let path: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  productId = await createProduct(seller);
  path = `/v1/products/${productId}`;
});
after(() => market.close());

const tagOf = async (client: Client, of = path) => (await client.get(of)).headers.get("etag")!;

suite("the ETag of a product", () => {
  test("strong, per credential, not for shared caches", async () => {
    const reply = await seller.get(path);
    assert.match(reply.headers.get("etag")!, /^"[\x21\x23-\x7e]+"$/);
    assert.equal(reply.headers.get("cache-control"), "private");
    assert.equal(reply.headers.get("vary"), "Authorization, Cookie");
  });

  test("changes with each change by the author only", async () => {
    const tags = [await tagOf(seller)];
    assert.equal(await tagOf(seller), tags[0]);
    for (const change of [
      { title: "A haiku" },
      { price: 5.5 },
      { tags: ["zen"] },
      { content: "On {{topic}} in {{language=English}}." },
    ]) {
      const reply = await seller.patch(path, change);
      assert.equal(reply.headers.get("etag"), await tagOf(seller), "the change tells the new one");
      tags.push(reply.headers.get("etag")!);
    }
    assert.equal(new Set(tags).size, tags.length);
  });

  test("stays for a change without effect", async () => {
    const before = await tagOf(seller);
    assert.equal((await seller.patch(path, { title: "A haiku" })).headers.get("etag"), before);
    assert.equal((await seller.patch(path, {})).headers.get("etag"), before);
  });

  test("changes with the state", async () => {
    const before = await tagOf(seller);
    await seller.post(`${path}/unpublish`);
    assert.notEqual(await tagOf(seller), before);
    await seller.post(`${path}/publish`);
  });

  test("stays for views, purchases and reviews, although the body shows them", async () => {
    const [reader, buyer] = [await market.createUser(), await market.createUser()];
    const before = await seller.get(path);
    await buyProduct(buyer, productId);
    assert.equal((await buyer.post(`${path}/reviews`, { rating: 5 })).status, 201);
    const seen = await tagOf(reader);
    await flushViews(market.service.ctx);
    const after = await seller.get(path);
    assert.equal(after.headers.get("etag"), before.headers.get("etag"));
    assert.equal(await tagOf(reader), seen);
    const { views, purchases, reviews } = after.body.data.stats;
    assert.ok(views > before.body.data.stats.views);
    assert.deepEqual([purchases, reviews], [1, 1]);
  });

  test("differs between author, buyer and stranger", async () => {
    const [buyer, stranger] = [await market.createUser(), await market.createUser()];
    const unbought = await tagOf(buyer);
    await buyProduct(buyer, productId);
    const tags = [await tagOf(seller), await tagOf(buyer), await tagOf(stranger)];
    assert.equal(new Set(tags).size, 3);
    assert.equal(unbought, tags[2]);
    const reply = await buyer.get(path, { "if-none-match": unbought });
    assert.equal(reply.status, 200, "what was read before the purchase is stale after it");
    assert.ok(reply.body.data.content);
  });
});

suite("If-None-Match", () => {
  test("the current tag: 304 without a body, with ETag and cache headers", async () => {
    const etag = await tagOf(seller);
    const reply = await seller.get(path, { "if-none-match": etag });
    assert.equal(reply.status, 304);
    assert.equal(reply.text, "");
    assert.equal(reply.headers.get("etag"), etag);
    assert.equal(reply.headers.get("cache-control"), "private");
    assert.equal(reply.headers.get("vary"), "Authorization, Cookie");
  });

  test("weak comparison, lists and *", async () => {
    const etag = await tagOf(seller);
    for (const header of [`W/${etag}`, `"other", ${etag}`, `"a",W/${etag},"b"`, "*"]) {
      assert.equal((await seller.get(path, { "if-none-match": header })).status, 304, header);
    }
  });

  test("another tag, none or garbage: 200", async () => {
    const etag = await tagOf(seller);
    for (const header of ['"other"', "", etag.slice(1, -1), `${etag.slice(0, -1)}x"`, '"*"']) {
      assert.equal((await seller.get(path, { "if-none-match": header })).status, 200, header);
    }
  });

  test("a deleted product: 404, not 304", async () => {
    const id = await createDraft(seller);
    const etag = await tagOf(seller, `/v1/products/${id}`);
    await seller.delete(`/v1/products/${id}`);
    const reply = await seller.get(`/v1/products/${id}`, { "if-none-match": etag });
    assertError(reply, 404, "PRODUCT_NOT_FOUND");
    assertError(await seller.get(`/v1/products/${id}`, { "if-none-match": "*" }), 404, "PRODUCT_NOT_FOUND");
  });

  test("a change: applies, since only GET and HEAD answer 304", async () => {
    const reply = await seller.patch(path, { title: "Not asked for" }, { "if-none-match": "*" });
    assert.deepEqual([reply.status, reply.body.data?.title], [200, "Not asked for"]);
  });

  test("other single resources: the same", async () => {
    const [event] = (await seller.get("/v1/events")).body.data;
    const etag = await tagOf(seller, `/v1/events/${event.id}`);
    assert.equal((await seller.get(`/v1/events/${event.id}`, { "if-none-match": etag })).status, 304);
  });
});

suite("the ETag of a list", () => {
  const list = "/v1/products?tag=poetry";

  test("weak, since each answer has its own request id, and per credential", async () => {
    const [first, second] = [await seller.get(list), await seller.get(list)];
    assert.match(first.headers.get("etag")!, /^W\/"[\x21\x23-\x7e]+"$/);
    assert.equal(first.headers.get("etag"), second.headers.get("etag"));
    assert.notEqual(first.body.meta.request_id, second.body.meta.request_id);
    assert.equal(first.headers.get("cache-control"), "private");
    assert.equal(first.headers.get("vary"), "Authorization, Cookie");
  });

  test("sent back: 304 without a body, with limits and pages", async () => {
    const etag = await tagOf(seller, list);
    for (const given of [etag, etag.slice(2), `"other", ${etag}`, "*"]) {
      const reply = await seller.get(list, { "if-none-match": given });
      assert.deepEqual([reply.status, reply.text], [304, ""], given);
      assert.equal(reply.headers.get("etag"), etag);
      for (const name of ["x-ratelimit-remaining", "ratelimit", "link", "x-request-id"])
        assert.ok(reply.headers.get(name), name);
    }
    for (const given of ['"other"', "", etag.slice(0, -2)])
      assert.equal((await seller.get(list, { "if-none-match": given })).status, 200, given);
  });

  test("changes with the page's content and the total", async () => {
    const first = `${list}&sort=price&order=asc&limit=1`;
    const id = await createProduct(seller, { price: 1 });
    const tags = [await tagOf(seller, first)];
    await seller.patch(`/v1/products/${id}`, { price: 1.01 });
    tags.push(await tagOf(seller, first));
    await createProduct(seller, { price: 99 });
    tags.push(await tagOf(seller, first));
    assert.equal(new Set(tags).size, 3);
  });

  test("on every list; with api_key in the query no cache stores it", async () => {
    for (const path of ["/v1/purchases", "/v1/categories", `/v1/products/${productId}/reviews`])
      assert.equal(
        (await seller.get(path, { "if-none-match": await tagOf(seller, path) })).status,
        304,
        path,
      );
    const reply = await market.as(null).get(`${list}&api_key=${seller.key}`);
    assert.equal(reply.headers.get("cache-control"), "no-store");
  });
});

suite("If-Match", () => {
  test("the current tag: the change applies", async () => {
    const reply = await seller.patch(path, { title: "As read" }, { "if-match": await tagOf(seller) });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.data.title, "As read");
  });

  test("an outdated tag: 412, nothing changes", async () => {
    const stale = await tagOf(seller);
    await seller.patch(path, { title: "In between" });
    assertError(
      await seller.patch(path, { title: "Lost" }, { "if-match": stale }),
      412,
      "PRECONDITION_FAILED",
    );
    assert.equal((await seller.get(path)).body.data.title, "In between");
  });

  test("lists and *; no weak tag and no garbage", async () => {
    const etag = await tagOf(seller);
    for (const header of ["*", `"other", ${etag}`]) {
      assert.equal((await seller.patch(path, {}, { "if-match": header })).status, 200, header);
    }
    for (const header of [`W/${etag}`, etag.slice(1, -1), "", '"*"']) {
      const reply = await seller.patch(path, { title: "Never" }, { "if-match": header });
      assertError(reply, 412, "PRECONDITION_FAILED");
    }
  });

  test("ten parallel changes with one tag: one succeeds", async () => {
    const etag = await tagOf(seller);
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, number) =>
        seller.patch(path, { title: `Title ${number}` }, { "if-match": etag }),
      ),
    );
    const statuses = replies.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [200, ...Array(9).fill(412)]);
  });

  test("checked after 404 and 403, so it reveals nothing", async () => {
    const stranger = await market.createUser();
    const draft = await createDraft(seller);
    const stale = { "if-match": '"stale"' };
    assertError(await stranger.patch(`/v1/products/${draft}`, {}, stale), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.patch(path, {}, stale), 403, "UNAUTHORIZED");
  });
});
