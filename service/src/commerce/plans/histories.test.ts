import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Plan, plans as ranks } from "@stoa/contract";
import fc from "fast-check";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { ledgerSums } from "../../../test/payouts.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { toId, toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import type { Payments } from "../../integrations/payments/payments.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import { renewSubscriptions } from "./renewal.ts";
import { applyDueDowngrades } from "./subscription.ts";

const RUNS = 25;
const PATH = "/v1/account/subscription";

/** High enough that no step reaches a limit, and distinguishable by the rate limit header. */
const LIMITS: Record<Plan, number> = { free: 10_001, pro: 10_002, business: 10_003, enterprise: 10_004 };
const offerOf = (plan: Plan) => ({
  ...builtInPlans.plans[plan],
  quotas: [{ requests: LIMITS[plan], seconds: 60 }],
});
const book = {
  ...builtInPlans,
  plans: {
    free: offerOf("free"),
    pro: offerOf("pro"),
    business: offerOf("business"),
    enterprise: offerOf("enterprise"),
  },
  sessions: [{ requests: 1_000_000, seconds: 60 }],
};

const CARDS = [
  "pm_test_ok",
  "pm_test_declined",
  "pm_test_insufficient_funds",
  "pm_test_requires_action",
  "pm_test_of_nobody",
] as const;
type Card = (typeof CARDS)[number];

const line: PaymentConnection = { trouble: "none" };
/** The payment method that charges use now. */
let card: Card = "pm_test_ok";
/** The method of each payment's first charge: the provider repeats a result under the same id. */
const cards = new Map<string, Card>();
const books = memoryStore();

let provider: FakeProvider;
let market: Market;
before(async () => {
  provider = await startFakeProvider({ store: books, now: () => market.clock.now });
  market = await openMarket({
    payments: withCard(withConnectionTrouble(line, createFakePayments({ origin: provider.origin }))),
    config: { planConfig: book, taxRates: new Map([["DE", 1_900]]) },
  });
});
after(async () => {
  await market.close();
  await provider.close();
});

const withCard = (payments: Payments): Payments => ({
  ...payments,
  charge(request) {
    if (!cards.has(request.orderId)) cards.set(request.orderId, card);
    return payments.charge({ ...request, methodId: cards.get(request.orderId)! });
  },
});

interface History {
  key: Client;
  /** The URL to confirm the open payment at the bank. */
  asks: string | null;
}

type Step = (history: History) => Promise<unknown>;
const named = (name: string, step: Step): Step => Object.assign(step, { toString: () => name });

async function choose({ key }: History, plan: Plan): Promise<string | null> {
  const session = await market.createSession(key.userId);
  const reply = await session.put(PATH, { plan });
  assert.ok([200, 202, 402, 404, 409].includes(reply.status), reply.text);
  return reply.body.data?.payment?.nextAction?.url ?? null;
}

/** One run of all plan jobs. */
async function runWorker(): Promise<void> {
  const { ctx } = market.service;
  await reconcileCharges(ctx, planPaymentTarget);
  await applyDueDowngrades(ctx);
  await renewSubscriptions(ctx);
}
const runTwoWorkers = () => Promise.all([runWorker(), runWorker()]);

const plan = fc.constantFrom<Plan>("free", "pro", "pro", "business", "business");
const trouble = fc.constantFrom<PaymentConnection["trouble"]>(
  "none",
  "none",
  "none",
  "answers get lost",
  "down",
);

const planChoice = fc.record({ plan, trouble, concurrent: fc.boolean() }).map((input) =>
  named(`chooses ${JSON.stringify(input)}`, async (history) => {
    line.trouble = input.trouble;
    const [url] = await Promise.all([choose(history, input.plan), input.concurrent && runTwoWorkers()]);
    if (url) history.asks = url;
    line.trouble = "none";
  }),
);

const cardChange = fc.constantFrom("pm_test_ok" as const, ...CARDS).map((next) =>
  named(`card becomes ${next}`, async () => {
    card = next;
  }),
);

const countryChange = fc.constantFrom("DE", null).map((country) =>
  named(`moves to ${country}`, async ({ key }) => {
    const session = await market.createSession(key.userId);
    assert.equal((await session.patch("/v1/account", { country })).status, 200);
  }),
);

