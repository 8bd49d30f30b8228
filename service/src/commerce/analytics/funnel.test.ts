import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { run, runToCompletion } from "../../../test/runs.ts";
import { flushViews } from "../../catalog/search/views.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const createSeller = () => market.createUser({ role: "seller" });
const read = async (seller: Client, query = "") => {
  const reply = await seller.get(`/v1/analytics/funnel${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
};
async function refund(orderId: string, amount: number) {
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other", amount });
  assert.equal(reply.body.data?.status, "succeeded", reply.text);
}
const JUNE = "?startDate=2026-06-15&endDate=2026-06-15";

suite("GET /v1/analytics/funnel", () => {
  test("without anything: zeros", async () => {
    assert.deepEqual(await read(await createSeller()), {
      ...{ startDate: "2026-05-16", endDate: "2026-06-15", timezone: "UTC" },
      ...{ views: 0, purchases: 0, ran: 0, refunded: 0, runs: 0 },
      ...{ viewsToPurchases: 0, purchasesToRan: 0, purchasesToRefunded: 0 },
    });
  });

  test("views, purchases, their runs and refunds: each purchase counts once", async () => {
    const seller = await createSeller();
    const productId = await createProduct(seller, { price: 10 });
    const other = await createProduct(seller, { price: 1_000, currency: "JPY" });
    const buyers = await Promise.all([1, 2, 3].map(() => market.createUser()));
    for (const buyer of [...buyers, await market.createUser(), await market.createUser()])
      await buyer.get(`/v1/products/${productId}`);
    await flushViews(market.service.ctx);
    const [first = "", second = ""] = await Promise.all(buyers.map((buyer) => buyProduct(buyer, productId)));
    await buyProduct(buyers[0]!, other);
    // The author's own runs are tests.
    await runToCompletion(seller, { productId });
    for (const buyer of [buyers[0]!, buyers[0]!, buyers[1]!]) await runToCompletion(buyer, { productId });
    await refund(first, 4);
    await refund(second, 1);
    await refund(second, 2);
    assert.deepEqual(await read(seller, JUNE), {
      ...{ startDate: "2026-06-15", endDate: "2026-06-15", timezone: "UTC" },
      ...{ views: 5, purchases: 4, ran: 2, refunded: 2, runs: 3 },
      ...{ viewsToPurchases: 0.8, purchasesToRan: 0.5, purchasesToRefunded: 0.5 },
    });
    const one = await read(seller, `${JUNE}&productId=${other}`);
    assert.deepEqual([one.purchases, one.ran, one.refunded, one.runs], [1, 0, 0, 0]);
    assert.deepEqual((await read(await createSeller(), JUNE)).purchases, 0);
  });

  test("a run or refund after the days: counts for the purchase, and the run not for the days", async () => {
    const { clock } = market;
    const { now } = clock;
    const [seller, buyer] = [await createSeller(), await market.createUser()];
    const productId = await createProduct(seller, { price: 10 });
    const orderId = await buyProduct(buyer, productId);
    clock.forward(3 * 86_400_000);
    await runToCompletion(buyer, { productId });
    await refund(orderId, 10);
    const [first, later] = [await read(seller, JUNE), await read(seller, "?startDate=2026-06-16")];
    clock.now = now;
    assert.deepEqual([first.purchases, first.ran, first.refunded, first.runs], [1, 1, 1, 0]);
    assert.deepEqual([later.purchases, later.ran, later.refunded, later.runs], [0, 0, 0, 1]);
  });

  test("a run before a second purchase: counts for the first one alone", async () => {
    const { clock } = market;
    const { now } = clock;
    const [seller, buyer] = [await createSeller(), await market.createUser()];
    const productId = await createProduct(seller, { price: 10 });
    const orderId = await buyProduct(buyer, productId);
    clock.forward(1_000);
    await runToCompletion(buyer, { productId });
    await refund(orderId, 10);
    clock.forward(1_000);
    await buyProduct(buyer, productId);
    const funnel = await read(seller, JUNE);
    clock.now = now;
    assert.deepEqual([funnel.purchases, funnel.ran, funnel.refunded], [2, 1, 1]);
  });

  test("a run without the right to run counts nowhere", async () => {
    const [seller, visitor] = [await createSeller(), await market.createUser()];
    const productId = await createProduct(seller);
    assert.notEqual((await run(visitor, { productId })).status, 200);
    assert.equal((await read(seller, JUNE)).runs, 0);
  });

  test("another seller's product, wrong days and unknown parameters: refused", async () => {
    const seller = await createSeller();
    const foreign = await createProduct(await createSeller());
    for (const [query, status] of [
      [`productId=${foreign}`, 404],
      ["startDate=2026-06-02&endDate=2026-06-01", 400],
      ["timezone=Nowhere", 400],
      ["currency=USD", 400],
      ["interval=day", 400],
    ] as const)
      assert.equal((await seller.get(`/v1/analytics/funnel?${query}`)).status, status, query);
  });
});
