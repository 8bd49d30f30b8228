import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import type { Plan } from "@stoa/contract";
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
import type { Payments } from "../../integrations/payments/payments.ts";
import { reconcileCharges, syncCharge } from "../charges/charges.ts";
import { listOpenMoney } from "../charges/open-money.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import { applyDueDowngrades, changePlan } from "./subscription.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const PATH = "/v1/account/subscription";

const line: PaymentConnection = { trouble: "none" };
/** What the provider was asked to charge, in the order of asking; a repeat under the same id is no new charge. */
const charged = new Map<string, bigint>();
/** What somebody gave back at the provider. */
const givenBack = new Set<string>();

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

/** Keeps what is charged, whether or not we hear of it, and tells what was given back. */
const recorded = (payments: Payments): Payments => ({
  ...payments,
  async charge(request) {
    const outcome = await payments.charge(request);
    if (outcome.state === "succeeded") charged.set(request.orderId, request.amountMinor);
    return outcome;
  },
  async findCharge(paymentId) {
    const found = await payments.findCharge(paymentId);
    return found?.state === "succeeded" ? { ...found, isRefunded: givenBack.has(paymentId) } : found;
  },
});

interface Person {
  key: Client;
  session: Client;
}

async function hasPerson(plan?: Plan): Promise<Person> {
  const key = await market.createUser(plan && { plan });
  return { key, session: await market.createSession(key.userId) };
}

/** Somebody who pays for a plan since now. */
async function hasPaying(plan: "pro" | "business"): Promise<Person> {
  const person = await hasPerson();
  const reply = await choose(person, plan);
  assert.equal(reply.status, 200, reply.text);
  charged.clear();
  return person;
}

