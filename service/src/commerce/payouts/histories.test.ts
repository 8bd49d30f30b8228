import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PayoutStatus } from "@stoa/contract";
import fc from "fast-check";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import {
  type BankState,
  bookEarnings,
  type FakeBank,
  installFakeBank,
  ledgerSums,
  requestPayout,
} from "../../../test/payouts.ts";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import { toMinor } from "../../core/money/amount.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { reconcilePayouts } from "./payout-submission.ts";
import { payOutBySchedule } from "./schedule.ts";

const RUNS = 30;

let market: Market;
let bank: FakeBank;
let buyer: Client;
let admin: Client;
before(async () => {
  market = await openMarket();
  bank = installFakeBank(market);
  buyer = await market.createUser();
  admin = await market.createUser({ role: "admin" });
});
after(() => market.close());

/** An earning, and what is left of it after refunds. */
interface Earning {
  currency: string;
  leftMinor: bigint;
  maturesAt: Date;
  account: "seller" | "referrer";
  /** Set for a real purchase. */
  orderId?: string;
  /** An open refund request of the buyer. */
  refundId?: string | undefined;
}

interface PayoutData {
  id: string;
  status: PayoutStatus;
  amount: number;
  currency: string;
  period: { start: string; end: string };
}

/** The expected state of one seller, recomputed from the steps. */
interface History {
  seller: Client;
  earnings: Earning[];
}

type Step = (history: History) => Promise<unknown>;

const payoutsOf = async ({ seller }: History): Promise<PayoutData[]> =>
  (await seller.get("/v1/payouts?limit=100")).body.data;
const later = (hours: number) => new Date(market.clock.now.getTime() + hours * HOUR_MS);

async function addEarning(history: History, earning: Earning): Promise<void> {
  await bookEarnings(market, history.seller, { ...earning, amountMinor: earning.leftMinor });
  history.earnings.push(earning);
}

const currency = fc.constantFrom("USD", "JPY", "KWD");
const state = fc.constantFrom<BankState>("in_transit", "completed", "failed", "returned");

const sale = fc
  .record({
    currency,
    amountMinor: fc.bigInt({ min: 1n, max: 60_000n }),
    hours: fc.integer({ min: -48, max: 400 }),
    account: fc.constantFrom("seller", "seller", "referrer"),
  })
  .map(
    ({ hours, amountMinor, ...sale }): Step =>
      (history) =>
        addEarning(history, { ...sale, leftMinor: amountMinor, maturesAt: later(hours) }),
  );

/** A real purchase: the platform's fee is 10 %, rounded half up. */
const productSale = fc.integer({ min: 1, max: 500_00 }).map(
  (cents): Step =>
    async (history) => {
      const productId = await createProduct(history.seller, { price: cents / 100 });
      const orderId = await buyProduct(buyer, productId);
      // A used product needs the approval of the seller.
      await buyer.get(`/v1/products/${productId}`);
      const fee = BigInt(Math.floor((cents + 5) / 10));
      history.earnings.push({
        currency: "USD",
        leftMinor: BigInt(cents) - fee,
        maturesAt: later(14 * 24),
        account: "seller",
        orderId,
      });
    },
);

/** An administrator refunds an order in full, whether or not the seller was paid. */
const adminRefund = fc.nat().map(
  (which): Step =>
    async ({ earnings }) => {
      const orders = earnings.filter(({ orderId, leftMinor }) => orderId && leftMinor > 0n);
      const order = orders[which % orders.length];
      if (!order) return;
      const session = await market.createSession(admin.userId, { secondFactor: true });
      const reply = await session.post(`/v1/admin/orders/${order.orderId}/refund`, { reason: "other" });
      assert.deepEqual([reply.status, reply.body.data?.status], [201, "succeeded"], reply.text);
      order.leftMinor = 0n;
      order.refundId = undefined;
    },
);

