import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import type { Plan } from "@stoa/contract";
import { sql } from "kysely";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
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
import type { Payments } from "../../integrations/payments/payments.ts";
import { reconcileCharges, syncCharge } from "../charges/charges.ts";
import { listOpenMoney } from "../charges/open-money.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import { renewSubscriptions } from "./renewal.ts";
import { applyDueDowngrades, changePlan } from "./subscription.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/subscription";

const line: PaymentConnection = { trouble: "none" };
/** Amounts by payment id: a repeated charge under the same id is not a new one. */
const charged = new Map<string, bigint>();
/** Payments refunded at the provider. */
const refundedPayments = new Set<string>();

let provider: FakeProvider;
let market: Market;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  market = await openMarket({
    payments: withConnectionTrouble(line, recorded(createFakePayments({ origin: provider.origin }))),
    config: { planConfig: builtInPlans },
  });
});
beforeEach(() => {
  line.trouble = "none";
  charged.clear();
});
after(async () => {
  await market.close();
  await provider.close();
});

/** Records charges even if the answer is lost, and reports refunds. */
const recorded = (payments: Payments): Payments => ({
  ...payments,
  async charge(request) {
    const outcome = await payments.charge(request);
    if (outcome.state === "succeeded") charged.set(request.orderId, request.amountMinor);
    return outcome;
  },
  async findCharge(paymentId) {
    const found = await payments.findCharge(paymentId);
    return found?.state === "succeeded" ? { ...found, isRefunded: refundedPayments.has(paymentId) } : found;
  },
});

interface Person {
  key: Client;
  session: Client;
}

async function createPerson(plan?: Plan): Promise<Person> {
  const key = await market.createUser(plan && { plan });
  return { key, session: await market.createSession(key.userId) };
}

/** A subscriber since now. */
async function createSubscriber(plan: "pro" | "business"): Promise<Person> {
  const person = await createPerson();
  const reply = await choose(person, plan);
  assert.equal(reply.status, 200, reply.text);
  charged.clear();
  return person;
}

const choose = ({ session }: Person, plan: string, more: object = {}) => session.put(PATH, { plan, ...more });
const readSubscription = async ({ key }: Person) => (await key.get(PATH)).body.data;
const limitOf = async ({ key }: Person) =>
  Number((await key.get("/v1/categories")).headers.get("x-ratelimit-limit"));

async function announced({ key }: Person) {
  const { data } = (await key.get("/v1/events?type=user.subscription.updated")).body;
  return data
    .map((event: { data: { subscription: object } }) => event.data.subscription)
    .map(({ oldPlan, newPlan, effectiveDate }: Record<string, string>) => ({
      oldPlan,
      newPlan,
      effectiveDate,
    }));
}
const movesOf = async (person: Person) =>
  (await announced(person)).map(({ oldPlan, newPlan }: Record<string, string>) => `${oldPlan} → ${newPlan}`);

async function press(url: string, decision: "approve" | "decline"): Promise<void> {
  const reply = await fetch(url, {
    method: "POST",
    body: new URLSearchParams({ decision }),
    redirect: "manual",
  });
  assert.equal(reply.status, 303);
}

