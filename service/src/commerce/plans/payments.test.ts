import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { chargeFee } from "../../integrations/payments/fake-payments.ts";
import { renewSubscriptions } from "./renewal.ts";

const PATH = "/v1/account/subscription";
const LIST = `${PATH}/payments`;
const RATES = new Map([
  ["DE", 1_900],
  ["JP", 1_000],
]);

interface Person {
  key: Client;
  session: Client;
}

async function createPerson(market: Market, country: string | null = null): Promise<Person> {
  const key = await market.createUser({ name: "Ada Lovelace" });
  const person = { key, session: await market.createSession(key.userId) };
  if (country) assert.equal((await person.session.patch("/v1/account", { country })).status, 200);
  return person;
}

const choose = ({ session }: Person, plan: string, more: object = {}) => session.put(PATH, { plan, ...more });
async function createSubscriber(
  market: Market,
  country: string | null = null,
  plan = "pro",
): Promise<Person> {
  const person = await createPerson(market, country);
  const reply = await choose(person, plan);
  assert.equal(reply.status, 200, reply.text);
  return person;
}
const paymentsOf = async ({ key }: Person) => (await key.get(LIST)).body.data;
const numbersOf = async (person: Person): Promise<(string | null)[]> =>
  (await paymentsOf(person)).map(({ receipt }: { receipt: { number: string | null } }) => receipt.number);
/** Renews the plan at the end of its month. */
async function renew(market: Market, { key }: Person): Promise<void> {
  market.clock.now = new Date((await key.get(PATH)).body.data.periodEnd);
  await renewSubscriptions(market.service.ctx);
}

suite("GET /account/subscription/payments", () => {
  let market: Market;
  before(async () => {
    market = await openMarket({ config: { planConfig: builtInPlans } });
  });
  after(() => market.close());

  test("lists payments newest first, in pages", async () => {
    market.clock.now = new Date("2027-01-31T10:00:00.000Z");
    const person = await createSubscriber(market);
    await renew(market, person);
    const [second, first] = await paymentsOf(person);
    assert.partialDeepStrictEqual(first, {
      plan: "pro",
      status: "completed",
      amount: 29,
      currency: "USD",
      lines: { subtotal: 29, discount: 0, tax: 0, total: 29 },
      taxRate: null,
      period: { start: "2027-01-31T10:00:00.000Z", end: "2027-02-28T10:00:00.000Z" },
      paymentMethod: { last4: "4242" },
      declineCode: null,
      createdAt: "2027-01-31T10:00:00.000Z",
      completedAt: "2027-01-31T10:00:00.000Z",
    });
    assert.match(first.id, /^pay_/);
    assert.deepEqual(second.period, { start: first.period.end, end: "2027-03-31T10:00:00.000Z" });
    const page = (await person.key.get(`${LIST}?limit=1&page=2`)).body;
    assert.deepEqual([page.data[0].id, page.data.length, page.meta.total], [first.id, 1, 2]);
  });

  test("requires purchases:read; others are refused", async () => {
    const person = await createSubscriber(market);
    assert.equal((await person.session.get(LIST)).body.data.length, 1);
    const other = await market.createUser({ permissions: ["purchases:read"] });
    assert.deepEqual((await other.get(LIST)).body.data, []);
    const curious = await market.createUser({ permissions: ["products:read"] });
    assert.equal(assertError(await curious.get(LIST), 403, "UNAUTHORIZED").required, "purchases:read");
    assertError(await market.as(null).get(LIST), 401, "INVALID_API_KEY");
    assertError(await person.key.get(`${LIST}?limit=101`), 400, "INVALID_REQUEST", "limit");
    assertError(await person.key.get(`${LIST}?status=failed`), 400, "INVALID_REQUEST", "status");
  });

  test("failed and open payments: listed without a receipt", async () => {
    const person = await createPerson(market);
    await choose(person, "pro", { paymentMethodId: "pm_test_declined" });
    await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    const [waiting, failed] = await paymentsOf(person);
    const nothing = { number: null, url: null, pdf: null };
    assert.partialDeepStrictEqual(failed, {
      status: "failed",
      declineCode: "card_declined",
      period: null,
      receipt: nothing,
      completedAt: null,
    });
    assert.partialDeepStrictEqual(waiting, { status: "requires_action", receipt: nothing });
    assert.equal((await choose(person, "free")).status, 200);
    assert.equal((await paymentsOf(person))[0].status, "canceled");
  });

  test("an upgrade: deducts the unused part of the month, also on the receipt", async () => {
    const person = await createSubscriber(market);
    const [first] = await paymentsOf(person);
    const month = Date.parse(first.period.end) - Date.parse(first.period.start);
    market.clock.forward(month / 4);
    person.session = await market.createSession(person.key.userId);
    assert.equal((await choose(person, "business")).status, 200);
    const [upgrade] = await paymentsOf(person);
    assert.deepEqual(upgrade.lines, { subtotal: 99, discount: 21.75, tax: 0, total: 77.25 });
    const page = await (await fetch(upgrade.receipt.url)).text();
    assert.match(page, /<dt>Discount \(unused part of the month before\)<\/dt><dd>−21\.75 USD/);
    assert.match(page, /<dt>Total<\/dt><dd>77\.25 USD/);
  });

  test("the provider's fee: stored and posted", async () => {
    const person = await createSubscriber(market);
    const { rows } = await market.query(
      `select p.processor_fee_minor as kept, e.account, e.amount_minor as amount
         from subscription_payments p join ledger_transactions t on t.source_id = p.id
         join ledger_entries e on e.transaction_id = t.id where p.user_id = $1 order by e.account`,
      [person.key.userId],
    );
    const fee = Number(chargeFee(2_900n));
    assert.ok(fee > 0);
    assert.deepEqual(
      rows.map(({ kept, account, amount }) => [kept, account, amount]),
      [
        [fee, "platform_revenue", 2_900],
        [fee, "processor_fees", -fee],
        [fee, "provider_clearing", fee - 2_900],
      ],
    );
  });
});