const refundRequest = fc.nat().map(
  (which): Step =>
    async ({ earnings }) => {
      const orders = earnings.filter((one) => one.orderId && one.leftMinor > 0n && !one.refundId);
      const order = orders[which % orders.length];
      if (!order) return;
      const reply = await buyer.post(`/v1/purchases/${order.orderId}/refund`, { reason: "other" });
      assert.ok(reply.status === 201 || /refund_window_expired/.test(reply.text), reply.text);
      if (reply.status === 201) order.refundId = reply.body.data.id;
    },
);

const refundDecision = fc.tuple(fc.nat(), fc.constantFrom("approve", "reject")).map(
  ([which, how]): Step =>
    async ({ seller, earnings }) => {
      const orders = earnings.filter(({ refundId }) => refundId);
      const order = orders[which % orders.length];
      if (!order) return;
      const session = await market.createSession(seller.userId);
      const reply = await session.post(`/v1/refunds/${order.refundId}/${how}`, {
        ...(how === "reject" && { reason: "No." }),
      });
      assert.ok(reply.status === 200 || /overdue/.test(reply.text), reply.text);
      if (reply.status !== 200) return;
      order.refundId = undefined;
      if (how === "approve") order.leftMinor = 0n;
    },
);

/** Refunds a part of an earning: it counts as if it had never been earned. */
const partialRefund = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 100 })).map(
  ([which, percent]): Step =>
    async (history) => {
      const earning = history.earnings[which % history.earnings.length];
      if (!earning || earning.orderId || earning.leftMinor <= 0n) return;
      const amountMinor = (earning.leftMinor * BigInt(percent) + 99n) / 100n;
      const { currency: of, maturesAt, account } = earning;
      await bookEarnings(market, history.seller, {
        amountMinor: -amountMinor,
        currency: of,
        maturesAt,
        account,
      });
      earning.leftMinor -= amountMinor;
    },
);

/** The fee of a lost dispute is due at once, whatever the balance. */
const disputeFee = fc.tuple(currency, fc.bigInt({ min: 1n, max: 3_000n })).map(
  ([of, amountMinor]): Step =>
    (history) =>
      addEarning(history, { currency: of, leftMinor: -amountMinor, maturesAt: later(0), account: "seller" }),
);

const wait = fc.integer({ min: 1, max: 200 }).map(
  (hours): Step =>
    async () => {
      market.clock.forward(hours * HOUR_MS);
    },
);

const payoutInput = fc.record({ currency }, { requiredKeys: [] }).chain((input) =>
  fc.record({
    input: fc.oneof(
      fc.constant(input),
      fc.integer({ min: 1, max: 300 }).map((amount) => ({ ...input, amount })),
    ),
    begins: state,
    trouble: fc.constantFrom("none", "none", "answers get lost", "down"),
  }),
);
const payoutRequest = payoutInput.map(
  ({ input, begins, trouble }): Step =>
    async ({ seller }) => {
      Object.assign(bank, { begins, trouble });
      const balances: { currency: string; available: number }[] = (await seller.get("/v1/balance")).body.data;
      const reply = await requestPayout(market, seller, input);
      bank.trouble = "none";
      assert.ok([201, 409, 422].includes(reply.status), reply.text);
      if (reply.status !== 201) return;
      const { amount, currency: of } = reply.body.data;
      const { available } = balances.find((balance) => balance.currency === of)!;
      assert.ok(amount <= available, `${amount} of ${available}`);
    },
);

/** The transitions that a bank can make. */
const nextStates: Record<BankState, BankState[]> = {
  in_transit: ["completed", "failed", "returned"],
  completed: ["returned"],
  failed: [],
  returned: [],
};
const bankUpdate = fc.tuple(fc.nat(), fc.nat()).map(
  ([which, where]): Step =>
    async (history) => {
      const sent = (await payoutsOf(history)).filter(({ id }) => bank.paid.has(id));
      const payout = sent[which % sent.length];
      const ways = payout ? nextStates[bank.paid.get(payout.id)!.state] : [];
      if (payout && ways.length > 0) await bank.moves(payout.id, ways[where % ways.length]!);
    },
);

const reconciliation: Step = async () => {
  market.clock.forward(HOUR_MS);
  await reconcilePayouts(market.service.ctx);
};

const scheduledPayout = state.map(
  (begins): Step =>
    async () => {
      bank.begins = begins;
      await payOutBySchedule(market.service.ctx, "daily");
    },
);

