import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct, type ProductInput } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { flushViews } from "../../catalog/search/views.ts";
import { toId } from "../../core/ids.ts";
import { rollUpSales } from "./sales-sums.ts";

let market: Market;
before(async () => {
  market = await openMarket({ config: { taxRates: new Map([["DE", 1_900]]), taxInclusive: true } });
});
after(() => market.close());

const createSeller = () => market.createUser({ role: "seller" });
const read = async (seller: Client, path: string) => {
  const reply = await seller.get(`/v1/analytics/${path}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
};
/** Runs `work` with the clock set to `moment`. */
async function at<T>(moment: string, work: () => Promise<T>): Promise<T> {
  const { now } = market.clock;
  market.clock.now = new Date(moment);
  try {
    return await work();
  } finally {
    market.clock.now = now;
  }
}
const sellAt = (moment: string, seller: Client, input: ProductInput = {}) =>
  at(moment, async () => buyProduct(await market.createUser(), await createProduct(seller, input)));
async function refund(orderId: string, amount?: number) {
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, {
    reason: "other",
    ...(amount && { amount }),
  });
  assert.equal(reply.body.data?.status, "succeeded", reply.text);
}
const viewProduct = async (productId: string, times: number) => {
  for (let time = 0; time < times; time++) await (await market.createUser()).get(`/v1/products/${productId}`);
  await flushViews(market.service.ctx);
};
const total = (rows: Record<string, number>[], name: string) =>
  Math.round(rows.reduce((sum, row) => sum + row[name]!, 0) * 100) / 100;

suite("GET /v1/analytics/products", () => {
  test("without parameters and sales: returns zeros for the last 30 days", async () => {
    const data = await read(await createSeller(), "products");
    assert.deepEqual(
      [data.currency, data.startDate, data.endDate, data.timezone],
      ["USD", "2026-05-16", "2026-06-15", "UTC"],
    );
    assert.deepEqual(data.summary, {
      totalRevenue: 0,
      totalSales: 0,
      avgOrderValue: 0,
      refunds: 0,
      conversionRate: 0,
    });
    assert.deepEqual([data.timeline.length, data.topProducts, data.otherCurrencies], [31, [], []]);
    assert.deepEqual(data.timeline[0], { date: "2026-05-16", revenue: 0, sales: 0, views: 0 });
    assert.equal(data.timeline[30].date, "2026-06-15");
  });

  test("sales on several days: count on their days; later refunds count separately", async () => {
    const seller = await createSeller();
    await sellAt("2026-06-01T23:59:59.999Z", seller, { title: "Too early" });
    await sellAt("2026-06-02T23:59:59.999Z", seller, { title: "First", price: 10 });
    const order = await sellAt("2026-06-03T23:59:59.999Z", seller, { title: "Second", price: 15 });
    await sellAt("2026-06-04T00:00:00.000Z", seller, { title: "Too late" });
    await at("2026-06-03T12:00:00.000Z", () => refund(order, 5));
    for (const rollUp of [() => {}, () => rollUpSales(market.service.ctx)]) {
      await rollUp();
      const data = await read(seller, "products?startDate=2026-06-02&endDate=2026-06-03");
      assert.deepEqual(data.summary, {
        totalRevenue: 25,
        totalSales: 2,
        avgOrderValue: 12.5,
        refunds: 5,
        conversionRate: 0,
      });
      assert.deepEqual(data.timeline, [
        { date: "2026-06-02", revenue: 10, sales: 1, views: 0 },
        { date: "2026-06-03", revenue: 15, sales: 1, views: 0 },
      ]);
      assert.deepEqual(
        data.topProducts.map(({ title, revenue, sales }: Record<string, unknown>) => [title, revenue, sales]),
        [
          ["Second", 15, 1],
          ["First", 10, 1],
        ],
      );
      const { breakdown } = await read(seller, "revenue?startDate=2026-06-02&endDate=2026-06-03");
      assert.deepEqual(
        breakdown.map(({ label }: { label: string }) => label),
        ["Second", "First"],
      );
    }
  });

  test("days, weeks and months follow the requested time zone", async () => {
    const seller = await createSeller();
    await sellAt("2026-03-08T04:59:59.000Z", seller, { price: 1 });
    await sellAt("2026-03-08T05:00:00.000Z", seller, { price: 2 });
    // Clocks go forward at 7:00 UTC: the day has 23 hours.
    await sellAt("2026-03-09T03:59:59.000Z", seller, { price: 4 });
    await sellAt("2026-03-09T04:00:00.000Z", seller, { price: 8 });
    const zone = "timezone=America/New_York";
    const of = async (path: string) =>
      (await read(seller, path)).timeline.map(({ date, revenue }: Record<string, unknown>) => [
        date,
        revenue,
      ]);
    assert.deepEqual(await of(`products?startDate=2026-03-07&endDate=2026-03-09&${zone}`), [
      ["2026-03-07", 1],
      ["2026-03-08", 6],
      ["2026-03-09", 8],
    ]);
    assert.deepEqual(await of(`products?startDate=2026-03-05&endDate=2026-03-10&interval=week&${zone}`), [
      ["2026-03-05", 7],
      ["2026-03-09", 8],
    ]);
    assert.deepEqual(await of(`products?startDate=2026-02-20&endDate=2026-04-10&interval=month&${zone}`), [
      ["2026-02-20", 0],
      ["2026-03-01", 15],
      ["2026-04-01", 0],
    ]);
  });

  test("conversionRate is sales divided by views, also for one product", async () => {
    const seller = await createSeller();
    const [looked, ignored] = [
      await createProduct(seller, { title: "Looked at" }),
      await createProduct(seller),
    ];
    await viewProduct(looked, 3);
    await buyProduct(await market.createUser(), looked);
    await buyProduct(await market.createUser(), ignored);
    const { summary, timeline } = await read(seller, "products?period=day");
    assert.deepEqual([summary.totalSales, summary.conversionRate, timeline.at(-1).views], [2, 0.6667, 3]);
    const one = await read(seller, `products?period=day&productId=${looked}`);
    assert.deepEqual(
      [one.summary.totalSales, one.summary.conversionRate, one.timeline.at(-1).views],
      [1, 0.3333, 3],
    );
    assert.deepEqual(one.topProducts, [{ id: looked, title: "Looked at", revenue: 4.99, sales: 1 }]);
    const other = await read(seller, `products?productId=${ignored}`);
    assert.deepEqual([other.summary.totalSales, other.summary.conversionRate], [1, 0]);
  });

  test("topProducts: ten by revenue, then by sales", async () => {
    const seller = await createSeller();
    for (let price = 1; price <= 12; price++)
      await sellAt("2026-06-10T00:00:00Z", seller, { title: `At ${price}`, price });
    const twice = await createProduct(seller, { title: "Twice at 6", price: 6 });
    for (let time = 0; time < 2; time++) await buyProduct(await market.createUser(), twice);
    const { topProducts } = await read(seller, "products");
    assert.deepEqual(
      topProducts.map(({ title }: { title: string }) => title),
      ["Twice at 6", "At 12", "At 11", "At 10", "At 9", "At 8", "At 7", "At 6", "At 5", "At 4"],
    );
  });
});

suite("GET /v1/analytics/revenue", () => {
  /** A German order with 19 % included tax, a 50 % discount and a 20 % commission; and a plain order. */
  async function createOrders() {
    const [seller, referrer] = [await createSeller(), await market.createUser()];
    const { code } = (await referrer.get("/v1/account/referral")).body.data;
    assert.equal((await seller.post("/v1/discount-codes", { code: "HALF", percentOff: 50 })).status, 201);
    const german = await market.createUser();
    await (await market.createSession(german.userId)).patch("/v1/account", { country: "DE" });
    const input = { price: 20, category: "writing", title: "Sold dear", commissionBasisPoints: 2_000 };
    const productId = await createProduct(seller, input);
    const reply = await german.post("/v1/purchases", { productId, referralCode: code, discountCode: "HALF" });
    assert.equal(reply.status, 201, reply.text);
    await buyProduct(
      await market.createUser(),
      await createProduct(seller, { price: 30, title: "Sold plainly", category: "programming" }),
    );
    return { seller, code, orderId: reply.body.data.orderId, productId };
  }

  test("a sale and its refund: the parts equal those of the ledger", async () => {
    const { seller, orderId } = await createOrders();
    // 10.00, of which 1.60 are tax; of 8.40 a tenth is the platform's and a fifth the referrer's.
    const before = (await read(seller, "revenue?period=day")).summary;
    assert.deepEqual(before, {
      ...{ grossRevenue: 38.4, discounts: 10, tax: 1.6, refunds: 0, disputes: 0, platformFees: 3.84 },
      ...{ referralCommissions: 1.68, netRevenue: 32.88, sales: 2, avgOrderValue: 19.2, refundRate: 0 },
      ...{ pendingBalance: 32.88, availableBalance: 0, paidOut: 0 },
    });
    await refund(orderId);
    const { summary, timeline, breakdown } = await read(seller, "revenue?period=day");
    assert.deepEqual(summary, {
      ...{ grossRevenue: 38.4, discounts: 10, tax: 0, refunds: 8.4, disputes: 0, platformFees: 3 },
      ...{ referralCommissions: 0, netRevenue: 27, sales: 2, avgOrderValue: 19.2, refundRate: 0.2188 },
      ...{ pendingBalance: 27, availableBalance: 0, paidOut: 0 },
    });
    assert.deepEqual(timeline.at(-1), {
      ...{ date: "2026-06-15", grossRevenue: 38.4, refunds: 8.4, disputes: 0, fees: 3, commissions: 0 },
      ...{ netRevenue: 27, sales: 2 },
    });
    assert.deepEqual(
      breakdown.map(({ label, grossRevenue, netRevenue, sales }: Record<string, unknown>) => [
        label,
        grossRevenue,
        netRevenue,
        sales,
      ]),
      [
        ["Sold plainly", 30, 27, 1],
        ["Sold dear", 8.4, 0, 1],
      ],
    );
  });

  test("groupBy product, category and referral: each part has its label", async () => {
    const { seller, code, productId } = await createOrders();
    const of = async (groupBy: string) => {
      const { summary, breakdown } = await read(seller, `revenue?period=day&groupBy=${groupBy}`);
      for (const name of ["grossRevenue", "netRevenue", "sales"])
        assert.equal(total(breakdown, name), summary[name]);
      return breakdown.map(({ key, label, grossRevenue }: Record<string, unknown>) => [
        key,
        label,
        grossRevenue,
      ]);
    };
    const [plain, dear] = await of("product");
    assert.deepEqual([plain[1], dear], ["Sold plainly", [productId, "Sold dear", 8.4]]);
    assert.deepEqual(await of("category"), [
      ["programming", "Programming", 30],
      ["writing", "Writing", 8.4],
    ]);
    assert.deepEqual(await of("referral"), [
      ["direct", "direct", 30],
      [code, code, 8.4],
    ]);
    assert.deepEqual(await of("currency"), [["USD", "USD", 38.4]]);
    await sellAt("2026-06-15T11:00:00Z", seller, { price: 3 });
    const ofDear = async (groupBy: string) => {
      const path = `revenue?period=day&productId=${productId}&groupBy=${groupBy}`;
      const { summary, breakdown } = await read(seller, path);
      assert.deepEqual([summary.sales, summary.grossRevenue, summary.referralCommissions], [1, 8.4, 1.68]);
      return breakdown.map(({ key, grossRevenue }: Record<string, unknown>) => [key, grossRevenue]);
    };
    assert.deepEqual(await ofDear("product"), [[productId, 8.4]]);
    assert.deepEqual(await ofDear("category"), [["writing", 8.4]]);
    assert.deepEqual(await ofDear("referral"), [[code, 8.4]]);
    assert.deepEqual(await ofDear("currency"), [["USD", 8.4]]);
  });

  test("sales, commissions, payouts, returns and refunds: balances equal those of GET /v1/balance", async () => {
    const bank = installFakeBank(market);
    const [seller, referred, buyer] = [await createSeller(), await createSeller(), await market.createUser()];
    const { code } = (await seller.get("/v1/account/referral")).body.data;
    const buyReferred = async (price: number) => {
      const productId = await createProduct(referred, { price, commissionBasisPoints: 5_000 });
      const reply = await buyer.post("/v1/purchases", { productId, referralCode: code });
      assert.equal(reply.status, 201, reply.text);
    };
    const refundRequested = await at("2026-05-01T00:00:00Z", async () => {
      await buyReferred(40);
      await sellAt("2026-05-01T00:00:00Z", seller, { price: 70 });
      const bought = await createProduct(seller, { price: 30 });
      const orderId = await buyProduct(buyer, bought);
      await buyer.get(`/v1/products/${bought}`);
      return orderId;
    });
    await sellAt("2026-06-14T00:00:00Z", seller, { price: 11 });
    await at("2026-06-14T00:00:00Z", () => buyReferred(4));
    await sellAt("2026-05-01T00:00:00Z", seller, { price: 900, currency: "JPY" });
    const refund = await at("2026-05-10T00:00:00Z", () =>
      buyer.post(`/v1/purchases/${refundRequested}/refund`, { reason: "other" }),
    );
    assert.equal(refund.body.data.status, "pending", refund.text);
    const assertBalances = async (paidOut: number, available: number) => {
      const [yen, dollars] = (await seller.get("/v1/balance")).body.data;
      assert.deepEqual([yen.available, dollars.available, dollars.pending], [810, available, 11.9]);
      const { summary, otherCurrencies } = await read(seller, "revenue?currency=USD&startDate=2026-05-01");
      assert.partialDeepStrictEqual(summary, {
        ...{ pendingBalance: 11.9, availableBalance: available, paidOut },
      });
      assert.partialDeepStrictEqual(otherCurrencies, [
        { currency: "JPY", pendingBalance: 0, availableBalance: 810, paidOut: 0 },
      ]);
    };
    // 63 of one order and 27 of the other, both with open refund requests; 20 of commissions.
    // Not matured are 9.9 of a sale and 2 of commissions.
    await assertBalances(0, 83);
    for (const [state, paidOut, available] of [
      ["failed", 0, 83],
      ["completed", 20, 63],
      ["returned", 20, 63],
    ] as const) {
      bank.begins = "in_transit";
      const payout = await requestPayout(market, seller, { amount: 20, currency: "USD" });
      assert.equal(payout.status, 201, payout.text);
      await bank.moves(payout.body.data.id, state);
      await assertBalances(paidOut, available);
    }
    await rollUpSales(market.service.ctx);
    await assertBalances(20, 63);
  });

  test("several currencies: each has its own sums; the default is the one with the most sales", async () => {
    const seller = await createSeller();
    for (const [price, currency] of [
      [500, "JPY"],
      [700, "JPY"],
      [9, "USD"],
    ] as const) {
      await sellAt("2026-06-14T12:00:00Z", seller, { price, currency });
    }
    const yen = await read(seller, "revenue?groupBy=currency");
    assert.deepEqual(
      [yen.currency, yen.summary.grossRevenue, yen.summary.pendingBalance],
      ["JPY", 1200, 1080],
    );
    assert.deepEqual(yen.otherCurrencies, [
      {
        ...{
          currency: "USD",
          grossRevenue: 9,
          discounts: 0,
          tax: 0,
          refunds: 0,
          disputes: 0,
          platformFees: 0.9,
        },
        ...{ referralCommissions: 0, netRevenue: 8.1, sales: 1, avgOrderValue: 9, refundRate: 0 },
        ...{ pendingBalance: 8.1, availableBalance: 0, paidOut: 0 },
      },
    ]);
    assert.deepEqual(
      yen.breakdown.map(({ key, grossRevenue }: Record<string, unknown>) => [key, grossRevenue]).sort(),
      [
        ["JPY", 1200],
        ["USD", 9],
      ],
    );
    const dollars = await read(seller, "products?currency=USD");
    assert.deepEqual([dollars.summary.totalRevenue, dollars.topProducts.length], [9, 1]);
    assert.deepEqual(dollars.otherCurrencies, [
      { currency: "JPY", totalRevenue: 1200, totalSales: 2, avgOrderValue: 600, refunds: 0 },
    ]);
    const none = await read(seller, "products?currency=EUR");
    assert.deepEqual([none.summary.totalRevenue, none.otherCurrencies.length], [0, 2]);
  });

  test("a free copy: counts as a sale with revenue 0", async () => {
    const seller = await createSeller();
    await seller.post("/v1/discount-codes", { code: "GIFT", percentOff: 100 });
    const productId = await createProduct(seller, { price: 12 });
    const reply = await (await market.createUser()).post("/v1/purchases", {
      productId,
      discountCode: "GIFT",
    });
    assert.equal(reply.status, 201, reply.text);
    const { summary } = await read(seller, "revenue");
    assert.deepEqual(
      [summary.sales, summary.grossRevenue, summary.discounts, summary.avgOrderValue],
      [1, 0, 12, 0],
    );
  });
});

suite("analytics access", () => {
  test("another seller: sees no sales, products or views", async () => {
    const [seller, other] = [await createSeller(), await createSeller()];
    const productId = await createProduct(seller);
    await buyProduct(await market.createUser(), productId);
    await viewProduct(productId, 1);
    for (const path of ["products", "revenue", "revenue?groupBy=category", "revenue?groupBy=referral"]) {
      const { summary, timeline, breakdown = [], topProducts = [] } = await read(other, path);
      assert.deepEqual([summary.totalSales ?? summary.sales, ...breakdown, ...topProducts], [0]);
      assert.equal(total(timeline, "sales"), 0);
      assert.ok(path !== "products" || total(timeline, "views") === 0);
    }
    for (const path of ["products", "products/export", "revenue", "revenue/export", "funnel", "entries"])
      assertError(await other.get(`/v1/analytics/${path}?productId=${productId}`), 404, "PRODUCT_NOT_FOUND");
  });

  test("an unknown productId: 404 PRODUCT_NOT_FOUND", async () => {
    const seller = await createSeller();
    for (const id of [toId("prod", market.service.ctx.newId()), "nonsense", "usr_01kf5v8q3xe8hb1d6c1m2k3n4p"])
      assertError(await seller.get(`/v1/analytics/products?productId=${id}`), 404, "PRODUCT_NOT_FOUND");
  });

  const wrong: Record<string, [query: string, field: string]> = {
    "a start date that does not exist": ["startDate=2026-02-29", "startDate"],
    "an end date that is not a date": ["endDate=today", "endDate"],
    "a date before 1970": ["startDate=1969-01-01&endDate=1969-01-02", "startDate"],
    "a start after the end": ["startDate=2026-06-10&endDate=2026-06-09", "startDate"],
    "a start after today": ["startDate=2026-06-16", "startDate"],
    "more than five years": ["startDate=2021-06-14&endDate=2026-06-15", "startDate"],
    "an unknown period": ["period=decade", "period"],
    "an unknown interval": ["interval=hour", "interval"],
    "an unknown time zone": ["timezone=Europe/Atlantis", "timezone"],
    "an offset instead of a time zone": ["timezone=%2B02:00", "timezone"],
    "a POSIX rule instead of a time zone": ["timezone=FOO3", "timezone"],
    "an ambiguous abbreviation": ["timezone=BST", "timezone"],
    "an ambiguous abbreviation in lower case": ["timezone=ist", "timezone"],
    "a time zone that is not in the IANA database": ["timezone=SystemV/EST5EDT", "timezone"],
    "an unknown currency": ["currency=XYZ", "currency"],
    "an unknown parameter": ["from=2026-01-01", "from"],
  };
  for (const [what, [query, field]] of Object.entries(wrong))
    test(`${what}: 400 INVALID_REQUEST`, async () => {
      const seller = await createSeller();
      for (const path of ["products", "products/export", "revenue", "revenue/export"])
        assertError(await seller.get(`/v1/analytics/${path}?${query}`), 400, "INVALID_REQUEST", field);
    });

  test("an empty time zone and a lower-case currency: UTC and EUR", async () => {
    const seller = await createSeller();
    for (const path of ["products", "revenue"]) {
      const { timezone, currency } = await read(seller, `${path}?timezone=&currency=eur`);
      assert.deepEqual([timezone, currency], ["UTC", "EUR"], path);
    }
  });

  test("ranges of five years, one day and future days: accepted", async () => {
    const seller = await createSeller();
    assert.equal(
      (await read(seller, "products?startDate=2021-06-15&endDate=2026-06-15")).timeline.length,
      1827,
    );
    assert.equal((await read(seller, "products?startDate=2026-06-15")).timeline.length, 1);
    assert.equal(
      (await read(seller, "revenue?startDate=2026-06-15&endDate=2027-06-15&interval=month")).timeline.length,
      13,
    );
    assert.deepEqual((await read(seller, "revenue?period=week&endDate=2026-03-01")).startDate, "2026-02-22");
  });

  test("a caller without the seller role or analytics:read: 403 UNAUTHORIZED", async () => {
    const user = await market.createUser();
    assertError(await user.get("/v1/analytics/products"), 403, "UNAUTHORIZED");
    const key = await market.createUser({ role: "seller", permissions: ["purchases:read"] });
    assertError(await key.get("/v1/analytics/revenue/export"), 403, "UNAUTHORIZED");
    assertError(await market.as(null).get("/v1/analytics/revenue"), 401, "INVALID_API_KEY");
  });
});

suite("GET /v1/analytics/{products,revenue}/export", () => {
  test("returns the timeline as CSV; the file name has report and days", async () => {
    const seller = await createSeller();
    const order = await sellAt("2026-06-02T12:00:00Z", seller, { price: 10 });
    await at("2026-06-03T12:00:00Z", () => refund(order));
    const days = "startDate=2026-06-02&endDate=2026-06-03";
    const products = await seller.get(`/v1/analytics/products/export?${days}`);
    assert.equal(products.headers.get("content-type"), "text/csv; charset=utf-8");
    assert.equal(
      products.headers.get("content-disposition"),
      'attachment; filename="products-2026-06-02-to-2026-06-03.csv"',
    );
    assert.equal(
      products.text,
      "date,currency,revenue,sales,views\r\n2026-06-02,USD,10,1,0\r\n2026-06-03,USD,0,0,0\r\n",
    );
    const revenue = await seller.get(`/v1/analytics/revenue/export?${days}`);
    assert.equal(
      revenue.headers.get("content-disposition"),
      'attachment; filename="revenue-2026-06-02-to-2026-06-03.csv"',
    );
    assert.deepEqual(revenue.text.split("\r\n"), [
      "date,currency,grossRevenue,refunds,disputes,fees,commissions,netRevenue,sales",
      "2026-06-02,USD,10,0,0,1,0,9,1",
      "2026-06-03,USD,0,10,0,-1,0,-9,0",
      "",
    ]);
  });
});
