import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { inFullRun } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toId } from "../../core/ids.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const DAYS = "startDate=2026-06-10&endDate=2026-06-15";
const at = (moment: string) => {
  market.clock.now = new Date(moment);
};

const idOf = ({ userId }: Client) => toId("usr", userId);

/** A seller with `products` products, and buyers with these names. */
async function createShop(products: number, ...names: string[]) {
  const seller = await market.createUser({ name: "Seller" });
  const productIds: string[] = [];
  for (let n = 0; n < products; n++) productIds.push(await createProduct(seller, { price: 10 * (n + 1) }));
  const buyers = await Promise.all(names.map((name) => market.createUser({ name })));
  return { seller, productIds, buyers };
}

async function customersOf(seller: Client, query = DAYS) {
  const reply = await seller.get(`/v1/analytics/customers?${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

suite("GET /v1/analytics/customers", () => {
  test("without sales: zeros, with one row for each day and month", async () => {
    at("2026-06-15T12:00:00.000Z");
    const { seller } = await createShop(1);
    const none = { totalCustomers: 0, newCustomers: 0, returningCustomers: 0 };
    assert.deepEqual(await customersOf(seller, "startDate=2026-05-31&endDate=2026-06-02"), {
      ...{ currency: "USD", startDate: "2026-05-31", endDate: "2026-06-02", timezone: "UTC" },
      summary: { ...none, repeatPurchaseRate: 0, avgRevenuePerCustomer: 0, lifetimeValue: 0 },
      timeline: ["2026-05-31", "2026-06-01", "2026-06-02"].map((date) => ({
        ...{ date, newCustomers: 0, returningCustomers: 0 },
      })),
      topCustomers: [],
      cohorts: [
        { month: "2026-05", size: 0, retained: [0, 0] },
        { month: "2026-06", size: 0, retained: [0] },
      ],
      otherCurrencies: [],
    });
  });

  test("new and returning customers: each customer counts once", async () => {
    const { seller, productIds, buyers } = await createShop(3, "Ada", "Grace");
    const [ada, grace] = buyers as [Client, Client];
    at("2026-06-09T23:59:59.999Z");
    await buyProduct(ada, productIds[0]!);
    at("2026-06-10T00:00:00.000Z");
    await buyProduct(ada, productIds[1]!);
    await buyProduct(ada, productIds[2]!);
    at("2026-06-15T23:59:59.999Z");
    await buyProduct(grace, productIds[0]!);
    const { summary, timeline } = await customersOf(seller);
    assert.deepEqual(summary, {
      ...{ totalCustomers: 2, newCustomers: 1, returningCustomers: 1 },
      // Ada by her three, Grace not; 20 + 30 and 10 by two; 10 + 20 + 30 and 10 by two.
      ...{ repeatPurchaseRate: 0.5, avgRevenuePerCustomer: 30, lifetimeValue: 35 },
    });
    assert.deepEqual(
      timeline.filter((row: { newCustomers: number; returningCustomers: number }) =>
        Boolean(row.newCustomers || row.returningCustomers),
      ),
      [
        { date: "2026-06-10", newCustomers: 0, returningCustomers: 1 },
        { date: "2026-06-15", newCustomers: 1, returningCustomers: 0 },
      ],
    );
  });

  test("timeline: days, weeks and months follow the time zone", async () => {
    const { seller, productIds, buyers } = await createShop(2, "Ada");
    at("2026-06-14T22:30:00.000Z");
    await buyProduct(buyers[0]!, productIds[0]!);
    at("2026-06-30T22:30:00.000Z");
    await buyProduct(buyers[0]!, productIds[1]!);
    const readRow = async (query: string) => {
      const { timeline, cohorts } = await customersOf(
        seller,
        `startDate=2026-06-01&endDate=2026-07-05&${query}`,
      );
      const days = timeline.filter((row: { newCustomers: number }) => row.newCustomers > 0);
      return [days.map(({ date }: { date: string }) => date), cohorts[0].retained];
    };
    assert.deepEqual(await readRow(""), [["2026-06-14"], [1, 0]]);
    assert.deepEqual(await readRow("timezone=Europe/Berlin"), [["2026-06-15"], [1, 1]]);
    assert.deepEqual(await readRow("interval=week"), [["2026-06-08"], [1, 0]]);
    assert.deepEqual(await readRow("interval=month&timezone=Europe/Berlin"), [["2026-06-01"], [1, 1]]);
  });

  test("topCustomers: ten by amount spent, with first and last purchase", async () => {
    at("2026-06-01T00:00:00.000Z");
    const names = Array.from({ length: 11 }, (_, n) => `Buyer ${n}`);
    const { seller, productIds, buyers } = await createShop(2, ...names);
    await buyProduct(buyers[10]!, productIds[0]!);
    at("2026-06-12T00:00:00.000Z");
    for (const buyer of buyers.slice(0, 10)) await buyProduct(buyer, productIds[0]!);
    await buyProduct(buyers[10]!, productIds[1]!);
    const { topCustomers } = await customersOf(seller);
    const [first, ...others] = topCustomers;
    assert.deepEqual(first, {
      ...{ id: idOf(buyers[10]!), name: "Buyer 10", purchases: 1, totalSpent: 20 },
      ...{ firstPurchaseAt: "2026-06-01T00:00:00.000Z", lastPurchaseAt: "2026-06-12T00:00:00.000Z" },
    });
    const byId = buyers.slice(0, 10).map(idOf).toSorted();
    assert.deepEqual(
      others.map(({ id }: { id: string }) => id),
      byId.slice(0, 9),
    );
  });

  test("cohorts: follow the customers of a month to the end of the range", async () => {
    const { seller, productIds, buyers } = await createShop(3, "Ada", "Grace", "Joan");
    const [ada, grace, joan] = buyers as [Client, Client, Client];
    at("2026-02-28T12:00:00.000Z");
    await buyProduct(joan, productIds[0]!);
    at("2026-03-01T12:00:00.000Z");
    await buyProduct(ada, productIds[0]!);
    await buyProduct(grace, productIds[0]!);
    await buyProduct(joan, productIds[1]!);
    at("2026-05-31T12:00:00.000Z");
    await buyProduct(ada, productIds[1]!);
    await buyProduct(ada, productIds[2]!);
    const { cohorts } = await customersOf(seller, "startDate=2026-03-01&endDate=2026-05-31");
    assert.deepEqual(cohorts, [
      { month: "2026-03", size: 2, retained: [2, 0, 1] },
      { month: "2026-04", size: 0, retained: [0, 0] },
      { month: "2026-05", size: 0, retained: [0] },
    ]);
  });

  test("several currencies: reported separately", async () => {
    at("2026-06-12T00:00:00.000Z");
    const { seller, productIds, buyers } = await createShop(2, "Ada", "Grace");
    const [ada, grace] = buyers as [Client, Client];
    const inYen = await createProduct(seller, { price: 1_001, currency: "JPY" });
    for (const id of [...productIds, inYen]) await buyProduct(ada, id);
    await buyProduct(grace, inYen);
    const dollars = {
      ...{ totalCustomers: 1, newCustomers: 1, returningCustomers: 0, repeatPurchaseRate: 1 },
      ...{ avgRevenuePerCustomer: 30, lifetimeValue: 30 },
    };
    const yen = {
      ...{ totalCustomers: 2, newCustomers: 2, returningCustomers: 0, repeatPurchaseRate: 0 },
      ...{ avgRevenuePerCustomer: 1_001, lifetimeValue: 1_001 },
    };
    const inDollars = await customersOf(seller, `${DAYS}&currency=USD`);
    assert.deepEqual(inDollars.summary, dollars);
    assert.deepEqual(inDollars.otherCurrencies, [{ currency: "JPY", ...yen }]);
    const inYens = await customersOf(seller, `${DAYS}&currency=JPY`);
    assert.deepEqual([inYens.currency, inYens.summary], ["JPY", yen]);
    assert.deepEqual(inYens.otherCurrencies, [{ currency: "USD", ...dollars }]);
    const inKwd = await customersOf(seller, `${DAYS}&currency=KWD`);
    assert.equal(inKwd.summary.totalCustomers, 0);
    assert.deepEqual(
      inKwd.otherCurrencies.map(({ currency }: { currency: string }) => currency),
      ["JPY", "USD"],
    );
  });

  test("unpaid orders and sales of others: not counted", async () => {
    at("2026-06-12T00:00:00.000Z");
    const { seller, productIds, buyers } = await createShop(1, "Ada", "Grace");
    const [ada, grace] = buyers as [Client, Client];
    const other = await createShop(1);
    await buyProduct(grace, other.productIds[0]!);
    const body = { productId: productIds[0]!, paymentMethodId: "pm_test_declined" };
    assert.equal((await ada.post("/v1/purchases", body)).status, 402);
    const { summary, topCustomers } = await customersOf(seller);
    assert.deepEqual([summary.totalCustomers, topCustomers], [0, []]);
    const others = await customersOf(other.seller);
    assert.deepEqual(
      others.topCustomers.map(({ name }: { name: string }) => name),
      ["Grace"],
    );
  });

  test("a closed account: its name is not shown", async () => {
    at("2026-06-12T00:00:00.000Z");
    const { seller, productIds, buyers } = await createShop(1, "Ada Lovelace");
    await buyProduct(buyers[0]!, productIds[0]!);
    const session = await market.createSession(buyers[0]!.userId);
    const { email } = (await session.get("/v1/account")).body.data;
    const reply = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    assert.equal(reply.status, 200, reply.text);
    const [customer] = (await customersOf(seller)).topCustomers;
    assert.equal(customer.name, "Closed account");
    const file = await seller.get(`/v1/analytics/customers/export?${DAYS}`);
    assert.ok(!file.text.includes("Ada"), file.text);
  });
});

suite("GET /v1/analytics/customers/export", () => {
  const exportLines = async (seller: Client, query = DAYS) => {
    const reply = await seller.get(`/v1/analytics/customers/export?${query}`);
    assert.equal(reply.status, 200, reply.text);
    return reply.text.split("\r\n");
  };
  const HEADER = "id,name,currency,purchases,totalSpent,firstPurchaseAt,lastPurchaseAt";

  test("returns all customers of the range, more than ten", async () => {
    const names = Array.from({ length: 11 }, (_, n) => `Buyer ${n}`);
    const { seller, productIds, buyers } = await createShop(1, ...names);
    at("2026-06-12T01:02:03.004Z");
    for (const buyer of buyers) await buyProduct(buyer, productIds[0]!);
    const reply = await seller.get(`/v1/analytics/customers/export?${DAYS}`);
    assert.match(reply.headers.get("content-type")!, /^text\/csv/);
    assert.equal(
      reply.headers.get("content-disposition"),
      'attachment; filename="customers-2026-06-10-to-2026-06-15.csv"',
    );
    assert.equal(reply.headers.get("cache-control"), "no-store");
    const time = "2026-06-12T01:02:03.004Z";
    assert.deepEqual(reply.text.split("\r\n"), [
      HEADER,
      ...buyers.map((buyer, n) => `${idOf(buyer)},Buyer ${n},USD,1,10,${time},${time}`).toSorted(),
      "",
    ]);
  });

  test("without customers: returns only the header", async () => {
    const { seller } = await createShop(1);
    assert.deepEqual(await exportLines(seller), [HEADER, ""]);
  });

  test("names that look like formulas: exported as text", async () => {
    at("2026-06-12T00:00:00.000Z");
    const names = ["=1+1", "+1", "-1", "@SUM(A1)", 'He said "no"', "a;=1", "Smith, Ada"];
    const { seller, productIds, buyers } = await createShop(1, ...names);
    for (const buyer of buyers) await buyProduct(buyer, productIds[0]!);
    const lines = (await exportLines(seller)).slice(1, -1);
    const expected = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", '"He said ""no"""', '"a;\'=1"', '"Smith, Ada"'];
    for (const name of expected) {
      const found = lines.some((line) => line.includes(`,${name},USD,`));
      assert.ok(found, name);
    }
    assert.equal(lines.length, names.length);
  });

  test("2,001 customers: read page by page, without gaps or duplicates", inFullRun, async () => {
    const many = await openMarket();
    many.skipLedgerCheck();
    const [seller, buyer] = [await many.createUser(), await many.createUser()];
    await buyProduct(buyer, await createProduct(seller));
    await many.query(
      `with made as (
         insert into users (id, email, name, created_at)
         select gen_random_uuid(), 'many' || n || '@example.com', 'Many ' || n, '2026-01-01' from generate_series(1, 2000) n returning id)
       insert into orders select (jsonb_populate_record(o, jsonb_build_object('id', gen_random_uuid(), 'buyer_id', made.id,
              'receipt_number', 1 + row_number() over ()))).*
         from orders o cross join made where o.seller_id = $1`,
      [seller.userId],
    );
    const lines = (await exportLines(seller)).slice(1, -1);
    assert.equal(lines.length, 2_001);
    assert.equal(new Set(lines).size, 2_001);
    assert.equal((await customersOf(seller)).summary.totalCustomers, 2_001);
    await many.close();
  });
});

suite("access to customer analytics", () => {
  for (const path of ["/v1/analytics/customers", "/v1/analytics/customers/export"]) {
    test(`${path} without the seller role or analytics:read: 403 UNAUTHORIZED`, async () => {
      const { seller } = await createShop(1);
      assertError(await market.as(null).get(path), 401, "INVALID_API_KEY");
      assertError(await (await market.createUser()).get(path), 403, "UNAUTHORIZED");
      const weak = await market.createUser({ role: "seller", permissions: ["purchases:read"] });
      assert.equal(assertError(await weak.get(path), 403, "UNAUTHORIZED").required, "analytics:read");
      assert.equal((await seller.get(path)).status, 200);
      assert.equal((await (await market.createSession(seller.userId)).get(path)).status, 200);
    });

    for (const [query, field] of [
      ["startDate=2026-06-16&endDate=2026-06-15", "startDate"],
      ["startDate=2021-06-14&endDate=2026-06-15", "startDate"],
      ["endDate=2026-02-30", "endDate"],
      ["timezone=Mars/Olympus", "timezone"],
      ["currency=XXX", "currency"],
      ["interval=hour", "interval"],
      ["period=decade", "period"],
      ["groupBy=product", "groupBy"],
    ] as const)
      test(`${path}?${query}: 400 INVALID_REQUEST for ${field}`, async () => {
        const { seller } = await createShop(0);
        await market.query("update users set role = 'seller' where id = $1", [seller.userId]);
        assertError(await seller.get(`${path}?${query}`), 400, "INVALID_REQUEST", field);
      });
  }
});
