import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
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
const DAY_MS = 86_400_000;
const PATH = "/v1/account/subscription";

const line: PaymentConnection = { trouble: "none" };
/** In the place of everybody's card, which is good otherwise. */
let card = "";
const charged: ChargeRequest[] = [];
/** The methods that everybody has. */
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

/** Keeps what was charged, whether or not we hear of it. */
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

/** Somebody who pays for a plan since a moment. */
async function hasPaying(plan: "pro" | "business", since = "2027-01-31T10:00:00.000Z"): Promise<Person> {
  market.clock.now = new Date(since);
  const key = await market.createUser();
  const person = { key, session: await market.createSession(key.userId) };
  assert.equal((await choose(person, plan)).status, 200);
  charged.length = 0;
  return person;
}

const choose = ({ session }: Person, plan: string, more: object = {}) => session.put(PATH, { plan, ...more });
const standing = async ({ key }: Person) => (await key.get(PATH)).body.data;
const renew = () => renewSubscriptions(market.service.ctx);
const amounts = ({ key }: Person) =>
  charged.filter(({ userId }) => userId === toId("usr", key.userId)).map(({ amountMinor }) => amountMinor);
const methodsOf = ({ key }: Person) =>
  charged.filter(({ userId }) => userId === toId("usr", key.userId)).map(({ methodId }) => methodId);
const subjects = async ({ key }: Person) =>
  (await emailsToUser(market, key.userId)).map(({ subject }) => subject);