suite("a receipt of a plan", () => {
  let market: Market;
  before(async () => {
    market = await openMarket({ config: { planConfig: builtInPlans } });
  });
  after(() => market.close());

  test("shows buyer, seller and month, as HTML and PDF", async () => {
    market.clock.now = new Date("2026-08-31T10:00:00.000Z");
    const [{ receipt }] = await paymentsOf(await createSubscriber(market));
    const page = await fetch(receipt.url);
    assert.equal(page.headers.get("content-type"), "text/html; charset=utf-8");
    assert.equal(page.headers.get("cache-control"), "private, no-store");
    assert.equal(page.headers.get("referrer-policy"), "no-referrer");
    assert.match(page.headers.get("content-security-policy")!, /^default-src 'none'; style-src 'sha256-/);
    const text = await page.text();
    for (const words of [
      receipt.number,
      "Ada Lovelace",
      "<bdi>Stoa</bdi>",
      "Stoa pro, one month",
      "31 August 2026 to 30 September 2026",
      "29.00 USD",
      "ending in 4242",
    ])
      assert.ok(text.includes(words), words);
    const pdf = await fetch(receipt.pdf);
    assert.equal(pdf.headers.get("content-type"), "application/pdf");
    assert.equal(pdf.headers.get("content-disposition"), `inline; filename="receipt-${receipt.number}.pdf"`);
    assert.match(await pdf.text(), /^%PDF-/);
  });

  test("numbers: from one in each UTC year", async () => {
    market.clock.now = new Date("2028-12-31T23:59:59.999Z");
    const [one, other] = [await createSubscriber(market), await createSubscriber(market)];
    market.clock.forward(1);
    const next = await createSubscriber(market);
    assert.deepEqual(await numbersOf(one), ["R-STOA-2028-00001"]);
    assert.deepEqual(await numbersOf(other), ["R-STOA-2028-00002"]);
    assert.deepEqual(await numbersOf(next), ["R-STOA-2029-00001"]);
  });

  test("concurrent payments: numbers without gaps; failed ones use none", async () => {
    market.clock.now = new Date("2030-03-01T00:00:00.000Z");
    const people = await Promise.all(Array.from({ length: runs(50) }, () => createPerson(market)));
    await Promise.all(
      people.map((person, at) =>
        choose(person, "pro", at % 5 === 0 ? { paymentMethodId: "pm_test_declined" } : {}),
      ),
    );
    const numbers = (await Promise.all(people.map(numbersOf))).flat();
    assert.equal(numbers.filter((number) => number === null).length, people.length / 5);
    assert.deepEqual(
      numbers.filter((number) => number !== null).sort(),
      Array.from(
        { length: (people.length * 4) / 5 },
        (_, at) => `R-STOA-2030-${String(at + 1).padStart(5, "0")}`,
      ),
    );
  });

  test("its link: valid only for itself, for an hour and at most 15 minutes more", async () => {
    const person = await createSubscriber(market);
    const [{ id, receipt }] = await paymentsOf(person);
    const visitor = market.as(null);
    const [{ id: others }] = await paymentsOf(await createSubscriber(market));
    for (const wrong of [
      receipt.url.replace(id, others),
      receipt.url.replace("/receipt?", "/receipt.pdf?"),
      receipt.url.replace("signature=", "signature=x"),
      receipt.url.split("?")[0],
    ])
      assertError(await visitor.get(wrong), 403, "UNAUTHORIZED");
    market.clock.forward(HOUR_MS - 1);
    assert.equal((await visitor.get(receipt.url)).status, 200);
    market.clock.forward(HOUR_MS / 4 + 1);
    assertError(await visitor.get(receipt.url), 403, "UNAUTHORIZED");
    assert.equal((await fetch((await paymentsOf(person))[0].receipt.url)).status, 200);
  });

  test("of an open or unknown payment: 404", async () => {
    const person = await createPerson(market);
    await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    const [{ id }] = await paymentsOf(person);
    const { ctx } = market.service;
    for (const paymentId of [id, toId("pay", newUuid(ctx.now())), "pay_1"]) {
      const path = `${LIST}/${paymentId}/receipt`;
      const url = ctx.links.sign(path, new Date(ctx.now().getTime() + HOUR_MS));
      assertError(await market.as(null).get(url), 404, "NOT_FOUND");
    }
  });

  test("after a change of name and after closing the account: unchanged", async () => {
    const person = await createSubscriber(market);
    await person.session.patch("/v1/account", { name: "Augusta King" });
    const [{ receipt }] = await paymentsOf(person);
    const { rows } = await market.query("select email from users where id = $1", [person.key.userId]);
    const page = await (await fetch(receipt.url)).text();
    assert.ok(page.includes("Ada Lovelace") && page.includes(rows[0].email));
    const closed = await person.session.request("DELETE", "/v1/account", {
      json: { confirm: rows[0].email },
    });
    assert.equal(closed.status, 200, closed.text);
    assert.equal(await (await fetch(receipt.url)).text(), page);
  });
});

for (const { how, inclusive, lines, revenue, row } of [
  {
    how: "on top of the price",
    inclusive: false,
    lines: { subtotal: 29, discount: 0, tax: 5.51, total: 34.51 },
    revenue: 2_900,
    row: /<dt>Tax \(DE, 19 %\)<\/dt><dd>5\.51 USD.*<dt>Total<\/dt><dd>34\.51 USD/s,
  },
  {
    how: "inside of the price",
    inclusive: true,
    lines: { subtotal: 29, discount: 0, tax: 4.63, total: 29 },
    revenue: 2_437,
    row: /<dt>Total<\/dt><dd>29\.00 USD.*<dt>Tax included \(DE, 19 %\)<\/dt><dd>4\.63 USD/s,
  },
])
  suite(`a tax ${how}`, () => {
    let market: Market;
    before(async () => {
      market = await openMarket({
        config: { planConfig: builtInPlans, taxRates: RATES, taxInclusive: inclusive },
      });
    });
    after(() => market.close());

    const bookedFor = async (paymentId: string) => {
      const { rows } = await market.query(
        `select e.account, e.amount_minor as amount from ledger_entries e join ledger_transactions t on t.id = e.transaction_id
          where t.source_id = $1 and e.account in ('platform_revenue', 'tax_payable') order by 1`,
        [toUuid("pay", paymentId)],
      );
      return rows.map(({ account, amount }) => [account, amount]);
    };

    test("a taxed month and its renewal: charged, stored, posted and shown", async () => {
      const person = await createSubscriber(market, "DE");
      await renew(market, person);
      const payments = await paymentsOf(person);
      assert.equal(payments.length, 2);
      for (const { id, lines: reported, amount, taxRate, receipt } of payments) {
        assert.deepEqual([reported, amount], [lines, lines.total]);
        assert.deepEqual(taxRate, { percent: 19, inclusive, country: "DE" });
        assert.match(await (await fetch(receipt.url)).text(), row);
        assert.deepEqual(await bookedFor(id), [
          ["platform_revenue", revenue],
          ["tax_payable", Math.round(lines.tax * 100)],
        ]);
      }
    });

    test("no rate: no tax; a new country applies from the next month", async () => {
      const person = await createSubscriber(market, "US");
      await person.session.patch("/v1/account", { country: "DE" });
      await renew(market, person);
      const [second, first] = await paymentsOf(person);
      assert.deepEqual([first.lines.tax, first.amount, first.taxRate], [0, 29, null]);
      assert.deepEqual(second.lines, lines);
    });

    test("an upgrade: taxed after the credit", async () => {
      const person = await createSubscriber(market, "DE");
      const [{ period }] = await paymentsOf(person);
      market.clock.forward((Date.parse(period.end) - Date.parse(period.start)) / 4);
      person.session = await market.createSession(person.key.userId);
      assert.equal((await choose(person, "business")).status, 200);
      const [upgrade] = await paymentsOf(person);
      const net = 99 - 21.75;
      assert.deepEqual(
        upgrade.lines,
        inclusive
          ? { subtotal: 99, discount: 21.75, tax: 12.33, total: net }
          : { subtotal: 99, discount: 21.75, tax: 14.68, total: 91.93 },
      );
    });

    test("a new country while a payment is open: replaces the payment", async () => {
      const person = await createPerson(market, "DE");
      const input = { paymentMethodId: "pm_test_requires_action" };
      assert.equal((await choose(person, "pro", input)).body.data.payment.amount, lines.total);
      await person.session.patch("/v1/account", { country: "US" });
      assert.equal((await choose(person, "pro", input)).body.data.payment.amount, 29);
      assert.deepEqual(
        (await paymentsOf(person)).map(({ status }: { status: string }) => status),
        ["requires_action", "canceled"],
      );
    });
  });

for (const [currency, monthlyPrice, lines] of [
  ["JPY", 4_405, { subtotal: 4_405, discount: 0, tax: 441, total: 4_846 }],
  ["KWD", 9.005, { subtotal: 9.005, discount: 0, tax: 0.901, total: 9.906 }],
] as const)
  test(`${currency}: payment, charge and ledger have the same amounts`, async () => {
    const plans = { ...builtInPlans.plans, pro: { ...builtInPlans.plans.pro, monthlyPrice } };
    const market = await openMarket({
      config: { planConfig: { ...builtInPlans, currency, plans }, taxRates: RATES },
    });
    const [payment] = await paymentsOf(await createSubscriber(market, "JP"));
    assert.deepEqual(payment.lines, lines);
    const { rows } = await market.query(
      `select c.amount_minor as charged, -sum(e.amount_minor)::int as held from fake_provider.charges c, ledger_entries e
        where c.order_id = $1 and e.account in ('provider_clearing', 'processor_fees') group by 1`,
      [payment.id],
    );
    assert.equal(rows[0].charged, rows[0].held);
    assert.equal(rows[0].charged, Math.round(lines.total * (currency === "JPY" ? 1 : 1_000)));
    await market.close();
  });
