import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { lastOf, titlesOf } from "../../../test/notifications.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import type { ChargeRequest, PaymentMethod, Payments } from "../../integrations/payments/payments.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import { renewSubscriptions } from "./renewal.ts";
import { applyDueDowngrades, monthAfter } from "./subscription.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/subscription";

const line: PaymentConnection = { trouble: "none" };
/** Replaces the payment method of all charges; empty: no replacement. */
let card = "";
const charged: ChargeRequest[] = [];
/** The shared payment methods. */
const shared: PaymentMethod[] = [];

let provider: FakeProvider;
let market: Market;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  const fake = createFakePayments({ origin: provider.origin });
  shared.push(...fake.sharedMethods);
  const payments = { ...withCard(fake), sharedMethods: shared };
  market = await openMarket({
    payments: withConnectionTrouble(line, payments),
    config: { planConfig: builtInPlans },
  });
});
beforeEach(() => {
  line.trouble = "none";
  card = "";
});
after(async () => {
  await market.close();
  await provider.close();
});

/** Records charges even if the answer is lost. */
const withCard = (payments: Payments): Payments => ({
  ...payments,
  async charge(request) {
    const outcome = await payments.charge({ ...request, methodId: card || request.methodId });
    if (outcome.state === "succeeded" && !charged.some(({ orderId }) => orderId === request.orderId))
      charged.push(request);
    return outcome;
  },
});

interface Person {
  key: Client;
  session: Client;
}

/** A subscriber since a moment. */
async function createSubscriber(
  plan: "pro" | "business",
  since = "2027-01-31T10:00:00.000Z",
): Promise<Person> {
  market.clock.now = new Date(since);
  const key = await market.createUser();
  const person = { key, session: await market.createSession(key.userId) };
  assert.equal((await choose(person, plan)).status, 200);
  charged.length = 0;
  return person;
}

const choose = ({ session }: Person, plan: string, more: object = {}) => session.put(PATH, { plan, ...more });
const readSubscription = async ({ key }: Person) => (await key.get(PATH)).body.data;
const renew = () => renewSubscriptions(market.service.ctx);
const chargedAmounts = ({ key }: Person) =>
  charged.filter(({ userId }) => userId === toId("usr", key.userId)).map(({ amountMinor }) => amountMinor);
const methodsOf = ({ key }: Person) =>
  charged.filter(({ userId }) => userId === toId("usr", key.userId)).map(({ methodId }) => methodId);
const emailSubjects = async ({ key }: Person) =>
  (await emailsToUser(market, key.userId)).map(({ subject }) => subject);
/** The present quotas of API keys. */
async function quotasOf({ key }: Person) {
  // Jobs invalidate the key cache by a notification, a moment later.
  await market.service.ctx.notifications.catchUp();
  const { windows } = (await key.get("/v1/account/usage")).body.data;
  return windows.map(({ limit, seconds }: { limit: number; seconds: number }) => ({
    requests: limit,
    seconds,
  }));
}
const at = (moment: string) => {
  market.clock.now = new Date(moment);
};

