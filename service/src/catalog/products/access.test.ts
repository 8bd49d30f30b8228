import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { contentPreview } from "@stoa/contract";
import fc from "fast-check";
import { buyProduct, createDraft, createProduct, haiku, refundEverything } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { statementsOf } from "../../../test/statements.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { openPool } from "../../platform/db/database.ts";
import { flushViews } from "../search/views.ts";
import { confirmProducts } from "./confirmation-queries.ts";
import { readAsGuest } from "./detail.ts";

let market: Market;
let author: Client;
let stranger: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
  stranger = await market.createUser({ name: "Stranger" });
});
after(() => market.close());

const read = (who: Client, id: string, headers = {}) => who.get(`/v1/products/${id}`, headers);
const detail = async (who: Client, id: string) => (await read(who, id)).body.data;
const usedAt = async (productId: string): Promise<Date | null> => {
  const { rows } = await market.query("select used_at from entitlements where product_id = $1", [
    toUuid("prod", productId),
  ]);
  return rows[0].used_at;
};

async function hasBuyer(productId: string): Promise<Client> {
  const buyer = await market.createUser({ name: "Buyer" });
  await buyProduct(buyer, productId);
  return buyer;
}

test("GET /products/:id, a stranger: every public field, no content", async () => {
  const id = await createProduct(author, { models: { openai: "gpt-5" }, features: ["Short"] });
  const own = await detail(author, id);
  assert.equal(own.content, haiku.content);
  assert.deepEqual(await detail(stranger, id), {
    ...own,
    content: null,
    files: null,
    access: { owned: false, reason: "none", revealForfeitsInstantRefund: false },
  });
});

test("GET /products/:id by strangers, after every kind of change: as rendered anew, in one query", async (t) => {
  const seller = await market.createUser({ name: "Before" });
  const id = await createProduct(seller);
  const uuid = toUuid("prod", id)!;
  const buyer = await market.createUser({ name: "Buyer" });
  const expected = async () => JSON.parse(JSON.stringify(await readAsGuest(market.service.ctx, id)));
  await read(stranger, id);
  await flushViews(market.service.ctx);
  const changes: [what: string, change: () => Promise<unknown>][] = [
    ["nothing", async () => {}],
    ["the title", () => seller.patch(`/v1/products/${id}`, { title: "Another haiku" })],
    [
      "a version",
      () => seller.patch(`/v1/products/${id}`, { content: "About {{topic}}.", version: "1.1.0" }),
    ],
    ["the author's name", () => seller.patch("/v1/account", { name: "After" })],
    [
      "a refund policy",
      () => market.query("update users set refund_days = 30 where id = $1", [seller.userId]),
    ],
    ["a scan", () => market.query("update product_scans set badges = '{}' where product_id = $1", [uuid])],
    ["a purchase", () => buyProduct(buyer, id)],
    ["views", () => market.query("update product_stats set views = 77 where product_id = $1", [uuid])],
    [
      "moved away and back",
      async () => {
        await seller.post(`/v1/products/${id}/unpublish`);
        assertError(await read(stranger, id), 404, "PRODUCT_NOT_FOUND");
        await seller.post(`/v1/products/${id}/publish`);
      },
    ],
  ];
  for (const [what, change] of changes) {
    await change();
    const { data, etag } = await expected();
    for (const who of [stranger, stranger, await market.createSession(stranger.userId)]) {
      const reply = await read(who, id);
      assert.deepEqual([reply.body.data, reply.headers.get("etag")], [data, etag], what);
      assert.deepEqual(Object.keys(reply.body.data), Object.keys(data), what);
    }
  }
  assert.equal((await detail(buyer, id)).access.reason, "purchased");
  assert.equal((await detail(seller, id)).access.reason, "author");
  // A timer writes views that were counted before, perhaps meanwhile.
  const { ctx } = market.service;
  const add = t.mock.method(ctx.views, "add", () => {});
  await flushViews(ctx);
  await market.waitForNotifications();
  const statements = await statementsOf(() =>
    Promise.all([read(stranger, id), read(stranger, id), read(stranger, id)]),
  );
  assert.equal(add.mock.callCount(), 3);
  assert.deepEqual(
    statements.filter((text) => !text.includes("as stamp")),
    [],
    "no other read",
  );
  assert.ok(statements.length <= 3, "requests that arrive together share one");
});