suite("an upgrade", () => {
  test("charges a month, applies at once to every key, and publishes an event", async () => {
    const person = await createPerson();
    assert.equal(await limitOf(person), 100);
    const reply = await choose(person, "pro");
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual([...charged.values()], [2_900n]);
    assert.partialDeepStrictEqual(reply.body.data, {
      plan: "pro",
      periodStart: market.clock.now.toISOString(),
      periodEnd: "2026-07-15T12:00:00.000Z",
      scheduled: null,
      payment: null,
    });
    const usage = await person.key.get("/v1/account/usage");
    assert.deepEqual(
      usage.body.data.windows.map(({ limit, used }: { limit: number; used: number }) => [limit, used]),
      [
        [100, 0],
        [1_000, 1],
        [10_000, 0],
      ],
      "the hour goes on with what was used of it",
    );
    assert.deepEqual(await announced(person), [
      { oldPlan: "free", newPlan: "pro", effectiveDate: market.clock.now.toISOString() },
    ]);
  });

  test("from a paid plan: deducts the unused part; a new period begins", async () => {
    const person = await createSubscriber("pro");
    const { periodStart, periodEnd } = await readSubscription(person);
    market.clock.forward((Date.parse(periodEnd) - Date.parse(periodStart)) / 8);
    assert.equal((await choose(person, "business")).status, 200);
    // 7/8 of 29.00 is 25.375: the owner gets the half cent.
    assert.deepEqual([...charged.values()], [9_900n - 2_538n]);
    assert.equal((await readSubscription(person)).periodStart, market.clock.now.toISOString());
  });

  test("declined: 402 with the reason, nothing changes", async () => {
    const person = await createPerson();
    for (const [paymentMethodId, declineCode] of [
      ["pm_test_declined", "card_declined"],
      ["pm_test_insufficient_funds", "insufficient_funds"],
    ]) {
      const details = assertError(
        await choose(person, "pro", { paymentMethodId }),
        402,
        "INSUFFICIENT_FUNDS",
      );
      assert.equal(details.declineCode, declineCode);
    }
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "free", payment: null });
    assert.equal(await limitOf(person), 100);
    assert.deepEqual(await announced(person), []);
    assert.equal((await choose(person, "pro")).status, 200, "another method pays");
  });

  test("unknown payment method: 404", async () => {
    const person = await createPerson();
    const reply = await choose(person, "pro", { paymentMethodId: "pm_nobodys" });
    assertError(reply, 404, "PAYMENT_METHOD_NOT_FOUND");
    assert.equal((await readSubscription(person)).payment, null);
  });

  test("concurrent requests: one charge and one event", async () => {
    const person = await createPerson();
    const replies = await Promise.all(Array.from({ length: 8 }, () => choose(person, "pro")));
    for (const { status, text } of replies) assert.ok(status === 200 || status === 202, text);
    assert.equal(charged.size, 1);
    assert.equal((await readSubscription(person)).plan, "pro");
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  test("concurrent requests for two plans: one is refused or pays the difference", async () => {
    const person = await createPerson();
    await Promise.all([choose(person, "pro"), choose(person, "business")]);
    const total = [...charged.values()].reduce((sum, amount) => sum + amount, 0n);
    const { plan } = await readSubscription(person);
    assert.equal(total, plan === "pro" ? 2_900n : 9_900n);
  });

  test("confirmation required: 202 with the URL; applies after confirmation", async () => {
    const person = await createPerson();
    const reply = await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    assert.equal(reply.status, 202, reply.text);
    const { payment, plan } = reply.body.data;
    assert.equal(plan, "free");
    assert.partialDeepStrictEqual(payment, {
      plan: "pro",
      status: "requires_action",
      amount: 29,
      currency: "USD",
    });
    await press(payment.nextAction.url, "approve");
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", payment: null });
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  test("waiting for confirmation: choosing the present plan cancels it", async () => {
    const person = await createPerson();
    const waiting = await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    assert.partialDeepStrictEqual((await choose(person, "free")).body.data, { plan: "free", payment: null });
    await press(waiting.body.data.payment.nextAction.url, "approve");
    market.clock.forward(2 * MINUTE_MS);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal((await readSubscription(person)).plan, "free");
  });

  test("without the provider's answer: 202; the job settles it under the same id", async () => {
    const person = await createPerson();
    line.trouble = "answers get lost";
    const reply = await choose(person, "pro");
    assert.equal(reply.status, 202);
    assert.equal(reply.body.data.payment.status, "pending");
    assert.equal((await choose(person, "pro")).status, 202, "asking again charges nothing new");
    line.trouble = "none";
    market.clock.forward(MINUTE_MS + 1);
    await Promise.all([
      reconcileCharges(market.service.ctx, planPaymentTarget),
      reconcileCharges(market.service.ctx, planPaymentTarget),
    ]);
    assert.equal(charged.size, 1);
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", payment: null });
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  test("unknown to the provider: canceled after ten minutes", async () => {
    const person = await createPerson();
    line.trouble = "down";
    assert.equal((await choose(person, "pro")).status, 202);
    assertError(await choose(person, "business"), 409, "CONFLICT");
    line.trouble = "none";
    market.clock.forward(10 * MINUTE_MS + 1);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal((await readSubscription(person)).payment, null);
    assert.equal((await choose(person, "business")).status, 200);
    assert.deepEqual([...charged.values()], [9_900n]);
  });

  /** Canceled here, and charged late by the provider without a webhook. */
  async function createLateCharge(person: Person): Promise<string> {
    line.trouble = "down";
    assert.equal((await choose(person, "pro")).status, 202);
    line.trouble = "none";
    market.clock.forward(10 * MINUTE_MS + 1);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    const { rows } = await market.query("select id from subscription_payments where user_id = $1", [
      person.key.userId,
    ]);
    const orderId = toId("pay", rows[0].id);
    await createFakePayments({ origin: provider.origin }).charge({
      ...{ orderId, amountMinor: 2_900n, currency: "USD", methodId: "pm_test_ok" },
      ...{ userId: person.key.userId, description: "Stoa pro, one month", buyer: "present", recurs: true },
    });
    market.clock.forward(60 * MINUTE_MS);
    return orderId;
  }

  test("canceled and charged late: the job applies it", async () => {
    const person = await createPerson();
    const paymentId = await createLateCharge(person);
    await Promise.all([
      reconcileCharges(market.service.ctx, planPaymentTarget),
      reconcileCharges(market.service.ctx, planPaymentTarget),
    ]);
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", payment: null });
    assert.deepEqual(await movesOf(person), ["free → pro"]);
    await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  /** The oldest unusable payment in the operator's list. */
  const unusable = async () =>
    (await listOpenMoney(market.service.ctx.db, market.clock.now)).find(({ state }) => state === "unusable")!
      .oldest;

  test("charged late after another payment: changes nothing and is reported", async (t) => {
    const person = await createPerson();
    const paymentId = await createLateCharge(person);
    assert.equal((await choose(person, "business")).status, 200);
    const reported = t.mock.method(market.service.ctx.log, "error");
    for (let times = 0; times < 3; times++)
      await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.equal((await readSubscription(person)).plan, "business");
    const lines = reported.mock.calls.filter(
      ({ arguments: [about] }) => toId("pay", Object(about).payment) === paymentId,
    );
    assert.equal(lines.length, 1, "once, however often it is asked about");
    assert.equal((await unusable())?.id, paymentId);
    refundedPayments.add(paymentId);
    await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.equal(await unusable(), null);
  });

  test("charged late and unusable: reported until the provider refunds it", async () => {
    const person = await createPerson();
    const paymentId = await createLateCharge(person);
    await market.query("update users set plan = 'enterprise' where id = $1", [person.key.userId]);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal((await unusable())?.id, paymentId);
    await market.query("update users set plan = 'free' where id = $1", [person.key.userId]);
    await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.equal((await readSubscription(person)).plan, "free", "it may be on its way back by now");
    market.clock.forward(30 * DAY_MS);
    refundedPayments.add(paymentId);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal(await unusable(), null);
    assert.equal((await readSubscription(person)).plan, "free");
  });

  test("refunded before we read it: not paid", async () => {
    const person = await createPerson();
    line.trouble = "answers get lost";
    assert.equal((await choose(person, "pro")).status, 202);
    line.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    const [paymentId] = [...charged.keys()];
    refundedPayments.add(paymentId!);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "free", payment: null });
  });
});

suite("a downgrade", () => {
  test("applies at the end of the paid period and publishes one event", async () => {
    const person = await createSubscriber("business");
    const { periodEnd } = await readSubscription(person);
    const reply = await choose(person, "free");
    assert.equal(reply.status, 200, reply.text);
    assert.partialDeepStrictEqual(reply.body.data, {
      plan: "business",
      scheduled: { plan: "free", effectiveDate: periodEnd },
    });
    market.clock.now = new Date(Date.parse(periodEnd) - 1);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await readSubscription(person)).plan, "business");
    market.clock.forward(1);
    await Promise.all(Array.from({ length: 4 }, () => applyDueDowngrades(market.service.ctx)));
    await applyDueDowngrades(market.service.ctx);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "free",
      periodEnd: null,
      scheduled: null,
    });
    assert.deepEqual(await movesOf(person), ["business → free", "free → business"]);
    assert.equal(charged.size, 0);
  });

  test("a failed downgrade: does not delay others and is retried", async () => {
    const [stuck, other] = [await createSubscriber("pro"), await createSubscriber("pro")];
    for (const person of [stuck, other]) await choose(person, "free");
    market.clock.now = new Date((await readSubscription(other)).periodEnd);
    const unless = `id <> '${stuck.key.userId}' or plan <> 'free'`;
    await market.query(`alter table users add constraint broken check (${unless}) not valid`);
    await applyDueDowngrades(market.service.ctx);
    await market.query("alter table users drop constraint broken");
    const plans = async () => [(await readSubscription(stuck)).plan, (await readSubscription(other)).plan];
    assert.deepEqual(await plans(), ["pro", "free"]);
    await applyDueDowngrades(market.service.ctx);
    assert.deepEqual(await plans(), ["free", "free"]);
  });

  test("choosing the present plan cancels it", async () => {
    const person = await createSubscriber("pro");
    await choose(person, "free");
    assert.partialDeepStrictEqual((await choose(person, "pro")).body.data, { plan: "pro", scheduled: null });
    market.clock.forward(40 * DAY_MS);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await readSubscription(person)).plan, "pro");
    assert.deepEqual([charged.size, await movesOf(person)], [0, ["free → pro"]]);
  });

  test("canceled while a worker waits for the account: not applied", async () => {
    const person = await createSubscriber("pro");
    await choose(person, "free");
    market.clock.now = new Date((await readSubscription(person)).periodEnd);
    const { userId } = person.key;
    const { applied } = await market.service.ctx.db.transaction().execute(async (tx) => {
      await sql`select from users where id = ${userId} for no key update`.execute(tx);
      await sql`update subscriptions set next_plan = null where user_id = ${userId}`.execute(tx);
      const applied = applyDueDowngrades(market.service.ctx);
      await waitForBlockedStatements(market);
      return { applied };
    });
    await applied;
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "pro", scheduled: null });
  });

  test("chosen while a renewal waits for the account: renews nothing", async () => {
    const person = await createSubscriber("pro");
    const { periodEnd } = await readSubscription(person);
    market.clock.now = new Date(periodEnd);
    const { userId } = person.key;
    const { renewed } = await market.service.ctx.db.transaction().execute(async (tx) => {
      await sql`select from users where id = ${userId} for no key update`.execute(tx);
      await sql`update subscriptions set next_plan = 'free' where user_id = ${userId}`.execute(tx);
      const renewed = renewSubscriptions(market.service.ctx);
      await waitForBlockedStatements(market);
      return { renewed };
    });
    await renewed;
    assert.equal((await readSubscription(person)).periodEnd, periodEnd);
  });

  test("an upgrade cancels it", async () => {
    const person = await createSubscriber("pro");
    await choose(person, "free");
    assert.equal((await choose(person, "business")).body.data.scheduled, null);
    market.clock.forward(40 * DAY_MS);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await readSubscription(person)).plan, "business");
  });

  test("to a paid plan: due for renewal at the period's end", async () => {
    const person = await createSubscriber("business");
    const { periodEnd } = await readSubscription(person);
    await choose(person, "pro");
    market.clock.now = new Date(periodEnd);
    await applyDueDowngrades(market.service.ctx);
    assert.partialDeepStrictEqual(await readSubscription(person), {
      plan: "pro",
      periodEnd,
      scheduled: null,
    });
  });

  test("from an unpaid plan: applies at once", async () => {
    const person = await createPerson("business");
    assert.partialDeepStrictEqual((await choose(person, "free")).body.data, {
      plan: "free",
      scheduled: null,
    });
    assert.deepEqual(await movesOf(person), ["business → free"]);
  });

  test("after an operator set another plan: not applied", async () => {
    const person = await createSubscriber("pro");
    await choose(person, "free");
    const { ctx } = market.service;
    await ctx.db.transaction().execute((tx) => changePlan(ctx, tx, person.key.userId, "enterprise"));
    market.clock.forward(40 * DAY_MS);
    await applyDueDowngrades(ctx);
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "enterprise", scheduled: null });
  });
});