suite("renewal of a plan", () => {
  test("many concurrent workers: charged once", async () => {
    const person = await createSubscriber("pro");
    at("2027-02-28T09:59:59.999Z");
    await renew();
    assert.deepEqual(chargedAmounts(person), [], "not before");
    at("2027-02-28T10:00:00.000Z");
    await Promise.all(Array.from({ length: runs(20) }, renew));
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      periodStart: "2027-02-28T10:00:00.000Z",
      periodEnd: "2027-03-31T10:00:00.000Z",
      pastDue: null,
      payment: null,
    });
  });

  test("posted with its price", async () => {
    await createSubscriber("business");
    at("2027-02-28T10:00:00.000Z");
    await renew();
    const { rows } = await market.query(
      `select e.account, sum(e.amount_minor)::int as amount from ledger_entries e
         join ledger_transactions t on t.id = e.transaction_id
         join subscription_payments p on p.id = t.source_id
        where t.kind = 'subscription' and p.renews_from is not null and p.plan = 'business' group by 1 order by 1`,
    );
    const [revenue] = rows.filter(({ account }) => account === "platform_revenue");
    assert.equal(revenue.amount, 9_900);
    assert.equal(
      rows.reduce((sum, { amount }) => sum + amount, 0),
      0,
    );
  });

  test("unpaid months are not charged; a new month begins now", async () => {
    const person = await createSubscriber("pro");
    at("2027-07-10T12:00:00.000Z");
    await renew();
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      periodStart: "2027-07-10T12:00:00.000Z",
      periodEnd: "2027-08-10T12:00:00.000Z",
    });
    at("2027-08-10T12:00:00.000Z");
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n, 2_900n]);
    assert.equal((await readSubscription(person)).periodEnd, "2027-09-10T12:00:00.000Z");
  });

  test("after an outage shortly before the anchor day: the next charge follows a month later", async () => {
    const person = await createSubscriber("pro", "2027-03-01T10:00:00.000Z");
    at("2027-05-30T10:00:00.000Z");
    await renew();
    at("2027-06-01T10:00:00.000Z");
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.equal((await readSubscription(person)).periodEnd, "2027-06-30T10:00:00.000Z");
  });

  test("charged before an outage and paid after it: the month begins with the payment", async () => {
    const person = await createSubscriber("pro");
    at("2027-02-28T10:00:00.000Z");
    line.trouble = "down";
    await renew();
    line.trouble = "none";
    at("2027-04-15T09:00:00.000Z");
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      periodStart: "2027-04-15T09:00:00.000Z",
      periodEnd: "2027-05-15T09:00:00.000Z",
    });
  });

  test("uses the present price of the plan", async () => {
    const person = await createSubscriber("pro");
    const { config } = market.service.ctx;
    const { plans } = builtInPlans;
    config.planConfig = { ...builtInPlans, plans: { ...plans, pro: { ...plans.pro, monthlyPrice: 31.5 } } };
    at("2027-02-28T10:00:00.000Z");
    await renew();
    config.planConfig = builtInPlans;
    assert.deepEqual(chargedAmounts(person), [3_150n]);
  });

  test("with a scheduled downgrade: not charged", async () => {
    const person = await createSubscriber("business");
    await choose(person, "pro");
    at("2027-02-28T10:00:00.000Z");
    await renew();
    assert.deepEqual(chargedAmounts(person), []);
    await applyDueDowngrades(market.service.ctx);
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n], "the new plan's price");
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      periodEnd: "2027-03-31T10:00:00.000Z",
    });
  });

  test("lost answer: charged once under the same id", async () => {
    const person = await createSubscriber("pro");
    at("2027-02-28T10:00:00.000Z");
    line.trouble = "answers get lost";
    await renew();
    await renew();
    line.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    await Promise.all([reconcileCharges(market.service.ctx, planPaymentTarget), renew()]);
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.equal((await readSubscription(person)).periodEnd, "2027-03-31T10:00:00.000Z");
  });

  test("provider unavailable: no attempt is used up", async () => {
    const person = await createSubscriber("pro");
    at("2027-02-28T10:00:00.000Z");
    line.trouble = "down";
    for (let round = 0; round < 4; round++) {
      await renew();
      market.clock.forward(11 * MINUTE_MS);
      line.trouble = round === 3 ? "none" : "down";
      await reconcileCharges(market.service.ctx, planPaymentTarget);
    }
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    await renew();
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", pastDue: null });
  });
});