test("the confirmation of a detail: PostgreSQL keeps its plan after the first five uses", async () => {
  const { ctx } = market.service;
  const question = { productId: toUuid("prod", await createProduct(author))!, readerId: null };
  // A new connection has no plan of the statement.
  const pool = openPool({ target: market.target, maxConnections: 1 });
  try {
    // With few products the number of questions hardly counts, and less than the cost of planning, which this setting decides.
    await pool.query("update pg_class set reltuples = 10000, relpages = 1 where relname = 'products'");
    await pool.query("set cpu_operator_cost = 0.000001");
    for (let use = 0; use < 8; use++) await confirmProducts({ ...ctx, pool }, [question]);
    const { rows } = await pool.query(
      "select custom_plans::int as planned from pg_prepared_statements where name = 'confirm_products'",
    );
    assert.deepEqual(rows, [{ planned: 5 }]);
  } finally {
    await pool.end();
  }
});

test("a preview: never the whole content", () => {
  const content = fc.string({ unit: "grapheme", minLength: 2, maxLength: 2_000 });
  fc.assert(
    fc.property(content, (text) => {
      const preview = contentPreview("", text);
      assert.ok(!preview.includes(text));
      assert.ok(preview.length <= 401 && preview.isWellFormed());
      assert.ok(text.startsWith(preview.slice(0, -1)), "a part of its beginning");
    }),
    { numRuns: runs(500) },
  );
});

test("a preview by the author: shown unchanged", async () => {
  const id = await createProduct(author, { preview: "Ask for a topic." });
  assert.equal((await detail(stranger, id)).contentPreview, "Ask for a topic.");
});

test("a buyer: sees the content; only the first read makes an event and sets the time", async () => {
  const id = await createProduct(author);
  const buyer = await hasBuyer(id);
  assert.equal(await usedAt(id), null);
  const first = await detail(buyer, id);
  const firstRead = market.clock.now;
  assert.equal(first.content, haiku.content);
  assert.deepEqual(first.access, { owned: true, reason: "purchased", revealForfeitsInstantRefund: false });
  assert.deepEqual(await usedAt(id), firstRead);
  market.clock.forward(60_000);
  const second = await detail(buyer, id);
  assert.deepEqual(second.access, { owned: true, reason: "purchased", revealForfeitsInstantRefund: false });
  assert.deepEqual(await usedAt(id), firstRead);
});

test("a buyer who reads without the content: gets no content, and does not open the product", async () => {
  const id = await createProduct(author);
  const buyer = await hasBuyer(id);
  const { headers, body } = await buyer.get(`/v1/products/${id}?content=false`);
  assert.equal(body.data.content, null);
  assert.deepEqual(body.data.access, { owned: true, reason: "purchased", revealForfeitsInstantRefund: true });
  assert.equal(await usedAt(id), null);
  const etag = headers.get("etag")!;
  const again = await buyer.get(`/v1/products/${id}?content=false`, { "if-none-match": etag });
  assert.equal(again.status, 304);
  assert.equal((await buyer.get(`/v1/products/${id}`, { "if-none-match": etag })).status, 200);
  assert.notEqual(await usedAt(id), null);
  assert.equal((await buyer.get(`/v1/products/${id}?content=no`)).status, 400);
});

suite("a browser with the buyer's cookie, led here by another site", () => {
  for (const site of ["cross-site", "same-site"]) {
    test(`no content, no view (Sec-Fetch-Site: ${site})`, async () => {
      const buyer = await market.createUser();
      const id = await createProduct(author);
      const orderId = await buyProduct(buyer, id);
      const version = (await buyer.get(`/v1/products/${id}/versions`)).body.data[0].version;
      const { key } = await market.createSession(buyer.userId);
      const led = { cookie: `__Host-session=${key}`, "sec-fetch-site": site, "sec-fetch-mode": "navigate" };
      const browser = market.as(null);

      const { data } = (await browser.get(`/v1/products/${id}`, led)).body;
      assert.deepEqual([data.content, data.files, data.access.reason], [null, null, "none"]);
      const withEmptyKey = (await browser.get(`/v1/products/${id}?api_key=`, led)).body.data;
      assert.deepEqual([withEmptyKey.content, withEmptyKey.access.reason], [null, "none"]);
      const refused = await browser.get(`/v1/products/${id}/versions/${version}`, led);
      assert.equal(assertError(refused, 403, "UNAUTHORIZED").required, "same-origin");
      await market.service.ctx.views.flush(market.service.ctx);
      const { rows } = await market.query("select views from product_stats where product_id = $1", [
        toUuid("prod", id),
      ]);
      assert.equal(rows[0]?.views ?? 0, 0);

      const own = { ...led, "sec-fetch-site": "same-origin" };
      const before = (await browser.get(`/v1/purchases/${orderId}`, own)).body.data;
      assert.equal(before.refundable.reasonIfNot, null);
      assert.equal(await usedAt(id), null);
      const shown = (await browser.get(`/v1/products/${id}`, own)).body.data;
      assert.notEqual(await usedAt(id), null);
      assert.notEqual(shown.content, null);
    });
  }

  test("a key in the header: Sec-Fetch-Site is ignored", async () => {
    const buyer = await market.createUser();
    const id = await createProduct(author);
    await buyProduct(buyer, id);
    const { data } = (await buyer.get(`/v1/products/${id}`, { "sec-fetch-site": "cross-site" })).body;
    assert.notEqual(data.content, null);
  });
});