suite("a plan set by an administrator during a payment", () => {
  const give = async ({ key }: Person, plan: Plan) => {
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    return admin.patch(`/v1/admin/users/${toId("usr", key.userId)}`, { plan });
  };

  test("the payment is canceled", async () => {
    const person = await createPerson();
    const waiting = await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    assert.equal((await give(person, "enterprise")).status, 200);
    await press(waiting.body.data.payment.nextAction.url, "approve");
    assert.partialDeepStrictEqual(await readSubscription(person), { plan: "enterprise", payment: null });
    assert.equal(charged.size, 0);
  });

  test("without the provider's answer: 409", async () => {
    const person = await createPerson();
    line.trouble = "answers get lost";
    await choose(person, "pro");
    assertError(await give(person, "enterprise"), 409, "INVALID_STATE");
    line.trouble = "none";
    assert.equal((await give(person, "enterprise")).status, 200);
    assert.deepEqual(await movesOf(person), ["pro → enterprise", "free → pro"]);
  });
});

suite("a plan by agreement", () => {
  test("PUT /account/subscription: 422 with the plan", async () => {
    const person = await createPerson();
    assertError(await choose(person, "enterprise"), 422, "VALIDATION_ERROR", "plan");
    assertError(await choose(person, "gold"), 400, "INVALID_REQUEST", "plan");
    assert.equal((await readSubscription(person)).plan, "free");
  });

  test("leaving it by PUT /account/subscription: 422", async () => {
    const person = await createPerson("enterprise");
    assertError(await choose(person, "pro"), 422, "VALIDATION_ERROR", "plan");
    assert.equal(charged.size, 0);
  });

  test("listed among the offers without a price", async () => {
    const { offers } = await readSubscription(await createPerson());
    assert.deepEqual(
      offers.map(({ plan, monthlyPrice }: { plan: Plan; monthlyPrice: number | null }) => [
        plan,
        monthlyPrice,
      ]),
      [
        ["free", 0],
        ["pro", 29],
        ["business", 99],
        ["enterprise", null],
      ],
    );
  });
});

