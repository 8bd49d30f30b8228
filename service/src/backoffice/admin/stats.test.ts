import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { createProviderKey, run } from "../../../test/runs.ts";
import { flushViews } from "../../catalog/search/views.ts";
import { rollUpSales } from "../../commerce/analytics/sales-sums.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
let adminId: string;
before(async () => {
  // The provider is unreachable, and tried again without a pause.
  const providers = { baseUrls: { openai: "http://127.0.0.1:1/v1" }, sleep: async () => {} };
  market = await openMarket({ providers });
  adminId = (await market.createUser({ role: "admin" })).userId;
});
after(() => market.close());

/** A new session each time, since the clock moves past a session's lifetime. */
async function readStats(query = "") {
  const admin = await market.createSession(adminId, { secondFactor: true });
  const reply = await admin.get(`/v1/admin/stats?${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

/** Each test uses its own year. */
let year = 2027;
function newDays(): string {
  market.clock.now = new Date(`${++year}-03-31T12:00:00.000Z`);
  return `startDate=${year}-03-30&endDate=${year}-04-02`;
}

test("GET /admin/stats: the current numbers", async () => {
  const before = await readStats();
  const seller = await market.createUser();
  await createProduct(seller);
  const admin = await market.createSession(adminId, { secondFactor: true });
  await admin.post(`/v1/admin/users/${toId("usr", seller.userId)}/ban`, { reason: "x" });
  const after = await readStats();
  assert.equal(after.users.total, before.users.total + 1);
  assert.equal(after.users.byRole.seller, (before.users.byRole.seller ?? 0) + 1);
  assert.equal(after.users.banned, before.users.banned + 1);
  assert.equal(after.products.byStatus.published, (before.products.byStatus.published ?? 0) + 1);
  assert.equal(after.products.total, before.products.total + 1);
  assert.deepEqual(after.orders, before.orders);
});

suite("GET /admin/stats for a range of days", () => {
  test("without activity: all zero", async () => {
    const { days, currencies, funnel, runs, providers } = await readStats("endDate=2001-06-15&period=week");
    assert.deepEqual(days, { startDate: "2001-06-08", endDate: "2001-06-15" });
    assert.deepEqual([currencies, providers], [[], []]);
    assert.deepEqual(funnel, { views: 0, orders: 0, paid: 0, viewsToOrders: 0, ordersToPaid: 0 });
    assert.deepEqual(runs, { total: 0, byStatus: {}, failures: [] });
  });

  test("money by currency of all sellers, the best first, rolled up or not", async () => {
    const days = newDays();
    const [small, large, buyer, other] = await Promise.all(
      ["Small", "Large", "Ada", "Grace"].map((name) => market.createUser({ name })),
    );
    const ofSmall = await createProduct(small!, { price: 10 });
    const ofLarge = await createProduct(large!, { price: 50 });
    const inYen = await createProduct(large!, { price: 1_000, currency: "JPY" });
    const orderId = await buyProduct(buyer!, ofSmall);
    for (const product of [ofLarge, inYen]) await buyProduct(buyer!, product);
    await rollUpSales(market.service.ctx);
    market.clock.forward(86_400_000);
    await buyProduct(other!, ofLarge);
    const admin = await market.createSession(adminId, { secondFactor: true });
    const refund = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other", amount: 5 });
    assert.equal(refund.status, 201, refund.text);
    const { currencies } = await readStats(days);
    const sums = { discounts: 0, tax: 0, disputes: 0, referralCommissions: 0 };
    const seller = ({ userId }: Client, name: string) => ({ id: toId("usr", userId), name });
    const yen = { sales: 1, grossRevenue: 1_000, platformFees: 100, netRevenue: 900 };
    assert.deepEqual(currencies, [
      {
        ...{ currency: "JPY", ...sums, refunds: 0, ...yen },
        topSellers: [{ ...seller(large!, "Large"), ...yen }],
      },
      {
        ...{ currency: "USD", ...sums, refunds: 5 },
        ...{ sales: 3, grossRevenue: 110, platformFees: 10.5, netRevenue: 94.5 },
        topSellers: [
          { ...seller(large!, "Large"), sales: 2, grossRevenue: 100, platformFees: 10, netRevenue: 90 },
          { ...seller(small!, "Small"), sales: 1, grossRevenue: 10, platformFees: 0.5, netRevenue: 4.5 },
        ],
      },
    ]);
    const lastDay = await readStats(`startDate=${year}-04-01&endDate=${year}-04-01`);
    assert.deepEqual(
      lastDay.currencies.map(({ sales, refunds }: { sales: number; refunds: number }) => [sales, refunds]),
      [[1, 5]],
    );
    const months = await readStats(`startDate=${year}-01-01&endDate=${year}-12-31`);
    assert.deepEqual(months.currencies, currencies, "whole months are read as such");
  });

  test("the funnel: views, orders, payments", async () => {
    const days = newDays();
    const [seller, ada, grace, joan] = await Promise.all([1, 2, 3, 4].map(() => market.createUser()));
    const productId = await createProduct(seller!);
    for (const viewer of [ada!, ada!, grace!, joan!]) await viewer.get(`/v1/products/${productId}`);
    await flushViews(market.service.ctx);
    await buyProduct(ada!, productId);
    const declined = { productId, paymentMethodId: "pm_test_declined" };
    assert.equal((await grace!.post("/v1/purchases", declined)).status, 402);
    const { funnel } = await readStats(days);
    assert.deepEqual(funnel, { views: 3, orders: 2, paid: 1, viewsToOrders: 0.6667, ordersToPaid: 0.5 });
  });

  test("runs: by final status and provider", async () => {
    const days = newDays();
    const author = await market.createUser();
    const productId = await createProduct(author);
    assert.equal((await run(author, { productId })).status, 200);
    assert.equal((await run(author, { productId })).status, 200);
    const apiKeyId = await createProviderKey(author);
    const failed = await run(author, { productId, apiKeyId });
    assert.equal(failed.status, 502, failed.text);
    const { runs, providers } = await readStats(days);
    assert.deepEqual(runs.byStatus, { completed: 2, failed: 1 });
    assert.equal(runs.total, 3);
    assert.deepEqual(runs.failures, [{ code: failed.body.error.code, count: 1 }]);
    const [sandbox, openai] = providers;
    assert.deepEqual([sandbox.provider, sandbox.calls, sandbox.failed, sandbox.cost], ["sandbox", 2, 0, 0]);
    assert.ok(sandbox.promptTokens > 0 && sandbox.completionTokens > 0);
    assert.deepEqual([openai.provider, openai.calls, openai.failed], ["openai", 1, 1]);
  });
});

test("GET /admin/stats: requires an administrator in a two-factor session", async () => {
  const path = "/v1/admin/stats";
  assertError(await market.as(null).get(path), 401, "INVALID_API_KEY");
  const seller = await market.createUser({ role: "seller" });
  assertError(await seller.get(path), 403, "UNAUTHORIZED");
  assertError(await (await market.createSession(seller.userId)).get(path), 403, "UNAUTHORIZED");
  assertError(await (await market.createSession(adminId)).get(path), 403, "UNAUTHORIZED");
});

for (const [query, field] of [
  ["startDate=2026-06-16&endDate=2026-06-15", "startDate"],
  ["endDate=2026-02-30", "endDate"],
  ["timezone=Europe/Berlin", "timezone"],
  ["interval=week", "interval"],
] as const)
  test(`${query}: refused, names ${field}`, async () => {
    const admin = await market.createSession(adminId, { secondFactor: true });
    assertError(await admin.get(`/v1/admin/stats?${query}`), 400, "INVALID_REQUEST", field);
  });
