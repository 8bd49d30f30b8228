import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Plan, plans as ranks } from "@stoa/contract";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { ledgerSums } from "../../../test/payouts.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
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

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const RUNS = 25;
const PATH = "/v1/account/subscription";

/** So wide that no step meets a limit, and told apart by the header of any answer. */
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
/** What everybody's method is worth now. */
let card: Card = "pm_test_ok";
/** What it was worth when a payment was first asked for, by the payment; a provider is told the same under one id. */
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
  /** Where their bank asks about the payment that waits. */
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

/** A round of everything that a worker does for plans. */
async function work(): Promise<void> {
  const { ctx } = market.service;
  await reconcileCharges(ctx, planPaymentTarget);
  await applyDueDowngrades(ctx);
  await renewSubscriptions(ctx);
}
const twinsWork = () => Promise.all([work(), work()]);

const plan = fc.constantFrom<Plan>("free", "pro", "pro", "business", "business");
const trouble = fc.constantFrom<PaymentConnection["trouble"]>(
  "none",
  "none",
  "none",
  "answers get lost",
  "down",
);

const chooses = fc.record({ plan, trouble, amidst: fc.boolean() }).map((input) =>
  named(`chooses ${JSON.stringify(input)}`, async (history) => {
    line.trouble = input.trouble;
    const [url] = await Promise.all([choose(history, input.plan), input.amidst && twinsWork()]);
    if (url) history.asks = url;
    line.trouble = "none";
  }),
);

const changesCard = fc.constantFrom("pm_test_ok" as const, ...CARDS).map((next) =>
  named(`card becomes ${next}`, async () => {
    card = next;
  }),
);

const moves = fc.constantFrom("DE", null).map((country) =>
  named(`moves to ${country}`, async ({ key }) => {
    const session = await market.createSession(key.userId);
    assert.equal((await session.patch("/v1/account", { country })).status, 200);
  }),
);

const decides = fc.constantFrom("approve", "decline").map((decision) =>
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
const waits = hours.map((some) =>
  named(`${some} hours pass`, async () => {
    market.clock.forward(some * HOUR_MS);
  }),
);

/** The next month's end, to the millisecond: renewals that are never late show whether periods drift. */
const waitsForTheEnd = named("the period ends", async (history) => {
  const [last] = (await completedOf(history)).slice(-1);
  if (last && last.end > market.clock.now) market.clock.now = last.end;
});

const works = trouble.map((input) =>
  named(`workers: ${input}`, async (history) => {
    line.trouble = input;
    await twinsWork();
    line.trouble = "none";
    if (input === "none") await mustBePaidOrTried(history);
  }),
);

const step = fc.oneof(
  { weight: 4, arbitrary: chooses },
  { weight: 2, arbitrary: changesCard },
  { weight: 1, arbitrary: moves },
  { weight: 1, arbitrary: decides },
  { weight: 3, arbitrary: waits },
  { weight: 2, arbitrary: fc.constant(waitsForTheEnd) },
  { weight: 6, arbitrary: works },
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

/** The months that were paid, the oldest first. */
async function completedOf({ key }: History): Promise<Paid[]> {
  const { rows } = await market.query(
    `select id, plan, price_minor as price, credit_minor as credit, amount_minor as amount, created_at as "createdAt",
            settled_at as "settledAt", renews_from as "renewsFrom", period_start as start, period_end as end
       from subscription_payments where user_id = $1 and status = 'completed' order by id`,
    [key.userId],
  );
  return rows;
}

/** By another way than the service's: the day before the first of the month after, where the day is past its end. */
function monthLater(start: Date, anchor: number): Date {
  const [year, month] = [start.getUTCFullYear(), start.getUTCMonth() + 1];
  const days = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return new Date(Date.UTC(year, month, Math.min(anchor, days)) + (start.getTime() % DAY_MS));
}

/** No moment is paid twice, but for what an upgrade counts towards its price; and ends do not drift. */
function mustFollowEachOther(paid: Paid[]): void {
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

/** Half-up, of the price of a whole month. */
function unusedOf(last: Paid | undefined, at: Date): number {
  if (!last || last.end <= at) return 0;
  const [unused, month] = [last.end.getTime() - at.getTime(), last.end.getTime() - last.start.getTime()];
  return Number((2n * BigInt(last.price) * BigInt(unused) + BigInt(month)) / (2n * BigInt(month)));
}

const planOf = async ({ key }: History): Promise<Plan> => {
  // What memory forgets over a worker's round is forgotten by then.
  await market.query("select 1");
  const limit = Number((await key.get("/v1/categories")).headers.get("x-ratelimit-limit"));
  return ranks.find((one) => LIMITS[one] === limit)!;
};

/** Quotas are what is paid for; after its end at most that, until somebody has looked. */
async function mustHaveWhatIsPaid(history: History, paid: Paid[]): Promise<void> {
  const has = await planOf(history);
  const last = paid.at(-1);
  if (!last) return assert.equal(has, "free");
  if (market.clock.now < last.end) return assert.equal(has, last.plan);
  assert.ok(ranks.indexOf(has) <= ranks.indexOf(last.plan), `${has} after ${last.plan}`);
}

/** What is over is being paid for, or will be tried again, or is gone. */
async function mustBePaidOrTried(history: History): Promise<void> {
  const last = (await completedOf(history)).at(-1);
  if (!last || market.clock.now < last.end || (await planOf(history)) === "free") return;
  const { rows } = await market.query(
    `select 1 from subscription_payments where user_id = $1 and status in ('pending', 'requires_action')
     union all select 1 from subscriptions where user_id = $1 and tries between 1 and 2 and next_try_at > $2`,
    [history.key.userId, market.clock.now],
  );
  assert.equal(rows.length, 1, "neither open nor to be tried");
}

/** Nobody gave money that no month stands for; what is open may be charged, and not known to be. */
async function mustBeWhatWasCharged({ key }: History, paid: Paid[]): Promise<void> {
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

async function mustHold(history: History): Promise<void> {
  const paid = await completedOf(history);
  mustFollowEachOther(paid);
  await mustHaveWhatIsPaid(history, paid);
  await mustBeWhatWasCharged(history, paid);
}

/** Nobody keeps quotas that nobody pays for: when the last paid month ends and no card is good, a week and a day ends it all. */
async function mustEndUnpaid(history: History): Promise<void> {
  card = "pm_test_declined";
  // What was asked for before is settled, or given up.
  market.clock.forward(DAY_MS + HOUR_MS);
  await twinsWork();
  const last = (await completedOf(history)).at(-1);
  if (last && last.end > market.clock.now) market.clock.now = last.end;
  for (let day = 0; day < 10; day++) {
    await twinsWork();
    market.clock.forward(DAY_MS);
  }
  await twinsWork();
  assert.equal(await planOf(history), "free");
  const { rows } = await market.query("select from subscriptions where user_id = $1", [history.key.userId]);
  assert.deepEqual(rows, []);
}

const isError = (entry: string) => JSON.parse(entry).level >= 50;

test("whatever is chosen, paid, refused and lost, no moment is charged twice, no end drifts, and quotas are what is paid", async () => {
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
      for (const take of steps) {
        await take(history);
        await mustHold(history);
      }
      await mustEndUnpaid(history);
      await mustHold(history);
      assert.ok(Object.values(await ledgerSums(market)).every((sum) => sum === 0));
      assert.deepEqual(market.logs.filter(isError), []);
    }),
    { numRuns: runs(RUNS) },
  );
  // Once, as it reads the ledger of all histories.
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
