import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { assertKilledBy, type CrashSetup, openCrashSetup } from "../../../test/crash-setup.ts";
import { emailsToUser } from "../../../test/emails.ts";
import { inFullRun, oneOf } from "../../../test/full-size.ts";
import { assertError, type Client, clientOf, type Market } from "../../../test/market.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { toId } from "../../core/ids.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import { renewSubscriptions } from "./renewal.ts";

const MINUTE_MS = 60_000;
const PATH = "/v1/account/subscription";

/** The steps of a plan payment in order, and whether reconciliation finds the plan paid. */
const steps = {
  "payment: created": false,
  "payment: about to be charged": false,
  "payment: charged, not settled": true,
  "payment: settling": true,
  "payment: settled, no response": true,
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
  // Subscriptions of earlier tests must not become due.
  await market.query("delete from subscriptions");
});
after(() => site.close());

interface Person {
  key: Client;
  session: Client;
}

async function createPerson(): Promise<Person> {
  const key = await market.createUser();
  return { key, session: await market.createSession(key.userId) };
}

const choose = (session: Client) => session.put(PATH, { plan: "pro" });
const readSubscription = async ({ key }: Person) => (await key.get(PATH)).body.data;
const limitOf = async ({ key }: Person) =>
  Number((await key.get("/v1/categories")).headers.get("x-ratelimit-limit"));
const [FREE_LIMIT, PRO_LIMIT] = (["free", "pro"] as const).map((plan) =>
  Math.min(...builtInPlans.plans[plan].quotas.map(({ requests }) => requests)),
);

const chargesOf = ({ key }: Person) =>
  site.done.charges.filter(({ customerId }) => customerId === toId("usr", key.userId));

/** Exactly `months` payments were charged and posted. */
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

async function runReconciliation(minutes: number): Promise<void> {
  market.clock.forward(minutes * MINUTE_MS);
  const { ctx } = market.service;
  await Promise.all([reconcileCharges(ctx, planPaymentTarget), reconcileCharges(ctx, planPaymentTarget)]);
}

suite("a process killed during a plan payment", () => {
  for (const [step, isPaid] of oneOf(Object.entries(steps), 3)) {
    test(`at "${step}": reconciliation ends the payment, charged once or not at all`, async () => {
      const person = await createPerson();
      const crashing = await site.startDoomed(step);
      await assertKilledBy(crashing, choose(clientOf(crashing.origin, person.session.key)));
      await runReconciliation(11);
      assert.partialDeepStrictEqual(await readSubscription(person), {
        plan: isPaid ? "pro" : "free",
        payment: null,
      });
      assert.equal(await limitOf(person), isPaid ? PRO_LIMIT : FREE_LIMIT);
      await assertPaid(person, isPaid ? 1 : 0);
      assert.equal((await choose(person.session)).status, 200);
      await assertPaid(person, 1);
      assert.equal(await limitOf(person), PRO_LIMIT);
    });
  }
});

suite("a failed step of a plan payment", () => {
  for (const step of Object.keys(steps)) {
    test(`at "${step}": a repeated request completes the payment`, async () => {
      const person = await createPerson();
      site.failsAt = step;
      assertError(await choose(person.session), 500, "INTERNAL_ERROR");
      site.failsAt = "";
      assert.equal((await choose(person.session)).status, 200);
      await assertPaid(person, 1);
      assert.equal(await limitOf(person), PRO_LIMIT);
    });
  }
});

/** A subscriber whose paid month ends now. */
async function createDueSubscriber(): Promise<Person> {
  const person = await createPerson();
  assert.equal((await choose(person.session)).status, 200);
  market.clock.now = new Date((await readSubscription(person)).periodEnd);
  return person;
}

/** Crashes a worker during its renewals. */
async function crashWorker(step: string): Promise<void> {
  const worker = await site.startDoomed(step);
  await assertKilledBy(worker, worker.run("renew-subscriptions"));
}

async function countPayments({ key }: Person): Promise<number> {
  const { rows } = await market.query("select from subscription_payments where user_id = $1", [key.userId]);
  return rows.length;
}

const renew = () => renewSubscriptions(market.service.ctx);

suite("a worker killed during a renewal", () => {
  for (const step of oneOf(Object.keys(steps), 2)) {
    test(`at "${step}": the others complete the renewal, charged once, without an email`, async () => {
      const person = await createDueSubscriber();
      const { periodEnd } = await readSubscription(person);
      await crashWorker(step);
      await Promise.all([renew(), renew()]);
      assert.equal(await limitOf(person), PRO_LIMIT, "the plan holds meanwhile");
      await runReconciliation(11);
      await Promise.all([renew(), renew()]);
      await assertPaid(person, 2);
      assert.equal(await countPayments(person), 2, "it is asked for under one id");
      assert.deepEqual(await emailsToUser(market, person.key.userId), []);
      assert.partialDeepStrictEqual(await readSubscription(person), {
        plan: "pro",
        periodStart: periodEnd,
        pastDue: null,
        payment: null,
      });
      assert.equal(await limitOf(person), PRO_LIMIT);
    });
  }

  test("while the provider charges: reconciliation completes the renewal", inFullRun, async () => {
    const person = await createDueSubscriber();
    const worker = await site.startDoomed();
    site.onceCharged = () => worker.child.kill("SIGKILL");
    await assertKilledBy(worker, worker.run("renew-subscriptions"));
    site.onceCharged = () => {};
    await runReconciliation(2);
    await assertPaid(person, 2);
  });

  test("after the first of three: the next job run completes the others", inFullRun, async () => {
    const people = await Promise.all(Array.from({ length: 3 }, createPerson));
    for (const { session } of people) {
      assert.equal((await choose(session)).status, 200);
      market.clock.forward(1);
    }
    market.clock.now = new Date((await readSubscription(people[2]!)).periodEnd);
    await crashWorker("payment: settled, no response");
    assert.deepEqual(
      people.map((person) => chargesOf(person).length),
      [2, 1, 1],
    );
    const { ctx } = await market.startNode();
    await Promise.all([renew(), renewSubscriptions(ctx), renew(), renewSubscriptions(ctx)]);
    for (const person of people) await assertPaid(person, 2);
  });
});

suite("two concurrent workers", () => {
  test("twenty due plans: each renewed once", inFullRun, async () => {
    const people = await Promise.all(Array.from({ length: 20 }, createPerson));
    await Promise.all(people.map(({ session }) => choose(session)));
    market.clock.now = new Date((await readSubscription(people[0]!)).periodEnd);
    const workers = await Promise.all([site.startDoomed(), site.startDoomed()]);
    await Promise.all([...workers.map((worker) => worker.run("renew-subscriptions")), renew()]);
    for (const worker of workers) worker.child.kill();
    for (const person of people) await assertPaid(person, 2);
  });
});
