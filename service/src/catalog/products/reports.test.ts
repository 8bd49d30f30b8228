import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let reader: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller" });
  reader = await market.createUser({ name: "Reader" });
  const { userId } = await market.createUser({ role: "admin" });
  admin = await market.createSession(userId, { secondFactor: true });
});
after(() => market.close());

const report = (who: Client, id: string, body: object = { reasonCode: "spam" }) =>
  who.post(`/v1/products/${id}/report`, body);

async function reportedProducts() {
  const reply = await admin.get("/v1/admin/products?reported=true");
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

suite("POST /v1/products/{id}/report", () => {
  test("moderators see it with reporter and reason; the seller does not", async () => {
    const id = await createProduct(seller);
    const comment = "The text is from my book.";
    const reply = await report(reader, id, { reasonCode: "infringing", comment });
    assert.deepEqual([reply.status, reply.body.data], [201, { id, reported: true }]);
    const [product] = await reportedProducts();
    assert.deepEqual([product.id, product.openReports], [id, 1]);
    const [{ reporter, reasonCode, comment: shown }] = product.reports;
    assert.deepEqual([reporter.name, reasonCode, shown], ["Reader", "infringing", comment]);
    for (const path of [`/v1/products/${id}`, `/v1/products/${id}/history`, "/v1/events"])
      assert.ok(!(await seller.get(path)).text.includes("my book"));
    assertError(await report(reader, id), 409, "CONFLICT");
    await report(await market.createUser(), id);
    assert.equal((await reportedProducts())[0].openReports, 2);
  });

  test("dismissed: no longer listed, and can be reported again", async () => {
    const id = await createProduct(seller);
    await report(reader, id);
    const dismissed = await admin.post(`/v1/admin/products/${id}/dismiss-reports`);
    assert.deepEqual([dismissed.status, dismissed.body.data], [200, { id, openReports: 0 }]);
    const idsOf = async () => (await reportedProducts()).map((product: { id: string }) => product.id);
    assert.ok(!(await idsOf()).includes(id));
    assertError(await admin.post(`/v1/admin/products/${id}/dismiss-reports`), 409, "INVALID_STATE");
    assert.equal((await reader.get(`/v1/products/${id}`)).body.data.status, "published");
    assert.equal((await report(reader, id)).status, 201);
    assert.ok((await idsOf()).includes(id));
    const { data } = (await admin.get("/v1/admin/audit?action=product.reports_dismissed")).body;
    assert.equal(data[0].target.id, id);
  });

  test("a suspension resolves the reports", async () => {
    const id = await createProduct(seller);
    await report(reader, id);
    const suspended = await admin.post(`/v1/admin/products/${id}/suspend`, { reasonCode: "spam" });
    assert.equal(suspended.status, 200, suspended.text);
    const [product] = (await admin.get(`/v1/admin/products?search=${id}`)).body.data;
    assert.deepEqual([product.openReports, product.reports], [0, []]);
  });

  test("what cannot be reported, and how not", async () => {
    const id = await createProduct(seller);
    assertError(await report(seller, id), 422, "VALIDATION_ERROR", "productId");
    assertError(await report(reader, await createDraft(seller)), 404, "PRODUCT_NOT_FOUND");
    assertError(await report(reader, id, { reasonCode: "other" }), 400, "INVALID_REQUEST", "comment");
    assertError(await report(reader, id, { reasonCode: "ugly" }), 400, "INVALID_REQUEST", "reasonCode");
    assertError(await reader.post(`/v1/admin/products/${id}/dismiss-reports`), 403, "UNAUTHORIZED");
  });

  test("ten reports of one user at once: one", async () => {
    const id = await createProduct(seller);
    const replies = await Promise.all(Array.from({ length: 10 }, () => report(reader, id)));
    assert.equal(replies.filter(({ status }) => status === 201).length, 1);
  });
});
