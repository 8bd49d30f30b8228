import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { assertKilledBy, type CrashSetup, openCrashSetup } from "../../../test/crash-setup.ts";
import { emailsToUser } from "../../../test/emails.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, clientOf, type Market } from "../../../test/market.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { toId } from "../../core/ids.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import { renewSubscriptions } from "./renewal.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/subscription";

/** Between every two steps of a plan's payment, in their order; and whether the plan is paid for once the reconciler was there. */
const steps = {
  "payment: written": false,
  "payment: about to be charged": false,
  "payment: charged, not settled": true,
  "payment: settling": true,
  "payment: settled, not answered": true,
};

let site: CrashSetup;
let market: Market;
before(async () => {
  site = await openCrashSetup({ planConfig: builtInPlans });
  ({ market } = site);
});
beforeEach(async () => {
  site.failsAt = "";
  site.onceCharged = () => {};
  // Nobody of the tests before comes due.
  await market.query("delete from subscriptions");
});
after(() => site.close());

interface Person {
  key: Client;
  session: Client;
}

async function hasPerson(): Promise<Person> {
  const key = await market.createUser();
  return { key, session: await market.createSession(key.userId) };
}

const choose = (session: Client) => session.put(PATH, { plan: "pro" });
const standing = async ({ key }: Person) => (await key.get(PATH)).body.data;
const limitOf = async ({ key }: Person) =>
  Number((await key.get("/v1/categories")).headers.get("x-ratelimit-limit"));
const [FREE_LIMIT, PRO_LIMIT] = (["free", "pro"] as const).map((plan) =>
  Math.min(...builtInPlans.plans[plan].quotas.map(({ requests }) => requests)),
);

/** What they were charged, as the provider has it. */
const chargesOf = ({ key }: Person) =>
  site.done.charges.filter(({ customerId }) => customerId === toId("usr", key.userId));

/** So many months were charged, paid and booked, and nothing else. */
async function assertPaid(person: Person, months: number): Promise<void> {
  const { rows } = await market.query(
    `select p.id, (select count(*) from ledger_transactions where kind = 'subscription' and source_id = p.id) as booked
       from subscription_payments p where user_id = $1 and status = 'completed' order by id`,
    [person.key.userId],
  );
  assert.deepEqual(
    chargesOf(person).map(({ orderId, amountMinor, state }) => [orderId, amountMinor, state]),
    rows.map(({ id }) => [toId("pay", id), 2_900n, "succeeded"]),
    "what was charged is what was paid",
  );
  assert.deepEqual(
    rows.map(({ booked }) => booked),
    Array(months).fill(1),
  );
}

async function reconciled(minutes: number): Promise<void> {
  market.clock.forward(minutes * MINUTE_MS);
  const { ctx } = market.service;
  await Promise.all([reconcileCharges(ctx, planPaymentTarget), reconcileCharges(ctx, planPaymentTarget)]);
}

suite("a process that is killed when a plan is paid for", () => {
  for (const [step, isPaid] of sampleOf(Object.entries(steps))) {
    test(`at "${step}" leaves a payment that the reconciler ends, charged once or not at all`, async () => {
      const person = await hasPerson();
      const doomed = await site.startDoomed(step);
      await assertKilledBy(doomed, choose(clientOf(doomed.origin, person.session.key)));
      await reconciled(11);
      assert.partialDeepStrictEqual(await standing(person), { plan: isPaid ? "pro" : "free", payment: null });
      assert.equal(await limitOf(person), isPaid ? PRO_LIMIT : FREE_LIMIT);
      await assertPaid(person, isPaid ? 1 : 0);
      assert.equal((await choose(person.session)).status, 200);
      await assertPaid(person, 1);
      assert.equal(await limitOf(person), PRO_LIMIT);
    });
  }
});

suite("a step that fails when a plan is paid for", () => {
  for (const step of Object.keys(steps)) {
    test(`at "${step}" is made good when its owner asks again at once`, async () => {
      const person = await hasPerson();
      site.failsAt = step;
      assertError(await choose(person.session), 500, "INTERNAL_ERROR");
      site.failsAt = "";
      assert.equal((await choose(person.session)).status, 200);
      await assertPaid(person, 1);
      assert.equal(await limitOf(person), PRO_LIMIT);
    });
  }
});

/** Somebody whose paid month ends now. */
async function hasDue(): Promise<Person> {
  const person = await hasPerson();
  assert.equal((await choose(person.session)).status, 200);
  market.clock.now = new Date((await standing(person)).periodEnd);
  return person;
}

/** A worker dies in the round in which it renews them. */
async function workerDies(step: string): Promise<void> {
  const worker = await site.startDoomed(step);
  await assertKilledBy(worker, worker.run("renew-subscriptions"));
}

async function countPayments({ key }: Person): Promise<number> {
  const { rows } = await market.query("select from subscription_payments where user_id = $1", [key.userId]);
  return rows.length;
}

const renew = () => renewSubscriptions(market.service.ctx);

suite("a worker that is killed when a plan is renewed", () => {
  for (const step of sampleOf(Object.keys(steps), 1)) {
    test(`at "${step}" leaves a renewal that the others end, charged once and told of to nobody`, async () => {
      const person = await hasDue();
      const { periodEnd } = await standing(person);
      await workerDies(step);
      await Promise.all([renew(), renew()]);
      assert.equal(await limitOf(person), PRO_LIMIT, "the plan holds meanwhile");
      await reconciled(11);
      await Promise.all([renew(), renew()]);
      await assertPaid(person, 2);
      assert.equal(await countPayments(person), 2, "it is asked for under one id");
      assert.deepEqual(await emailsToUser(market, person.key.userId), []);
      assert.partialDeepStrictEqual(await standing(person), {
        plan: "pro",
        periodStart: periodEnd,
        pastDue: null,
        payment: null,
      });
      assert.equal(await limitOf(person), PRO_LIMIT);
    });
  }

  test("while the provider charges leaves a renewal that the reconciler ends within minutes", async () => {
    const person = await hasDue();
    const worker = await site.startDoomed();
    site.onceCharged = () => worker.child.kill("SIGKILL");
    await assertKilledBy(worker, worker.run("renew-subscriptions"));
    site.onceCharged = () => {};
    await reconciled(2);
    await assertPaid(person, 2);
  });

  test("after the first of three leaves the others to the next worker's round", async () => {
    const people = await Promise.all(Array.from({ length: 3 }, hasPerson));
    for (const { session } of people) {
      assert.equal((await choose(session)).status, 200);
      market.clock.forward(1);
    }
    market.clock.now = new Date((await standing(people[2]!)).periodEnd);
    await workerDies("payment: settled, not answered");
    assert.deepEqual(
      people.map((person) => chargesOf(person).length),
      [2, 1, 1],
    );
    const { ctx } = await market.startNode();
    await Promise.all([renew(), renewSubscriptions(ctx), renew(), renewSubscriptions(ctx)]);
    for (const person of people) await assertPaid(person, 2);
  });
});

suite("two workers in one round", () => {
  test("renew each of twenty plans once", async () => {
    const people = await Promise.all(Array.from({ length: 20 }, hasPerson));
    await Promise.all(people.map(({ session }) => choose(session)));
    market.clock.now = new Date((await standing(people[0]!)).periodEnd);
    const workers = await Promise.all([site.startDoomed(), site.startDoomed()]);
    await Promise.all([...workers.map((worker) => worker.run("renew-subscriptions")), renew()]);
    for (const worker of workers) worker.child.kill();
    for (const person of people) await assertPaid(person, 2);
  });
});
