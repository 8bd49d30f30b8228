import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { toDecimal } from "../../core/money/amount.ts";

const RATES = new Map([
  ["DE", 1_900],
  ["FR", 550],
  ["HU", 2_700],
]);
const CURRENCIES = { USD: 2, EUR: 2, JPY: 0, KWD: 3, HUF: 2 } as const;
type Currency = keyof typeof CURRENCIES;
const COUNTRIES = ["DE", "FR", "HU", "US", null];

const quote = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases/quote", { productId, ...input });
const buy = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases", { productId, ...input });

async function createBuyer(market: Market, country: string | null): Promise<Client> {
  const buyer = await market.createUser();
  const session = await market.createSession(buyer.userId);
  assert.equal((await session.patch("/v1/account", { country })).status, 200);
  return buyer;
}

async function createCode(seller: Client, input: object): Promise<{ id: string; code: string }> {
  const reply = await seller.post("/v1/discount-codes", input);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const openTaxedMarket = (taxInclusive: boolean) =>
  openMarket({ config: { currencies: Object.keys(CURRENCIES), taxRates: RATES, taxInclusive } });

for (const taxInclusive of [false, true]) {
  test(`any price, currency, country and code, tax ${taxInclusive ? "included" : "added"}: the purchase charges what the quote says`, async () => {
    const market = await openTaxedMarket(taxInclusive);
    const seller = await market.createUser({ role: "seller" });
    const codes: (string | undefined)[] = [undefined];
    for (const percentOff of [10, 33.33, 99.99, 100])
      codes.push((await createCode(seller, { code: `OFF-${codes.length}`, percentOff })).code);
    const cases = fc.record({
      currency: fc.constantFrom(...(Object.keys(CURRENCIES) as Currency[])),
      country: fc.constantFrom(...COUNTRIES),
      minor: fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 99_999_999 })),
      discountCode: fc.constantFrom(...codes),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ currency, country, minor, discountCode }) => {
        const price = toDecimal(minor, currency);
        const id = await createProduct(seller, { price, currency });
        const buyer = await createBuyer(market, country);
        const quoted = await quote(buyer, id, { discountCode });
        assert.equal(quoted.status, 200, quoted.text);
        const { lines, net, taxRate, decimals, expectedPrice, ...others } = quoted.body.data;
        assert.equal(decimals, CURRENCIES[currency]);
        assert.equal(lines.subtotal, price);
        assert.equal(others.discountCode, discountCode ?? null);
        const bought = await buy(buyer, id, { discountCode, expectedPrice });
        assert.equal(bought.status, 201, bought.text);
        assert.equal(bought.body.data.amount, lines.total);
        const order = (await buyer.get(`/v1/purchases/${bought.body.data.orderId}`)).body.data;
        assert.deepEqual({ lines, taxRate }, { lines: order.lines, taxRate: order.taxRate });
        const unit = 10 ** CURRENCIES[currency];
        assert.equal(Math.round(net * unit), Math.round(lines.total * unit) - Math.round(lines.tax * unit));
      }),
      {
        numRuns: runs(25, 10),
        examples: [
          [{ currency: "JPY", country: "DE", minor: 999, discountCode: codes[2] }],
          [{ currency: "HUF", country: "HU", minor: 199_990, discountCode: codes[2] }],
          [{ currency: "KWD", country: "FR", minor: 4_995, discountCode: undefined }],
          [{ currency: "USD", country: "DE", minor: 499, discountCode: codes[4] }],
          [{ currency: "USD", country: "DE", minor: 499, discountCode: codes[3] }],
        ],
      },
    );
    await market.close();
  });
}

/** Everything but the id of the request. */
function assertSameRefusal(quoted: Reply, bought: Reply): void {
  const [one, other] = [quoted, bought].map(({ status, body }) => {
    const { requestId: _, ...error } = body.error;
    return { status, error };
  });
  assert.ok(quoted.status >= 400, quoted.text);
  assert.deepEqual(one, other);
}

