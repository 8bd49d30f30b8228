import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";

const RATES = new Map([
  ["DE", 1_900],
  ["FR", 550],
  ["JP", 1_000],
]);

const buy = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases", { productId, ...input });

async function createBuyer(market: Market, country: string | null): Promise<Client> {
  const buyer = await market.createUser();
  const session = await market.createSession(buyer.userId);
  assert.equal((await session.patch("/v1/account", { country })).status, 200);
  return buyer;
}

async function buyFrom(market: Market, country: string | null, productId: string, input: object = {}) {
  const buyer = await createBuyer(market, country);
  const reply = await buy(buyer, productId, input);
  assert.equal(reply.status, 201, reply.text);
  return (await buyer.get(`/v1/purchases/${reply.body.data.orderId}`)).body.data;
}

suite("without rates", () => {
  let market: Market;
  before(async () => {
    market = await openMarket();
  });
  after(() => market.close());

  test("no tax, and the order stores the buyer's country", async () => {
    const productId = await createProduct(await market.createUser(), { price: 10 });
    const order = await buyFrom(market, "DE", productId);
    assert.deepEqual([order.lines.tax, order.lines.total, order.taxRate], [0, 10, null]);
    const { rows } = await market.query("select tax_country from orders where id = $1", [
      toUuid("ord", order.orderId),
    ]);
    assert.equal(rows[0].tax_country, "DE");
  });
});

suite("with rates that are added to the price", () => {
  let market: Market;
  let seller: Client;
  before(async () => {
    market = await openMarket({ config: { taxRates: RATES } });
    seller = await market.createUser({ role: "seller" });
  });
  after(() => market.close());

  test("the buyer's country decides; a country without a rate, or no country, pays no tax", async () => {
    const productId = await createProduct(seller, { price: 19.99 });
    const taxed = async (country: string | null) => {
      const { lines, amount, taxRate } = await buyFrom(market, country, productId);
      assert.equal(lines.total, amount);
      return [lines.tax, lines.total, taxRate];
    };
    const rate = (percent: number, country: string) => ({ percent, inclusive: false, country });
    assert.deepEqual(await taxed("DE"), [3.8, 23.79, rate(19, "DE")]);
    assert.deepEqual(await taxed("FR"), [1.1, 21.09, rate(5.5, "FR")]);
    assert.deepEqual(await taxed("US"), [0, 19.99, null]);
    assert.deepEqual(await taxed(null), [0, 19.99, null]);
  });

  test("fee and earnings are shares of the net price, without the tax", async () => {
    const productId = await createProduct(seller, { price: 19.99 });
    const { orderId } = await buyFrom(market, "DE", productId);
    const { rows } = await market.query(
      `select account, amount_minor from ledger_entries
        where order_id = $1 and account not in ('provider_clearing', 'processor_fees') order by account`,
      [toUuid("ord", orderId)],
    );
    assert.deepEqual(
      rows.map((row) => [row.account, row.amount_minor]),
      [
        ["platform_revenue", 200],
        ["seller", 1_799],
        ["tax_payable", 380],
      ],
    );
  });

  test("the tax applies after the discount, and expectedPrice excludes it", async () => {
    const productId = await createProduct(seller, { price: 19.99 });
    await seller.post("/v1/discount-codes", { code: "HALF", percentOff: 50 });
    const input = { discountCode: "HALF", expectedPrice: 9.99 };
    const { lines } = await buyFrom(market, "DE", productId, input);
    assert.deepEqual(lines, { subtotal: 19.99, discount: 10, tax: 1.9, total: 11.89 });
    const reply = await buy(await createBuyer(market, "DE"), productId, { expectedPrice: 23.79 });
    assert.equal(assertError(reply, 409, "PRICE_CHANGED").price, 19.99);
  });

  test("expectedTotal includes the tax: a rate that changed since the quote is refused", async () => {
    const productId = await createProduct(seller, { price: 19.99 });
    const buyer = await createBuyer(market, "DE");
    const { lines } = (await buyer.post("/v1/purchases/quote", { productId })).body.data;
    assert.equal(lines.total, 23.79);
    const session = await market.createSession(buyer.userId);
    await session.patch("/v1/account", { country: "FR" });
    const refused = await buy(buyer, productId, { expectedPrice: 19.99, expectedTotal: lines.total });
    const { total, currency } = assertError(refused, 409, "PRICE_CHANGED");
    assert.deepEqual([total, currency], [21.09, "USD"]);
    const bought = await buy(buyer, productId, { expectedTotal: total });
    assert.equal(bought.body.data.amount, 21.09);
  });

  test("a free copy: no tax", async () => {
    const productId = await createProduct(seller, { price: 19.99 });
    await seller.post("/v1/discount-codes", { code: "FREE", percentOff: 100 });
    const order = await buyFrom(market, "DE", productId, { discountCode: "FREE" });
    assert.deepEqual(order.lines, { subtotal: 19.99, discount: 19.99, tax: 0, total: 0 });
  });

  test("a receipt: shows the tax and its rate", async () => {
    const { receipt } = await buyFrom(
      market,
      "JP",
      await createProduct(seller, { price: 105, currency: "JPY" }),
    );
    const page = await (await fetch(receipt.url)).text();
    assert.match(page, /<dt>Tax \(JP, 10 %\)<\/dt><dd>11 JPY.*<dt>Total<\/dt><dd>116 JPY/s);
  });

  test("a buyer who changes the country while an order is open: gets another order", async () => {
    const productId = await createProduct(seller, { price: 10 });
    const buyer = await createBuyer(market, "DE");
    const input = { paymentMethodId: "pm_test_requires_action" };
    const before = (await buy(buyer, productId, input)).body.data;
    await (await market.createSession(buyer.userId)).patch("/v1/account", { country: "US" });
    const after = (await buy(buyer, productId, input)).body.data;
    assert.notEqual(after.orderId, before.orderId);
    assert.deepEqual([before.amount, after.amount], [11.9, 10]);
  });
});