const bankDecision = fc.constantFrom("approve", "decline").map((decision) =>
  named(`bank: ${decision}`, async ({ asks }) => {
    const body = new URLSearchParams({ decision });
    if (asks) assert.equal((await fetch(asks, { method: "POST", body, redirect: "manual" })).status, 303);
  }),
);

const hours = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 100 }) },
  { weight: 4, arbitrary: fc.integer({ min: 25 * 24, max: 35 * 24 }) },
  { weight: 1, arbitrary: fc.integer({ min: 60 * 24, max: 100 * 24 }) },
);
const wait = hours.map((some) =>
  named(`${some} hours pass`, async () => {
    market.clock.forward(some * HOUR_MS);
  }),
);

/** To the millisecond: renewals without delay show whether periods drift. */
const waitForPeriodEnd = named("the period ends", async (history) => {
  const [last] = (await completedOf(history)).slice(-1);
  if (last && last.end > market.clock.now) market.clock.now = last.end;
});

const workerRun = trouble.map((input) =>
  named(`workers: ${input}`, async (history) => {
    line.trouble = input;
    await runTwoWorkers();
    line.trouble = "none";
    if (input === "none") await assertRenewalContinues(history);
  }),
);

const step = fc.oneof(
  { weight: 4, arbitrary: planChoice },
  { weight: 2, arbitrary: cardChange },
  { weight: 1, arbitrary: countryChange },
  { weight: 1, arbitrary: bankDecision },
  { weight: 3, arbitrary: wait },
  { weight: 2, arbitrary: fc.constant(waitForPeriodEnd) },
  { weight: 6, arbitrary: workerRun },
);

interface Paid {
  id: string;
  plan: Plan;
  price: number;
  credit: number;
  amount: number;
  createdAt: Date;
  settledAt: Date;
  renewsFrom: Date | null;
  start: Date;
  end: Date;
}

/** Completed payments, oldest first. */
async function completedOf({ key }: History): Promise<Paid[]> {
  const { rows } = await market.query(
    `select id, plan, price_minor as price, credit_minor as credit, amount_minor as amount, created_at as "createdAt",
            settled_at as "settledAt", renews_from as "renewsFrom", period_start as start, period_end as end
       from subscription_payments where user_id = $1 and status = 'completed' order by id`,
    [key.userId],
  );
  return rows;
}

/** Another implementation of `monthAfter`. */
function monthLater(start: Date, anchor: number): Date {
  const [year, month] = [start.getUTCFullYear(), start.getUTCMonth() + 1];
  const days = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return new Date(Date.UTC(year, month, Math.min(anchor, days)) + (start.getTime() % DAY_MS));
}

/** Periods do not overlap, credits are correct, and month ends do not drift. */
function assertPeriods(paid: Paid[]): void {
  let anchor = 0;
  let last: Paid | undefined;
  for (const one of paid) {
    if (one.renewsFrom) {
      assert.ok(last && one.start >= last.end, "a renewal begins when what was paid has ended");
      const wasOver = monthLater(last.end, anchor) <= one.createdAt;
      const due = wasOver ? one.createdAt : last.end;
      const isOver = monthLater(due, wasOver ? due.getUTCDate() : anchor) <= one.settledAt;
      assert.deepEqual(one.start, isOver ? one.settledAt : due);
      assert.equal(one.credit, 0);
      if (wasOver || isOver) anchor = one.start.getUTCDate();
    } else {
      assert.deepEqual(one.start, one.settledAt);
      assert.equal(one.credit, unusedOf(last, one.createdAt));
      anchor = one.start.getUTCDate();
    }
    assert.deepEqual(one.end, monthLater(one.start, anchor));
    const days = (one.end.getTime() - one.start.getTime()) / DAY_MS;
    assert.ok(days >= 28 && days <= 31, `a month of ${days} days`);
    last = one;
  }
}

/** Rounded half up. */
function unusedOf(last: Paid | undefined, at: Date): number {
  if (!last || last.end <= at) return 0;
  const [unused, month] = [last.end.getTime() - at.getTime(), last.end.getTime() - last.start.getTime()];
  return Number((2n * BigInt(last.price) * BigInt(unused) + BigInt(month)) / (2n * BigInt(month)));
}