const step = fc.oneof(
  { weight: 4, arbitrary: sale },
  { weight: 2, arbitrary: productSale },
  { weight: 1, arbitrary: adminRefund },
  { weight: 2, arbitrary: refundRequest },
  { weight: 1, arbitrary: refundDecision },
  { weight: 2, arbitrary: partialRefund },
  { weight: 1, arbitrary: disputeFee },
  { weight: 3, arbitrary: wait },
  { weight: 3, arbitrary: payoutRequest },
  { weight: 3, arbitrary: bankUpdate },
  { weight: 1, arbitrary: fc.constant(reconciliation) },
  { weight: 1, arbitrary: scheduledPayout },
);

const sum = (amounts: bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);

/** Recomputes each balance from the earnings and payouts. */
async function assertBalances(history: History): Promise<void> {
  const payouts = await payoutsOf(history);
  for (const reported of (await history.seller.get("/v1/balance")).body.data) {
    const mine = history.earnings.filter((earning) => earning.currency === reported.currency);
    const [matured, pending] = [true, false].map((isMatured) =>
      sum(mine.filter((one) => one.maturesAt <= market.clock.now === isMatured).map((one) => one.leftMinor)),
    );
    const of = (...states: PayoutStatus[]) =>
      sum(
        payouts
          .filter((payout) => payout.currency === reported.currency && states.includes(payout.status))
          .map(({ amount }) => toMinor(amount, reported.currency)!),
      );
    const reserved = sum(
      mine.filter((one) => one.refundId && one.maturesAt <= market.clock.now).map((one) => one.leftMinor),
    );
    const recomputed = {
      pending,
      reserved,
      available: matured! - of("pending", "in_transit", "completed") - reserved,
      inTransit: of("pending", "in_transit"),
    };
    const read = {
      pending: toMinor(reported.pending, reported.currency),
      reserved: toMinor(reported.reserved, reported.currency),
      available: toMinor(reported.available, reported.currency),
      inTransit: toMinor(reported.inTransit, reported.currency),
    };
    assert.deepEqual(read, recomputed, reported.currency);
  }
}

/** No day is in two periods, even after returned payouts. */
async function assertPeriodsDisjoint(history: History): Promise<void> {
  const paid = (await payoutsOf(history)).filter(({ status }) => !["failed", "returned"].includes(status));
  for (const of of new Set(paid.map((payout) => payout.currency))) {
    // The list is newest first.
    const ends = paid.filter((payout) => payout.currency === of).toReversed();
    for (const [index, { period }] of ends.entries()) {
      assert.ok(period.start <= period.end, JSON.stringify(period));
      assert.ok(index === 0 || period.start > ends[index - 1]!.period.end, JSON.stringify(ends));
    }
  }
}

/** After reconciliation, both sides have the same status for each payout. */
async function assertEqualToBank(history: History): Promise<void> {
  market.clock.forward(DAY_MS + HOUR_MS);
  await reconcilePayouts(market.service.ctx);
  const payouts = await payoutsOf(history);
  for (const { id, status, amount, currency: of } of payouts) {
    assert.equal(status, bank.paid.get(id)?.state);
    assert.equal(bank.paid.get(id)?.request.amountMinor, toMinor(amount, of));
  }
}

/** Earnings without an order are reported, too. */
const isAboutPayouts = (problem: string) => /payout/i.test(problem);

test("any history: each balance equals its entries, the ledger sums to zero, and periods do not overlap", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const history: History = { seller: await market.createUser({ role: "seller" }), earnings: [] };
      for (const runStep of steps) {
        await runStep(history);
        if (isFullSize) await assertBalances(history);
      }
      await assertPeriodsDisjoint(history);
      await assertEqualToBank(history);
      await assertBalances(history);
      assert.deepEqual(new Set(Object.values(await ledgerSums(market))), new Set([0]));
      const { problems } = await verifyLedger(market.service.ctx.db);
      assert.deepEqual(problems.filter(isAboutPayouts), []);
    }),
    { numRuns: runs(RUNS, 10) },
  );
});