suite("a failed renewal", () => {
  test("three attempts in a week: then the free plan with its quotas", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    at("2027-04-05T10:00:00.000Z");
    await Promise.all([renew(), renew(), renew()]);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      pastDue: { since: "2027-04-05T10:00:00.000Z", tries: 1, nextTry: "2027-04-08T10:00:00.000Z" },
    });
    at("2027-04-08T10:00:00.000Z");
    await renew();
    await renew();
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      pastDue: { tries: 2, nextTry: "2027-04-12T10:00:00.000Z" },
    });
    assert.deepEqual(await quotasOf(person), builtInPlans.plans.pro.quotas, "the plan holds meanwhile");
    at("2027-04-12T10:00:00.000Z");
    await renew();
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "free",
      periodEnd: null,
      pastDue: null,
    });
    assert.deepEqual(await quotasOf(person), builtInPlans.plans.free.quotas);
    assert.deepEqual(await emailSubjects(person), [
      "Your plan pro has ended",
      "Renewal of your plan pro failed",
      "Renewal of your plan pro failed",
    ]);
    assert.deepEqual((await titlesOf(person.key)).slice(0, 4), [
      "Your plan pro ended: three attempts to charge $29.00 failed",
      "Your plan changed from pro to free",
      "The payment of $29.00 for your plan pro failed",
      "The payment of $29.00 for your plan pro failed",
    ]);
    const [ended] = await emailsToUser(market, person.key.userId);
    assert.match(unwrapLines(ended!.text), /29\.00 USD/);
    market.clock.forward(40 * DAY_MS);
    await renew();
    assert.deepEqual(chargedAmounts(person), []);
  });

  test("a later attempt succeeds: the month continues from the previous period", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_insufficient_funds";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    card = "";
    at("2027-04-08T10:00:00.000Z");
    await renew();
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      periodStart: "2027-04-05T10:00:00.000Z",
      periodEnd: "2027-05-05T10:00:00.000Z",
      pastDue: null,
    });
  });

  test("the owner chooses the plan again: paid at once; declined requests do not count as attempts", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    market.clock.forward(DAY_MS);
    person.session = await market.createSession(person.key.userId);
    for (let vain = 0; vain < 3; vain++) assertError(await choose(person, "pro"), 402, "INSUFFICIENT_FUNDS");
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", pastDue: { tries: 1 } });
    card = "";
    assert.equal((await choose(person, "pro")).status, 200);
    assert.deepEqual(chargedAmounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", pastDue: null });
    await renew();
    assert.equal(chargedAmounts(person).length, 1);
  });

  test("the bank requires confirmation: the owner gets an email; without confirmation it counts as an attempt", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_requires_action";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    const { payment } = await readSubscription(person);
    const [message] = await emailsToUser(market, person.key.userId);
    assert.equal(message?.link, payment.nextAction.url);
    market.clock.forward(DAY_MS + MINUTE_MS);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      payment: null,
      pastDue: { tries: 1 },
    });
    assert.equal((await emailSubjects(person))[0], "Renewal of your plan pro failed");
  });

  test("another method while confirmation is open: replaces the payment without an attempt", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    for (const day of ["05", "08"]) {
      at(`2027-04-${day}T10:00:00.000Z`);
      await renew();
    }
    card = "pm_test_requires_action";
    at("2027-04-12T10:00:00.000Z");
    await renew();
    card = "";
    const own = (await person.key.post("/v1/payment-methods", { token: "pm_test_ok" })).body.data.id;
    person.session = await market.createSession(person.key.userId);
    const reply = await choose(person, "pro", { paymentMethodId: own });
    assert.partialDeepStrictEqual(reply.body.data, {
      plan: "pro",
      periodStart: "2027-04-05T10:00:00.000Z",
      periodEnd: "2027-05-05T10:00:00.000Z",
      pastDue: null,
    });
    assert.deepEqual(methodsOf(person), [own]);
    assert.deepEqual(await emailSubjects(person), [
      "Confirm the payment for your plan pro",
      "Renewal of your plan pro failed",
      "Renewal of your plan pro failed",
    ]);
    const { title } = await lastOf(person.key, "plan.confirmation_required");
    assert.equal(title, "Confirm the payment of $29.00 for your plan pro");
  });

  test("a removed method: the default pays; without a default it counts as an attempt", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    const own = (await person.key.post("/v1/payment-methods", { token: "pm_test_ok" })).body.data.id;
    await market.query("update subscriptions set payment_method_id = $1 where user_id = $2", [
      own,
      person.key.userId,
    ]);
    at("2027-04-05T10:00:00.000Z");
    await renew();
    assert.deepEqual(methodsOf(person), [own]);
    assert.equal((await person.key.delete(`/v1/payment-methods/${own}`)).status, 200);
    at("2027-05-05T10:00:00.000Z");
    await renew();
    assert.deepEqual(methodsOf(person), [own, "pm_test_ok"]);
    const everybodys = shared.splice(0);
    at("2027-06-05T10:00:00.000Z");
    await renew();
    await renew();
    shared.push(...everybodys);
    assert.equal(methodsOf(person).length, 2);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      pastDue: { tries: 1 },
      payment: null,
    });
  });

  test("a failed own method: the next attempt uses the default", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    const own = (await person.key.post("/v1/payment-methods", { token: "pm_test_declined" })).body.data.id;
    await market.query("update subscriptions set payment_method_id = $1 where user_id = $2", [
      own,
      person.key.userId,
    ]);
    at("2027-04-05T10:00:00.000Z");
    await renew();
    at("2027-04-08T10:00:00.000Z");
    await renew();
    assert.deepEqual(methodsOf(person), ["pm_test_ok"]);
    const methods = (await person.key.get(`${PATH}/payments`)).body.data;
    assert.deepEqual(
      methods.map(({ status }: { status: string }) => status),
      ["completed", "failed", "completed"],
    );
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", pastDue: null });
  });

  test("the owner chooses the free plan: applies at once, without further attempts", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    card = "";
    person.session = await market.createSession(person.key.userId);
    assert.equal((await choose(person, "free")).body.data.plan, "free");
    market.clock.forward(10 * DAY_MS);
    await renew();
    assert.deepEqual(chargedAmounts(person), []);
    assert.equal((await emailSubjects(person)).length, 1);
  });

  test("an unknown method: counts as an attempt", async () => {
    const person = await createSubscriber("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_of_nobody";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    await renew();
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      pastDue: { tries: 1 },
      payment: null,
    });
  });
});