suite("POST /purchases/quote", () => {
  let market: Market;
  let seller: Client;
  before(async () => {
    market = await openTaxedMarket(false);
    seller = await market.createUser({ name: "Seller", role: "seller" });
  });
  after(() => market.close());

  test("19.99 USD, half off, 19 % added tax: every field", async () => {
    const productId = await createProduct(seller, { price: 19.99 });
    const { code } = await createCode(seller, { code: "HALF", percentOff: 50 });
    const friend = await market.createUser();
    const referral = (await friend.get("/v1/account/referral")).body.data.code;
    const buyer = await createBuyer(market, "DE");
    const reply = await quote(buyer, productId, {
      discountCode: ` ${code.toLowerCase()}`,
      referralCode: referral,
    });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(reply.body.data, {
      productId,
      currency: "USD",
      decimals: 2,
      lines: { subtotal: 19.99, discount: 10, tax: 1.9, total: 11.89 },
      net: 9.99,
      taxRate: { percent: 19, inclusive: false, country: "DE" },
      discountCode: "HALF",
      referralCode: referral,
      expectedPrice: 9.99,
      refundDays: 14,
    });
  });

  test("follows the country of the account and the price of the product", async () => {
    const productId = await createProduct(seller, { price: 10 });
    const buyer = await createBuyer(market, null);
    const total = async () => (await quote(buyer, productId)).body.data.lines.total;
    assert.equal(await total(), 10);
    const session = await market.createSession(buyer.userId);
    await session.patch("/v1/account", { country: "HU" });
    assert.equal(await total(), 12.7);
    await seller.patch(`/v1/products/${productId}`, { price: 20 });
    assert.equal(await total(), 25.4);
  });

  test("needs no payment method and takes none", async () => {
    const productId = await createProduct(seller);
    const buyer = await market.createUser();
    for (const field of ["paymentMethodId", "expectedPrice", "country"])
      assertError(await quote(buyer, productId, { [field]: "DE" }), 400, "INVALID_REQUEST", field);
  });

  test("what cannot be bought: the refusal of the purchase", async () => {
    const buyer = await market.createUser();
    const withdrawn = await createProduct(seller);
    await seller.post(`/v1/products/${withdrawn}/unpublish`);
    const owned = await createProduct(seller);
    await buyProduct(buyer, owned);
    for (const [who, productId] of [
      [buyer, await createDraft(seller)],
      [buyer, "nonsense"],
      [buyer, withdrawn],
      [buyer, owned],
      [seller, owned],
    ] as const)
      assertSameRefusal(await quote(who, productId), await buy(who, productId));
  });

  test("a code that cannot be used: the refusal of the purchase", async () => {
    const buyer = await market.createUser();
    const [productId, other] = [await createProduct(seller), await createProduct(seller)];
    const code = async (name: string, limits: object) =>
      (await createCode(seller, { code: name, percentOff: 20, ...limits })).code;
    const yesterday = new Date(market.clock.now.getTime() - 86_400_000).toISOString();
    const tomorrow = new Date(market.clock.now.getTime() + 86_400_000).toISOString();
    const once = await code("ONCE", { maxRedemptions: 1 });
    const each = await code("EACH", { maxPerBuyer: 1 });
    for (const [who, used] of [
      [await market.createUser(), once],
      [buyer, each],
    ] as const)
      assert.equal((await buy(who, await createProduct(seller), { discountCode: used })).status, 201);
    const { code: own } = (await buyer.get("/v1/account/referral")).body.data;
    for (const terms of [
      { discountCode: "NOBODYS" },
      { discountCode: await code("SOON", { startsAt: tomorrow }) },
      { discountCode: await code("OVER", { startsAt: null, endsAt: tomorrow }), at: tomorrow },
      { discountCode: await code("OTHERS", { productId: other }) },
      { discountCode: await code("EUROS", { percentOff: undefined, amountOff: 1, currency: "EUR" }) },
      { discountCode: once },
      { discountCode: each },
      { referralCode: "NOBODYS" },
      { referralCode: own },
    ]) {
      const { at, ...codes } = { at: yesterday, ...terms };
      if (at === tomorrow) market.clock.forward(2 * 86_400_000);
      assertSameRefusal(await quote(buyer, productId, codes), await buy(buyer, productId, codes));
    }
  });

  test("buys nothing, redeems nothing, and knows the order that waits with the code", async () => {
    const productId = await createProduct(seller, { price: 10 });
    const { id, code } = await createCode(seller, {
      code: "LAST",
      percentOff: 50,
      maxRedemptions: 1,
      maxPerBuyer: 1,
    });
    const [buyer, other] = [await market.createUser(), await market.createUser()];
    const terms = { discountCode: code };
    const redemptions = async () => (await seller.get(`/v1/discount-codes/${id}`)).body.data.redemptions;
    for (const who of [buyer, other, buyer]) assert.equal((await quote(who, productId, terms)).status, 200);
    assert.equal(await redemptions(), 0);
    assert.equal((await buyer.get("/v1/purchases")).body.meta.total, 0);
    const waiting = { ...terms, paymentMethodId: "pm_test_requires_action" };
    assert.equal((await buy(buyer, productId, waiting)).status, 202);
    assert.equal((await quote(buyer, productId, terms)).body.data.lines.total, 5);
    assertSameRefusal(await quote(other, productId, terms), await buy(other, productId, terms));
    const elsewhere = await createProduct(seller);
    assertSameRefusal(await quote(buyer, elsewhere, terms), await buy(buyer, elsewhere, terms));
    assert.equal((await buy(buyer, productId, terms)).body.data.amount, 5);
    assert.equal(await redemptions(), 1);
  });
});
