import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, openMarket } from "../../../test/market.ts";
import { toDecimal } from "../../core/money/amount.ts";

const RATES = new Map([
  ["DE", 1_900],
  ["FR", 550],
]);
const quote = (caller: Client, query: string) => caller.get(`/v1/sales/quote?${query}`);

for (const taxInclusive of [false, true])
  test(`GET /sales/quote, tax ${taxInclusive ? "included" : "added"}: a sale splits as quoted`, async () => {
    const market = await openMarket({
      config: { currencies: ["USD", "JPY"], taxRates: RATES, taxInclusive },
    });
    const seller = await market.createUser();
    const referrer = await market.createUser();
    const { code } = (await referrer.get("/v1/account/referral")).body.data;
    const cases = fc.record({
      currency: fc.constantFrom("USD", "JPY"),
      country: fc.constantFrom("DE", "FR", "US"),
      minor: fc.integer({ min: 50, max: 99_999_999 }),
      commission: fc.integer({ min: 0, max: 10_000 }),
      isReferred: fc.boolean(),
    });
    const property = fc.asyncProperty(cases, async ({ currency, country, minor, commission, isReferred }) => {
      const price = toDecimal(minor, currency);
      const query = `price=${price}&currency=${currency}&countries=${country}&commissionBasisPoints=${commission}`;
      const quoted = await quote(seller, query);
      assert.equal(quoted.status, 200, quoted.text);
      const [row] = quoted.body.data.countries;
      const productId = await createProduct(seller, { price, currency, commissionBasisPoints: commission });
      const buyer = await market.createUser();
      const session = await market.createSession(buyer.userId);
      await session.patch("/v1/account", { country });
      const bought = await buyer.post("/v1/purchases", {
        productId,
        ...(isReferred && { referralCode: code }),
      });
      assert.equal(bought.status, 201, bought.text);
      const [sale] = (await seller.get(`/v1/sales?productId=${productId}`)).body.data;
      const { amount, tax, fee, earnings } = sale;
      const parts = isReferred ? row.referred.earnings : row.earnings;
      assert.deepEqual([row.total, row.tax, row.fee, parts], [amount, tax, fee, earnings]);
      assert.equal(sale.commission, isReferred ? row.referred.commission : 0);
    });
    await fc.assert(property, { numRuns: runs(30, 10) });
    await market.close();
  });

test("GET /sales/quote: countries in order, the account's commission by default", async () => {
  const market = await openMarket({ config: { taxRates: RATES } });
  const seller = await market.createUser();
  const { data } = (await quote(seller, "price=10&countries=DE,US,DE")).body;
  assert.deepEqual(
    [data.currency, data.decimals, data.feeBasisPoints, data.commissionBasisPoints],
    ["USD", 2, 1_000, 1_000],
  );
  assert.deepEqual(data.countries, [
    {
      country: "DE",
      taxRate: { percent: 19, inclusive: false, country: "DE" },
      ...{ total: 11.9, tax: 1.9, fee: 1, earnings: 9 },
      referred: { commission: 1, earnings: 8 },
    },
    {
      country: "US",
      taxRate: null,
      ...{ total: 10, tax: 0, fee: 1, earnings: 9 },
      referred: { commission: 1, earnings: 8 },
    },
  ]);
  const fieldOf = async (query: string) =>
    assertError(await quote(seller, query), 400, "INVALID_REQUEST").field;
  assert.equal(await fieldOf("price=10&countries=XX"), "countries");
  assert.equal(await fieldOf("price=10.001&countries=DE"), "price");
  assert.equal(await fieldOf("price=10&currency=CHF&countries=DE"), "currency");
  assert.equal(await fieldOf("price=0&countries=DE"), "price");
  await market.close();
});
