import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { countSale, uncountSale } from "./product-stats.ts";

const HALF_LIFE_MS = 7 * DAY_MS;
/** In half-lives: a minute of waiting is a ten-thousandth. */
const TOLERANCE = 1e-6;

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  market.skipLedgerCheck();
  seller = await market.createUser();
});
after(() => market.close());

async function numbersOf(id: string) {
  const { rows } = await market.query(
    `select s.purchases, s.trending, l.purchases as "listedPurchases", l.trending as "listedTrending"
       from product_stats s join listings l on l.product_id = s.product_id where s.product_id = $1`,
    [id],
  );
  const { listedPurchases, listedTrending, ...numbers } = rows[0];
  assert.deepEqual({ purchases: listedPurchases, trending: listedTrending }, numbers, "the listing's copy");
  return numbers as { purchases: number; trending: number };
}

/** log2 of Σ 2^(t / 7 d): the score without "now". */
function expectedTrending(sales: Date[], now: Date): number {
  const sum = sales.reduce((all, at) => all + 2 ** ((at.getTime() - now.getTime()) / HALF_LIFE_MS), 0);
  return Math.log2(sum) + now.getTime() / HALF_LIFE_MS;
}

const count = (id: string, at: Date) =>
  market.service.ctx.db.transaction().execute((tx) => countSale(tx, id, at));
const uncount = (id: string, at: Date) =>
  market.service.ctx.db.transaction().execute((tx) => uncountSale(tx, id, at));

const momentWithin = (days: number) =>
  fc.integer({ min: 0, max: days * DAY_MS }).map((ms) => new Date(market.clock.now.getTime() - ms));

const check = <T>(arbitrary: fc.Arbitrary<T>, holds: (value: T) => Promise<void>) =>
  fc.assert(fc.asyncProperty(arbitrary, holds), { numRuns: runs(25) });

suite("the trending score", () => {
  test("sum of all sales, halved after 7 days, independent of their order", async () => {
    await check(fc.array(momentWithin(200), { minLength: 1, maxLength: 25 }), async (sales) => {
      const id = toUuid("prod", await createProduct(seller))!;
      for (const at of sales) await count(id, at);
      const { purchases, trending } = await numbersOf(id);
      assert.equal(purchases, sales.length);
      assert.ok(Math.abs(trending - expectedTrending(sales, market.clock.now)) < TOLERANCE, `${trending}`);
    });
  });

  test("parallel sales: independent of their order", async () => {
    const id = toUuid("prod", await createProduct(seller))!;
    const sales = Array.from({ length: 20 }, (_, at) => new Date(market.clock.now.getTime() - at * DAY_MS));
    await Promise.all(sales.map((at) => count(id, at)));
    const { purchases, trending } = await numbersOf(id);
    assert.equal(purchases, 20);
    assert.ok(Math.abs(trending - expectedTrending(sales, market.clock.now)) < TOLERANCE);
  });

  test("refunded sales: as if they had not happened", async () => {
    const history = fc.record({
      sold: fc.array(momentWithin(60), { minLength: 1, maxLength: 8 }),
      refunded: fc.array(momentWithin(60), { minLength: 1, maxLength: 8 }),
    });
    await check(history, async ({ sold, refunded }) => {
      const id = toUuid("prod", await createProduct(seller))!;
      for (const at of [...sold, ...refunded]) await count(id, at);
      for (const at of refunded) await uncount(id, at);
      const { purchases, trending } = await numbersOf(id);
      assert.equal(purchases, sold.length);
      assert.ok(Math.abs(trending - expectedTrending(sold, market.clock.now)) < TOLERANCE);
    });
  });

  test("all sales refunded: equal to a product without sales", async () => {
    const [id, unsold] = [await createProduct(seller), await createProduct(seller)];
    const [sold, never] = [toUuid("prod", id)!, toUuid("prod", unsold)!];
    const sales = [3, 90, 0].map((days) => new Date(market.clock.now.getTime() - days * DAY_MS));
    for (const at of sales) await count(sold, at);
    for (const at of sales) await uncount(sold, at);
    assert.deepEqual(await numbersOf(sold), await numbersOf(never));
  });

  test("a refunded fresh sale of an old product: loses only a negligible amount", async () => {
    const id = toUuid("prod", await createProduct(seller))!;
    const [old, fresh] = [new Date(market.clock.now.getTime() - 3_650 * DAY_MS), market.clock.now];
    for (const at of [old, fresh]) await count(id, at);
    await uncount(id, fresh);
    const { purchases, trending } = await numbersOf(id);
    assert.equal(purchases, 1);
    assert.ok(trending <= fresh.getTime() / HALF_LIFE_MS - 29, "as if it had sold half a year ago");
  });

  test("sort order: one sale of today before one a week for three weeks", async () => {
    const [hot, old] = [
      await createProduct(seller, { tags: ["warm"] }),
      await createProduct(seller, { tags: ["warm"] }),
    ];
    const buyer = await market.createUser();
    await buyProduct(buyer, old);
    market.clock.forward(3 * HALF_LIFE_MS);
    await buyProduct(await market.createUser(), hot);
    const { body } = await buyer.get("/v1/products?tag=warm&sort=trending");
    assert.deepEqual(
      body.data.map((item: { id: string }) => item.id),
      [hot, old],
    );
  });
});
