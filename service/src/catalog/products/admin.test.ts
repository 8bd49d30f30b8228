import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  admin = await market.createSession((await market.createUser({ role: "admin" })).userId, {
    secondFactor: true,
  });
});
after(() => market.close());

const auditActionsFor = async (productId: string) =>
  (
    await market.query(
      "select actor_id as actor, action, details, ip from audit_log where target_id = $1 order by id",
      [productId],
    )
  ).rows;
const readAs = (client: Client, productId: string) => client.get(`/v1/products/${productId}`);

suite("an administrator with two factors", () => {
  test("reads every product in every state, with content", async () => {
    const draft = await createDraft(seller);
    const { data } = (await readAs(admin, draft)).body;
    assert.deepEqual([data.status, data.access.reason], ["draft", "none"]);
    assert.match(data.content, /haiku/);
    await seller.delete(`/v1/products/${draft}`);
    assert.equal((await readAs(admin, draft)).body.data.status, "deleted");
  });

  test("changes, publishes, unpublishes and deletes: an email to the author and an audit entry", async () => {
    const id = await createDraft(seller);
    const path = `/v1/products/${id}`;
    const replies = [
      await admin.patch(path, { title: "A tamer title" }),
      await admin.post(`${path}/publish`),
      await admin.post(`${path}/unpublish`),
      await admin.delete(path),
    ];
    for (const reply of replies) assert.equal(reply.status, 200, reply.text);
    const types = (await seller.get("/v1/events")).body.data.map(({ type }: { type: string }) => type);
    assert.deepEqual(types.slice(0, 4), [
      "product.unpublished",
      "product.unpublished",
      "product.published",
      "product.updated",
    ]);
    const by = { actor: admin.userId, ip: "127.0.0.1" };
    const change = { title: { old: "Haiku about anything", new: "A tamer title" } };
    assert.deepEqual(await auditActionsFor(id), [
      { ...by, action: "product.updated", details: { changes: change } },
      { ...by, action: "product.published", details: { from: "draft", to: "published" } },
      { ...by, action: "product.unpublished", details: { from: "published", to: "unpublished" } },
      { ...by, action: "product.deleted", details: { from: "unpublished", to: "deleted" } },
    ]);
  });

  test("If-Match with the administrator's own ETag: applies the change", async () => {
    const path = `/v1/products/${await createProduct(seller)}`;
    const etag = (await admin.get(path)).headers.get("etag")!;
    const first = await admin.patch(path, { price: 5 }, { "if-match": etag });
    assert.equal(first.status, 200, first.text);
    assertError(await admin.patch(path, { price: 6 }, { "if-match": etag }), 412, "PRECONDITION_FAILED");
    const next = { "if-match": first.headers.get("etag")! };
    assert.equal((await admin.patch(path, { price: 6 }, next)).status, 200);
    assert.equal((await admin.get(path)).headers.get("etag"), (await admin.get(path)).headers.get("etag"));
  });

  test("an administrator who bought the product: the same ETag works for a change", async () => {
    const productId = await createProduct(seller);
    const buyer = await market.createUser({ role: "admin" });
    await buyProduct(buyer, productId);
    const both = await market.createSession(buyer.userId, { secondFactor: true });
    await readAs(both, productId);
    const etag = (await readAs(both, productId)).headers.get("etag")!;
    const reply = await both.patch(`/v1/products/${productId}`, { price: 7 }, { "if-match": etag });
    assert.equal(reply.status, 200, reply.text);
  });

  test("the rules of states and of the checklist apply", async () => {
    const published = await createProduct(seller);
    assertError(await admin.post(`/v1/products/${published}/publish`), 409, "INVALID_STATE");
    const bare = await createDraft(seller, { description: "" });
    assertError(await admin.post(`/v1/products/${bare}/publish`), 422, "VALIDATION_ERROR", "description");
    assert.deepEqual(await auditActionsFor(bare), []);
  });

  test("own products: moves are audited, changes are not", async () => {
    const own = await market.createUser({ role: "admin" });
    const productId = await createProduct(own);
    await own.patch(`/v1/products/${productId}`, { price: 9 });
    const details = { from: "draft", to: "published" };
    assert.deepEqual(await auditActionsFor(productId), [
      { actor: own.userId, action: "product.published", details, ip: "127.0.0.1" },
    ]);
  });

  test("run and download: refused without a purchase", async () => {
    const run = { productId: await createProduct(seller), apiKeyId: "sandbox", variables: { topic: "rain" } };
    const details = assertError(await admin.post("/v1/ai/execute", run), 403, "UNAUTHORIZED");
    assert.equal(details.reason, "purchase_required");
  });
});

suite("an administrator without admin rights", () => {
  for (const [way, enter] of [
    ["without two factors", async (userId: string) => market.createSession(userId)],
    ["with a key", async (_userId: string, key: Client) => key],
  ] as [string, (userId: string, key: Client) => Promise<Client>][]) {
    test(`${way}: an unpublished product is 404, a change 403, content null`, async () => {
      const key = await market.createUser({ role: "admin" });
      const client = await enter(key.userId, key);
      const [draft, published] = [await createDraft(seller), await createProduct(seller)];
      for (const reply of [await readAs(client, draft), await client.delete(`/v1/products/${draft}`)])
        assertError(reply, 404, "PRODUCT_NOT_FOUND");
      for (const reply of [
        await client.patch(`/v1/products/${published}`, { price: 1 }),
        await client.post(`/v1/products/${published}/unpublish`),
        await client.delete(`/v1/products/${published}`),
      ])
        assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "author");
      assert.equal((await readAs(client, published)).body.data.content, null);
    });
  }

  test("the role removed: no 304 that hides the missing content", async () => {
    const { userId } = await market.createUser({ role: "admin" });
    const session = await market.createSession(userId, { secondFactor: true });
    const published = await createProduct(seller);
    const etag = (await readAs(session, published)).headers.get("etag")!;
    await market.query("update users set role = 'user' where id = $1", [userId]);
    const reply = await session.get(`/v1/products/${published}`, { "if-none-match": etag });
    assert.deepEqual([reply.status, reply.body.data.content], [200, null]);
  });
});