test("any key can read the subscription; only a session can change it", async () => {
  const person = await createPerson();
  assert.equal((await person.key.get(PATH)).body.data.plan, "free");
  const details = assertError(await person.key.put(PATH, { plan: "pro" }), 403, "UNAUTHORIZED");
  assert.equal(details.required, "session");
});

test("requested changes: in the audit log", async () => {
  const person = await createSubscriber("pro");
  const { rows } = await market.query("select action, ip, details from audit_log where actor_id = $1", [
    person.key.userId,
  ]);
  assert.deepEqual(rows, [
    { action: "subscription.requested", ip: "127.0.0.1", details: { from: "free", to: "pro" } },
  ]);
});

test("monthAfter: the same day of the next month, or its last day", async () => {
  for (const [start, end] of [
    ["2027-01-31T10:00:00.000Z", "2027-02-28T10:00:00.000Z"],
    ["2028-01-31T10:00:00.000Z", "2028-02-29T10:00:00.000Z"],
    ["2027-12-31T23:59:59.999Z", "2028-01-31T23:59:59.999Z"],
    ["2027-02-28T10:00:00.000Z", "2027-03-28T10:00:00.000Z"],
  ]) {
    market.clock.now = new Date(start!);
    assert.equal((await readSubscription(await createSubscriber("pro"))).periodEnd, end);
  }
});