test("any outages: each price pays for one month, and periods do not overlap", async () => {
  const waits = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 2, maxLength: 6 });
  const begins = fc.constantFrom(
    "2027-01-31T10:00:00.000Z",
    "2028-02-29T23:00:00.000Z",
    "2027-03-01T00:00:00.000Z",
  );
  await fc.assert(
    fc.asyncProperty(begins, waits, async (since, days) => {
      const { key } = await createSubscriber("pro", since);
      for (const some of days) {
        market.clock.forward(some * DAY_MS);
        await renew();
      }
      const { rows: paid } = await market.query(
        `select period_start as start, period_end as end, extract(epoch from period_end - period_start) / 86400 as days
           from subscription_payments where user_id = $1 and status = 'completed' order by id`,
        [key.userId],
      );
      for (const [at, month] of paid.entries()) {
        assert.ok(Number(month.days) >= 28 && Number(month.days) <= 31, `a month of ${month.days} days`);
        if (at > 0) assert.ok(month.start >= paid[at - 1].end);
      }
    }),
    { numRuns: runs(6, 3) },
  );
});

test("monthAfter: the same day in each month that has it, without gaps", () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date("2026-01-01"), max: new Date("2090-01-01"), noInvalidDate: true }),
      fc.integer({ min: 1, max: 30 }),
      (start, months) => {
        const day = start.getUTCDate();
        let at = start;
        for (let month = 0; month < months; month++) {
          const next = monthAfter(at, day);
          const lastDay = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 0)).getUTCDate();
          assert.equal(next.getUTCDate(), Math.min(day, lastDay));
          assert.equal((at.getUTCMonth() + 1) % 12, next.getUTCMonth());
          assert.equal(next.getTime() % DAY_MS, start.getTime() % DAY_MS);
          at = next;
        }
      },
    ),
  );
});