const choose = ({ session }: Person, plan: string, more: object = {}) => session.put(PATH, { plan, ...more });
const standing = async ({ key }: Person) => (await key.get(PATH)).body.data;
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
  test("is charged for a month, holds at once for every key, and is announced", async () => {
    const person = await hasPerson();
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

  test("from a plan that is paid for costs less by what is unused of its period, which begins anew", async () => {
    const person = await hasPaying("pro");
    const { periodStart, periodEnd } = await standing(person);
    market.clock.forward((Date.parse(periodEnd) - Date.parse(periodStart)) / 8);
    assert.equal((await choose(person, "business")).status, 200);
    // Seven eighths of 29.00 are 25.375: the half cent is the owner's.
    assert.deepEqual([...charged.values()], [9_900n - 2_538n]);
    assert.equal((await standing(person)).periodStart, market.clock.now.toISOString());
  });

  test("that is declined is 402, says why, and changes nothing", async () => {
    const person = await hasPerson();
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
    assert.partialDeepStrictEqual(await standing(person), { plan: "free", payment: null });
    assert.equal(await limitOf(person), 100);
    assert.deepEqual(await announced(person), []);
    assert.equal((await choose(person, "pro")).status, 200, "another method pays");
  });

  test("by a method that nobody has is 404", async () => {
    const person = await hasPerson();
    const reply = await choose(person, "pro", { paymentMethodId: "pm_nobodys" });
    assertError(reply, 404, "PAYMENT_METHOD_NOT_FOUND");
    assert.equal((await standing(person)).payment, null);
  });

  test("asked for many times at once is charged and announced once", async () => {
    const person = await hasPerson();
    const replies = await Promise.all(Array.from({ length: 8 }, () => choose(person, "pro")));
    for (const { status, text } of replies) assert.ok(status === 200 || status === 202, text);
    assert.equal(charged.size, 1);
    assert.equal((await standing(person)).plan, "pro");
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  test("to two plans at once is never charged twice over: the other is told so, or pays the difference", async () => {
    const person = await hasPerson();
    await Promise.all([choose(person, "pro"), choose(person, "business")]);
    const total = [...charged.values()].reduce((sum, amount) => sum + amount, 0n);
    const { plan } = await standing(person);
    assert.equal(total, plan === "pro" ? 2_900n : 9_900n);
  });

  test("that must be confirmed is 202, says where, and holds once it is confirmed", async () => {
    const person = await hasPerson();
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
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", payment: null });
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  test("that waits is taken back by choosing the present plan, and cannot be confirmed any more", async () => {
    const person = await hasPerson();
    const waiting = await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    assert.partialDeepStrictEqual((await choose(person, "free")).body.data, { plan: "free", payment: null });
    await press(waiting.body.data.payment.nextAction.url, "approve");
    market.clock.forward(2 * MINUTE_MS);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal((await standing(person)).plan, "free");
  });

  test("of unknown outcome is 202, and the job finds out under the same id", async () => {
    const person = await hasPerson();
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
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", payment: null });
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  test("of which the provider never heard is given up after ten minutes, and stands in nobody's way", async () => {
    const person = await hasPerson();
    line.trouble = "down";
    assert.equal((await choose(person, "pro")).status, 202);
    assertError(await choose(person, "business"), 409, "CONFLICT");
    line.trouble = "none";
    market.clock.forward(10 * MINUTE_MS + 1);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal((await standing(person)).payment, null);
    assert.equal((await choose(person, "business")).status, 200);
    assert.deepEqual([...charged.values()], [9_900n]);
  });

  /** Given up, and charged all the same: the provider heard of it late, and its notice is lost. */
  async function isChargedLate(person: Person): Promise<string> {
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

  test("that was given up and is charged late holds from when that is found", async () => {
    const person = await hasPerson();
    const paymentId = await isChargedLate(person);
    await Promise.all([
      reconcileCharges(market.service.ctx, planPaymentTarget),
      reconcileCharges(market.service.ctx, planPaymentTarget),
    ]);
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", payment: null });
    assert.deepEqual(await movesOf(person), ["free → pro"]);
    await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.deepEqual(await movesOf(person), ["free → pro"]);
  });

  /** The oldest payment that came in vain, as the operator is told of it. */
  const unusable = async () =>
    (await listOpenMoney(market.service.ctx.db, market.clock.now)).find(({ state }) => state === "unusable")!
      .oldest;

  test("that is charged late when another was paid changes nothing, and the operator hears of it", async (t) => {
    const person = await hasPerson();
    const paymentId = await isChargedLate(person);
    assert.equal((await choose(person, "business")).status, 200);
    const reported = t.mock.method(market.service.ctx.log, "error");
    for (let times = 0; times < 3; times++)
      await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.equal((await standing(person)).plan, "business");
    const lines = reported.mock.calls.filter(
      ({ arguments: [about] }) => toId("pay", Object(about).payment) === paymentId,
    );
    assert.equal(lines.length, 1, "once, however often it is asked about");
    assert.equal((await unusable())?.id, paymentId);
    givenBack.add(paymentId);
    await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.equal(await unusable(), null);
  });

  test("that is charged late in vain stays so, and is told of until the provider has given it back, however late", async () => {
    const person = await hasPerson();
    const paymentId = await isChargedLate(person);
    await market.query("update users set plan = 'enterprise' where id = $1", [person.key.userId]);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal((await unusable())?.id, paymentId);
    await market.query("update users set plan = 'free' where id = $1", [person.key.userId]);
    await syncCharge(market.service.ctx, planPaymentTarget, paymentId);
    assert.equal((await standing(person)).plan, "free", "it may be on its way back by now");
    market.clock.forward(30 * DAY_MS);
    givenBack.add(paymentId);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.equal(await unusable(), null);
    assert.equal((await standing(person)).plan, "free");
  });

  test("and given back before we heard of it is not paid", async () => {
    const person = await hasPerson();
    line.trouble = "answers get lost";
    assert.equal((await choose(person, "pro")).status, 202);
    line.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    const [paymentId] = [...charged.keys()];
    givenBack.add(paymentId!);
    await reconcileCharges(market.service.ctx, planPaymentTarget);
    assert.partialDeepStrictEqual(await standing(person), { plan: "free", payment: null });
  });
});

suite("a downgrade", () => {
  test("waits for the end of the paid period, and then holds and is announced once", async () => {
    const person = await hasPaying("business");
    const { periodEnd } = await standing(person);
    const reply = await choose(person, "free");
    assert.equal(reply.status, 200, reply.text);
    assert.partialDeepStrictEqual(reply.body.data, {
      plan: "business",
      scheduled: { plan: "free", effectiveDate: periodEnd },
    });
    market.clock.now = new Date(Date.parse(periodEnd) - 1);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await standing(person)).plan, "business");
    market.clock.forward(1);
    await Promise.all(Array.from({ length: 4 }, () => applyDueDowngrades(market.service.ctx)));
    await applyDueDowngrades(market.service.ctx);
    assert.partialDeepStrictEqual(await standing(person), {
      plan: "free",
      periodEnd: null,
      scheduled: null,
    });
    assert.deepEqual(await movesOf(person), ["business → free", "free → business"]);
    assert.equal(charged.size, 0);
  });

  test("that cannot be applied keeps no other from its turn, and is applied when it can", async () => {
    const [stuck, other] = [await hasPaying("pro"), await hasPaying("pro")];
    for (const person of [stuck, other]) await choose(person, "free");
    market.clock.now = new Date((await standing(other)).periodEnd);
    const unless = `id <> '${stuck.key.userId}' or plan <> 'free'`;
    await market.query(`alter table users add constraint broken check (${unless}) not valid`);
    await applyDueDowngrades(market.service.ctx);
    await market.query("alter table users drop constraint broken");
    const plans = async () => [(await standing(stuck)).plan, (await standing(other)).plan];
    assert.deepEqual(await plans(), ["pro", "free"]);
    await applyDueDowngrades(market.service.ctx);
    assert.deepEqual(await plans(), ["free", "free"]);
  });

  test("is taken back by choosing the present plan", async () => {
    const person = await hasPaying("pro");
    await choose(person, "free");
    assert.partialDeepStrictEqual((await choose(person, "pro")).body.data, { plan: "pro", scheduled: null });
    market.clock.forward(40 * DAY_MS);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await standing(person)).plan, "pro");
    assert.deepEqual([charged.size, await movesOf(person)], [0, ["free → pro"]]);
  });

  test("that is scheduled is forgotten by an upgrade", async () => {
    const person = await hasPaying("pro");
    await choose(person, "free");
    assert.equal((await choose(person, "business")).body.data.scheduled, null);
    market.clock.forward(40 * DAY_MS);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await standing(person)).plan, "business");
  });

  test("to a plan that costs something comes due for its renewal at the period's end", async () => {
    const person = await hasPaying("business");
    const { periodEnd } = await standing(person);
    await choose(person, "pro");
    market.clock.now = new Date(periodEnd);
    await applyDueDowngrades(market.service.ctx);
    assert.partialDeepStrictEqual(await standing(person), { plan: "pro", periodEnd, scheduled: null });
  });

  test("from a plan that nobody paid for holds at once", async () => {
    const person = await hasPerson("business");
    assert.partialDeepStrictEqual((await choose(person, "free")).body.data, {
      plan: "free",
      scheduled: null,
    });
    assert.deepEqual(await movesOf(person), ["business → free"]);
  });

  test("does not touch a plan that an operator gave meanwhile", async () => {
    const person = await hasPaying("pro");
    await choose(person, "free");
    const { ctx } = market.service;
    await ctx.db.transaction().execute((tx) => changePlan(ctx, tx, person.key.userId, "enterprise"));
    market.clock.forward(40 * DAY_MS);
    await applyDueDowngrades(ctx);
    assert.partialDeepStrictEqual(await standing(person), { plan: "enterprise", scheduled: null });
  });
});

suite("a plan that an administrator gives while another one is being paid", () => {
  const give = async ({ key }: Person, plan: Plan) => {
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    return admin.patch(`/v1/admin/users/${toId("usr", key.userId)}`, { plan });
  };

  test("stays: the payment is given up, and cannot be confirmed any more", async () => {
    const person = await hasPerson();
    const waiting = await choose(person, "pro", { paymentMethodId: "pm_test_requires_action" });
    assert.equal((await give(person, "enterprise")).status, 200);
    await press(waiting.body.data.payment.nextAction.url, "approve");
    assert.partialDeepStrictEqual(await standing(person), { plan: "enterprise", payment: null });
    assert.equal(charged.size, 0);
  });

  test("is 409 while nobody knows whether it was paid", async () => {
    const person = await hasPerson();
    line.trouble = "answers get lost";
    await choose(person, "pro");
    assertError(await give(person, "enterprise"), 409, "INVALID_STATE");
    line.trouble = "none";
    assert.equal((await give(person, "enterprise")).status, 200);
    assert.deepEqual(await movesOf(person), ["pro → enterprise", "free → pro"]);
  });
});

suite("a plan by agreement with the operator", () => {
  test("is not to be had by oneself: 422 that names the plan", async () => {
    const person = await hasPerson();
    assertError(await choose(person, "enterprise"), 422, "VALIDATION_ERROR", "plan");
    assertError(await choose(person, "gold"), 400, "INVALID_REQUEST", "plan");
    assert.equal((await standing(person)).plan, "free");
  });

  test("is not to be left by oneself either", async () => {
    const person = await hasPerson("enterprise");
    assertError(await choose(person, "pro"), 422, "VALIDATION_ERROR", "plan");
    assert.equal(charged.size, 0);
  });

  test("is on the list of offers without a price", async () => {
    const { offers } = await standing(await hasPerson());
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

test("a subscription is read with any key, and changed by a person alone", async () => {
  const person = await hasPerson();
  assert.equal((await person.key.get(PATH)).body.data.plan, "free");
  const details = assertError(await person.key.put(PATH, { plan: "pro" }), 403, "UNAUTHORIZED");
  assert.equal(details.required, "session");
});

test("what somebody asked of their plan is in the audit log", async () => {
  const person = await hasPaying("pro");
  const { rows } = await market.query("select action, ip, details from audit_log where actor_id = $1", [
    person.key.userId,
  ]);
  assert.deepEqual(rows, [
    { action: "subscription.requested", ip: "127.0.0.1", details: { from: "free", to: "pro" } },
  ]);
});

test("a paid month ends on the same day of the next, or on its last", async () => {
  for (const [start, end] of [
    ["2027-01-31T10:00:00.000Z", "2027-02-28T10:00:00.000Z"],
    ["2028-01-31T10:00:00.000Z", "2028-02-29T10:00:00.000Z"],
    ["2027-12-31T23:59:59.999Z", "2028-01-31T23:59:59.999Z"],
    ["2027-02-28T10:00:00.000Z", "2027-03-28T10:00:00.000Z"],
  ]) {
    market.clock.now = new Date(start!);
    assert.equal((await standing(await hasPaying("pro"))).periodEnd, end);
  }
});