suite("with rates that the price includes", () => {
  let market: Market;
  before(async () => {
    market = await openMarket({ config: { taxRates: RATES, taxInclusive: true } });
  });
  after(() => market.close());

  test("a buyer who changes the country while an order is open: gets another order of the same total, with the tax of the new country", async () => {
    const productId = await createProduct(await market.createUser(), { price: 10 });
    const buyer = await createBuyer(market, "DE");
    const input = { paymentMethodId: "pm_test_requires_action" };
    const before = (await buy(buyer, productId, input)).body.data;
    await (await market.createSession(buyer.userId)).patch("/v1/account", { country: "FR" });
    const after = (await buy(buyer, productId, input)).body.data;
    const rateOf = async ({ orderId }: { orderId: string }) =>
      (await buyer.get(`/v1/purchases/${orderId}`)).body.data.taxRate.country;
    assert.deepEqual([await rateOf(before), await rateOf(after)], ["DE", "FR"]);
    assert.deepEqual([before.amount, after.amount], [10, 10]);
  });

  test("the buyer pays the price, which includes the tax", async () => {
    const productId = await createProduct(await market.createUser(), { price: 11.9 });
    const order = await buyFrom(market, "DE", productId, { expectedPrice: 11.9 });
    assert.deepEqual(order.lines, { subtotal: 11.9, discount: 0, tax: 1.9, total: 11.9 });
    assert.deepEqual(order.taxRate, { percent: 19, inclusive: true, country: "DE" });
    const page = await (await fetch(order.receipt.url)).text();
    assert.match(page, /<dt>Total<\/dt><dd>11\.90 USD.*<dt>Tax included \(DE, 19 %\)<\/dt><dd>1\.90 USD/s);
  });
});