/** Those of the keys, as they hold now. */
async function quotasOf({ key }: Person) {
  // What a job changed is heard of a moment later, where keys are remembered.
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

suite("a plan whose month ends", () => {
  test("is charged for the next one then, once, however many workers ask", async () => {
    const person = await hasPaying("pro");
    at("2027-02-28T09:59:59.999Z");
    await renew();
    assert.deepEqual(amounts(person), [], "not before");
    at("2027-02-28T10:00:00.000Z");
    await Promise.all(Array.from({ length: 20 }, renew));
    await renew();
    assert.deepEqual(amounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      periodStart: "2027-02-28T10:00:00.000Z",
      periodEnd: "2027-03-31T10:00:00.000Z",
      pastDue: null,
      payment: null,
    });
  });

  test("is booked for what it costs", async () => {
    await hasPaying("business");
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

  test("is not charged for months in which nobody asked, and goes on with a month from then", async () => {
    const person = await hasPaying("pro");
    at("2027-07-10T12:00:00.000Z");
    await renew();
    await renew();
    assert.deepEqual(amounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await standing(person), {
      periodStart: "2027-07-10T12:00:00.000Z",
      periodEnd: "2027-08-10T12:00:00.000Z",
    });
    at("2027-08-10T12:00:00.000Z");
    await renew();
    assert.deepEqual(amounts(person), [2_900n, 2_900n]);
    assert.equal((await standing(person)).periodEnd, "2027-09-10T12:00:00.000Z");
  });

  test("after a standstill shortly before its old day: the next one is charged a month later, not at that day", async () => {
    const person = await hasPaying("pro", "2027-03-01T10:00:00.000Z");
    at("2027-05-30T10:00:00.000Z");
    await renew();
    at("2027-06-01T10:00:00.000Z");
    await renew();
    assert.deepEqual(amounts(person), [2_900n]);
    assert.equal((await standing(person)).periodEnd, "2027-06-30T10:00:00.000Z");
  });

  test("that was asked for before a standstill and is paid after it: the month begins when it is paid", async () => {
    const person = await hasPaying("pro");
    at("2027-02-28T10:00:00.000Z");
    line.trouble = "down";
    await renew();
    line.trouble = "none";
    at("2027-04-15T09:00:00.000Z");
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    await renew();
    assert.deepEqual(amounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await standing(person), {
      periodStart: "2027-04-15T09:00:00.000Z",
      periodEnd: "2027-05-15T09:00:00.000Z",
    });
  });

  test("costs what the plan costs by then", async () => {
    const person = await hasPaying("pro");
    const { config } = market.service.ctx;
    const { plans } = builtInPlans;
    config.planConfig = { ...builtInPlans, plans: { ...plans, pro: { ...plans.pro, monthlyPrice: 31.5 } } };
    at("2027-02-28T10:00:00.000Z");
    await renew();
    config.planConfig = builtInPlans;
    assert.deepEqual(amounts(person), [3_150n]);
  });

  test("is not charged when a downgrade was asked for, until that holds", async () => {
    const person = await hasPaying("business");
    await choose(person, "pro");
    at("2027-02-28T10:00:00.000Z");
    await renew();
    assert.deepEqual(amounts(person), []);
    await applyDueDowngrades(market.service.ctx);
    await renew();
    assert.deepEqual(amounts(person), [2_900n], "the new plan's price");
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      periodEnd: "2027-03-31T10:00:00.000Z",
    });
  });

  test("is charged once when the answer is lost, and found out under the same id", async () => {
    const person = await hasPaying("pro");
    at("2027-02-28T10:00:00.000Z");
    line.trouble = "answers get lost";
    await renew();
    await renew();
    line.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    await Promise.all([reconcileCharges(market.service.ctx, planPaymentTarget), renew()]);
    await renew();
    assert.deepEqual(amounts(person), [2_900n]);
    assert.equal((await standing(person)).periodEnd, "2027-03-31T10:00:00.000Z");
  });

  test("loses none of its tries while the provider is away", async () => {
    const person = await hasPaying("pro");
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
    assert.deepEqual(amounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", pastDue: null });
  });
});

suite("a renewal that cannot be paid", () => {
  test("is tried three times in a week, and then the free plan holds with its quotas", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    at("2027-04-05T10:00:00.000Z");
    await Promise.all([renew(), renew(), renew()]);
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      pastDue: { since: "2027-04-05T10:00:00.000Z", tries: 1, nextTry: "2027-04-08T10:00:00.000Z" },
    });
    at("2027-04-08T10:00:00.000Z");
    await renew();
    await renew();
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      pastDue: { tries: 2, nextTry: "2027-04-12T10:00:00.000Z" },
    });
    assert.deepEqual(await quotasOf(person), builtInPlans.plans.pro.quotas, "the plan holds meanwhile");
    at("2027-04-12T10:00:00.000Z");
    await renew();
    assert.partialDeepStrictEqual(await standing(person), { plan: "free", periodEnd: null, pastDue: null });
    assert.deepEqual(await quotasOf(person), builtInPlans.plans.free.quotas);
    assert.deepEqual(await subjects(person), [
      "Your plan pro has ended",
      "Renewal of your plan pro failed",
      "Renewal of your plan pro failed",
    ]);
    const [ended] = await emailsToUser(market, person.key.userId);
    assert.match(unwrapLines(ended!.text), /29\.00 USD/);
    market.clock.forward(40 * DAY_MS);
    await renew();
    assert.deepEqual(amounts(person), []);
  });

  test("that succeeds at a later try pays for the month from where the last one ended", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_insufficient_funds";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    card = "";
    at("2027-04-08T10:00:00.000Z");
    await renew();
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      periodStart: "2027-04-05T10:00:00.000Z",
      periodEnd: "2027-05-05T10:00:00.000Z",
      pastDue: null,
    });
  });

  test("is paid at once when its owner chooses the plan again, and their own vain tries are not counted", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    market.clock.forward(DAY_MS);
    person.session = await market.createSession(person.key.userId);
    for (let vain = 0; vain < 3; vain++) assertError(await choose(person, "pro"), 402, "INSUFFICIENT_FUNDS");
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", pastDue: { tries: 1 } });
    card = "";
    assert.equal((await choose(person, "pro")).status, 200);
    assert.deepEqual(amounts(person), [2_900n]);
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", pastDue: null });
    await renew();
    assert.equal(amounts(person).length, 1);
  });

  test("because the bank asks its owner to confirm is written to them, and counts when they do not", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_requires_action";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    const { payment } = await standing(person);
    const [message] = await emailsToUser(market, person.key.userId);
    assert.equal(message?.link, payment.nextAction.url);
    market.clock.forward(DAY_MS + MINUTE_MS);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      payment: null,
      pastDue: { tries: 1 },
    });
    assert.equal((await subjects(person))[0], "Renewal of your plan pro failed");
  });

  test("that waits to be confirmed is given up for another method, and that is no try", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
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
    assert.deepEqual(await subjects(person), [
      "Confirm the payment for your plan pro",
      "Renewal of your plan pro failed",
      "Renewal of your plan pro failed",
    ]);
  });

  test("because its method was removed is paid by the default, and counts as tried where there is none", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
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
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      pastDue: { tries: 1 },
      payment: null,
    });
  });

  test("by its own method is tried by the default afterwards", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
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
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", pastDue: null });
  });

  test("is left at once by choosing the free plan, and not tried again", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_declined";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    card = "";
    person.session = await market.createSession(person.key.userId);
    assert.equal((await choose(person, "free")).body.data.plan, "free");
    market.clock.forward(10 * DAY_MS);
    await renew();
    assert.deepEqual(amounts(person), []);
    assert.equal((await subjects(person)).length, 1);
  });

  test("because its method is gone counts as tried", async () => {
    const person = await hasPaying("pro", "2027-03-05T10:00:00.000Z");
    card = "pm_test_of_nobody";
    at("2027-04-05T10:00:00.000Z");
    await renew();
    await renew();
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "pro",
      pastDue: { tries: 1 },
      payment: null,
    });
  });
});

test("any standstills: each price pays for one month, and no two months overlap", async () => {
  const waits = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 2, maxLength: 6 });
  const begins = fc.constantFrom(
    "2027-01-31T10:00:00.000Z",
    "2028-02-29T23:00:00.000Z",
    "2027-03-01T00:00:00.000Z",
  );
  await fc.assert(
    fc.asyncProperty(begins, waits, async (since, days) => {
      const { key } = await hasPaying("pro", since);
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
    { numRuns: 6 },
  );
});

test("periods begin on the same day of every month that has it, and leave no gap", () => {
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
