import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
before(async () => {
  market = await openMarket({ config: { taxRates: new Map([["DE", 1_900]]) } });
});
after(() => market.close());

const createSeller = () => market.createUser({ role: "seller" });
const read = async (seller: Client, query: string) => {
  const reply = await seller.get(`/v1/analytics/entries?${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
};
async function refund(orderId: string, amount: number) {
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other", amount });
  assert.equal(reply.body.data?.status, "succeeded", reply.text);
}

suite("GET /v1/analytics/entries", () => {
  test("a sale and its refund: newest first, with the sum of all pages", async () => {
    const [seller, german] = [await createSeller(), await market.createUser()];
    await (await market.createSession(german.userId)).patch("/v1/account", { country: "DE" });
    const productId = await createProduct(seller, { price: 20, title: "As it was sold" });
    const orderId = await buyProduct(german, productId);
    market.clock.forward(1_000);
    await refund(orderId, 11.9);
    const { data, meta } = await read(seller, "period=day");
    const product = { id: productId, title: "As it was sold" };
    const [refunded, sold] = data;
    const common = { account: "seller", currency: "USD", orderId, product };
    assert.partialDeepStrictEqual(refunded, { ...common, kind: "refund", amount: -9 });
    assert.partialDeepStrictEqual(sold, { ...common, kind: "sale", amount: 18 });
    assert.deepEqual([meta.total, meta.sum, data.length], [2, 9, 2]);
    const sums = ["grossRevenue", "refunds", "tax", "platformFees", "disputes"];
    const found = await Promise.all(sums.map((figure) => read(seller, `period=day&figure=${figure}`)));
    assert.deepEqual(
      found.map(({ meta: { total, sum } }) => [total, sum]),
      [
        [2, 20],
        [2, 10],
        [2, 1.9],
        [2, 1],
        [0, 0],
      ],
    );
    const second = await read(seller, "period=day&limit=1&page=2");
    assert.deepEqual([second.data, second.meta.sum, second.meta.total], [[sold], 9, 2]);
    const { timestamp: _, request_id: __, ...beyond } = (await read(seller, "period=day&page=9")).meta;
    assert.deepEqual(beyond, { page: 9, limit: 20, total: 2, sum: 9 });
  });

  test("a free copy has no entry; another product, currency and seller have their own", async () => {
    const seller = await createSeller();
    const [dollars, yen] = [
      await createProduct(seller, { price: 10 }),
      await createProduct(seller, { price: 1_000, currency: "JPY" }),
    ];
    assert.equal((await seller.post("/v1/discount-codes", { code: "FREE", percentOff: 100 })).status, 201);
    const free = { productId: dollars, discountCode: "FREE" };
    assert.equal((await (await market.createUser()).post("/v1/purchases", free)).status, 201);
    for (const productId of [dollars, dollars, yen]) await buyProduct(await market.createUser(), productId);
    const sumOf = async (query: string, of = seller) => (await read(of, query)).meta.sum;
    assert.equal(await sumOf(""), 18);
    assert.equal(await sumOf("currency=JPY"), 900);
    assert.equal(await sumOf(`productId=${dollars}`), 18);
    assert.equal(await sumOf(`productId=${yen}`), 0);
    assert.equal(await sumOf("", await createSeller()), 0);
    const { status } = await (await createSeller()).get(`/v1/analytics/entries?productId=${yen}`);
    assert.equal(status, 404);
  });

  test("an unknown sum or parameter: 400", async () => {
    const seller = await createSeller();
    for (const query of ["figure=sales", "interval=day", "startDate=2026-02-30", "limit=101"])
      assert.equal((await seller.get(`/v1/analytics/entries?${query}`)).status, 400, query);
  });
});