const planOf = async ({ key }: History): Promise<Plan> => {
  // The query gives notifications time to invalidate the key cache.
  await market.query("select 1");
  const limit = Number((await key.get("/v1/categories")).headers.get("x-ratelimit-limit"));
  return ranks.find((one) => LIMITS[one] === limit)!;
};

/** Quotas match the paid plan; after its end at most that plan, until the job has run. */
async function assertQuotas(history: History, paid: Paid[]): Promise<void> {
  const has = await planOf(history);
  const last = paid.at(-1);
  if (!last) return assert.equal(has, "free");
  if (market.clock.now < last.end) return assert.equal(has, last.plan);
  assert.ok(ranks.indexOf(has) <= ranks.indexOf(last.plan), `${has} after ${last.plan}`);
}

/** An ended plan has an open payment, a scheduled attempt, or is free. */
async function assertRenewalContinues(history: History): Promise<void> {
  const last = (await completedOf(history)).at(-1);
  if (!last || market.clock.now < last.end || (await planOf(history)) === "free") return;
  const { rows } = await market.query(
    `select 1 from subscription_payments where user_id = $1 and status in ('pending', 'requires_action')
     union all select 1 from subscriptions where user_id = $1 and tries between 1 and 2 and next_try_at > $2`,
    [history.key.userId, market.clock.now],
  );
  assert.equal(rows.length, 1, "neither open nor to be tried");
}

/** Every charge has a completed payment; open payments may be charged already. */
async function assertCharges({ key }: History, paid: Paid[]): Promise<void> {
  const { rows } = await market.query("select id, status from subscription_payments where user_id = $1", [
    key.userId,
  ]);
  for (const { id, status } of rows) {
    const charge = await books.findByOrder(toId("pay", id));
    const wasCharged = charge?.state === "succeeded";
    if (status === "completed") assert.ok(wasCharged);
    else if (status === "failed" || status === "canceled") assert.ok(!wasCharged, `${id} is ${status}`);
    const month = paid.find((one) => one.id === id);
    if (month) assert.equal(Number(charge!.amountMinor), month.amount);
  }
  const known = new Set(rows.map(({ id }) => id));
  for (const id of cards.keys()) {
    const charge = await books.findByOrder(id);
    if (charge?.customerId === toId("usr", key.userId)) assert.ok(known.has(toUuid("pay", id)), id);
  }
}

async function assertInvariants(history: History): Promise<void> {
  const paid = await completedOf(history);
  assertPeriods(paid);
  await assertQuotas(history, paid);
  await assertCharges(history, paid);
}

/** Without a valid card, the plan ends within eight days of its paid period. */
async function assertPlanEnds(history: History): Promise<void> {
  card = "pm_test_declined";
  // Settles or cancels earlier payments.
  market.clock.forward(DAY_MS + HOUR_MS);
  await runTwoWorkers();
  const last = (await completedOf(history)).at(-1);
  if (last && last.end > market.clock.now) market.clock.now = last.end;
  for (let day = 0; day < 10; day++) {
    await runTwoWorkers();
    market.clock.forward(DAY_MS);
  }
  await runTwoWorkers();
  assert.equal(await planOf(history), "free");
  const { rows } = await market.query("select from subscriptions where user_id = $1", [history.key.userId]);
  assert.deepEqual(rows, []);
}

const isError = (entry: string) => JSON.parse(entry).level >= 50;

test("any history of plans and payments: no time is charged twice, month ends do not drift, quotas match", async () => {
  const begins = fc.constantFrom(
    "2027-01-31T10:00:00.000Z",
    "2027-12-31T23:59:59.999Z",
    "2028-01-30T00:00:00Z",
  );
  await fc.assert(
    fc.asyncProperty(begins, fc.array(step, { minLength: 5, maxLength: 40 }), async (moment, steps) => {
      market.clock.now = new Date(moment);
      card = "pm_test_ok";
      const history: History = { key: await market.createUser(), asks: null };
      for (const runStep of steps) {
        await runStep(history);
        if (isFullSize) await assertInvariants(history);
      }
      await assertPlanEnds(history);
      await assertInvariants(history);
      assert.ok(Object.values(await ledgerSums(market)).every((sum) => sum === 0));
      assert.deepEqual(market.logs.filter(isError), []);
    }),
    { numRuns: runs(RUNS, 10) },
  );
  // Once, because it reads the ledger of all histories.
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