test("GET /products: counts no use and shows no content", async () => {
  const id = await createProduct(author);
  const buyer = await hasBuyer(id);
  const { text } = await buyer.get("/v1/products");
  assert.ok(!text.includes(haiku.content));
  await buyer.get("/v1/purchases");
  assert.equal(await usedAt(id), null);
});

test("another author's draft: the same answer as an unknown id", async () => {
  const draft = await createDraft(author);
  const withoutRequest = ({ status, body }: Reply) => [status, body.error];
  const answers = [
    draft,
    toId("prod", newUuid(new Date(0))),
    "prod_x",
    "nonsense",
    toId("ord", newUuid(new Date(0))),
  ];
  for (const id of answers) {
    const reply = await read(stranger, id);
    assertError(reply, 404, "PRODUCT_NOT_FOUND");
    assert.deepEqual(withoutRequest(reply), withoutRequest(await read(stranger, draft)), id);
    assertError(await stranger.patch(`/v1/products/${id}`, { title: "Mine" }), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.post(`/v1/products/${id}/publish`), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.post(`/v1/products/${id}/unpublish`), 404, "PRODUCT_NOT_FOUND");
    assertError(await stranger.delete(`/v1/products/${id}`), 404, "PRODUCT_NOT_FOUND");
  }
});

test("an unpublished product: visible to its buyers and author, 404 for strangers", async () => {
  const id = await createProduct(author);
  const buyer = await hasBuyer(id);
  await author.post(`/v1/products/${id}/unpublish`);
  assertError(await read(stranger, id), 404, "PRODUCT_NOT_FOUND");
  assert.equal((await detail(buyer, id)).content, haiku.content);
  assert.equal((await detail(author, id)).content, haiku.content);
});

test("a deleted product: visible to its buyers only", async () => {
  const id = await createProduct(author);
  const buyer = await hasBuyer(id);
  await author.delete(`/v1/products/${id}`);
  assertError(await read(stranger, id), 404, "PRODUCT_NOT_FOUND");
  assertError(await read(author, id), 404, "PRODUCT_NOT_FOUND");
  assert.partialDeepStrictEqual(await detail(buyer, id), { status: "deleted", content: haiku.content });
});

test("a revoked entitlement: no content, and no access to an unpublished product", async () => {
  const id = await createProduct(author);
  const buyer = await hasBuyer(id);
  await refundEverything(market, buyer);
  const afterRefund = await detail(buyer, id);
  assert.deepEqual([afterRefund.content, afterRefund.access.reason], [null, "none"]);
  await author.post(`/v1/products/${id}/unpublish`);
  assertError(await read(buyer, id), 404, "PRODUCT_NOT_FOUND");
});

test("an administrator's API key: no content and no drafts", async () => {
  const admin = await market.createUser({ role: "admin" });
  assert.equal((await detail(admin, await createProduct(author))).content, null);
  assertError(await read(admin, await createDraft(author)), 404, "PRODUCT_NOT_FOUND");
});

test("ETag: per reader; 304 until the product changes", async () => {
  const id = await createProduct(author);
  const etag = (await read(stranger, id)).headers.get("etag")!;
  const again = await read(stranger, id, { "if-none-match": etag });
  assert.deepEqual([again.status, again.text], [304, ""]);
  assert.equal(again.headers.get("cache-control"), "private");
  assert.equal(again.headers.get("vary"), "Authorization, Cookie");
  assert.notEqual((await read(author, id)).headers.get("etag"), etag);
  await buyProduct(stranger, id);
  assert.equal((await read(stranger, id, { "if-none-match": etag })).status, 200, "bought: another view");
  const buyer = await hasBuyer(id);
  const unused = (await buyer.request("HEAD", `/v1/products/${id}`)).headers.get("etag");
  const used = (await read(buyer, id)).headers.get("etag")!;
  assert.notEqual(used, unused, "the first use changes the access");
  assert.equal((await read(buyer, id, { "if-none-match": used })).status, 304);
  await author.patch(`/v1/products/${id}`, { title: "Changed" });
  const other = await market.createUser();
  assert.equal((await read(other, id, { "if-none-match": etag })).status, 200, "changed: another revision");
});
