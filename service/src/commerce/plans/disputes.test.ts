import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { emailsToUser } from "../../../test/emails.ts";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { lastOf } from "../../../test/notifications.ts";
import { createFakeRefunds, openDispute, withRefunds } from "../../../test/refunds.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { disputeRooms } from "../../jobs.ts";
import { reconcileDisputes, syncDispute } from "../charges/disputes.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { renewSubscriptions } from "./renewal.ts";
import { applyDueDowngrades } from "./subscription.ts";

const PATH = "/v1/account/subscription";
const PRICE = 3_451;

const book = createFakeRefunds();
let provider: FakeProvider;
let market: Market;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  market = await openMarket({
    payments: withRefunds(book, createFakePayments({ origin: provider.origin })),
    config: { taxRates: new Map([["DE", 1_900]]) },
  });
});
after(async () => {
  await market.close();
  await provider.close();
});

interface Person {
  key: Client;
  /** Newest first. */
  paymentIds(): Promise<string[]>;
  readSubscription(): Promise<{ plan: string; periodEnd: string | null; scheduled: { plan: string } | null }>;
}

/** A German subscriber who pays 29.00 plus 19 % tax. */
async function createSubscriber(): Promise<Person> {
  const key = await market.createUser();
  const session = await market.createSession(key.userId);
  assert.equal((await session.patch("/v1/account", { country: "DE" })).status, 200);
  assert.equal((await session.put(PATH, { plan: "pro" })).status, 200);
  return {
    key,
    paymentIds: async () => (await key.get(`${PATH}/payments`)).body.data.map(({ id }: { id: string }) => id),
    readSubscription: async () => (await key.get(PATH)).body.data,
  };
}

const sync = (disputeId: string) => syncDispute(market.service.ctx, disputeRooms, disputeId);

async function accountsOf(paymentId: string): Promise<Record<string, number>> {
  const { rows } = await market.query(
    `select e.account, sum(e.amount_minor)::int as sum
       from ledger_entries e join ledger_transactions t on t.id = e.transaction_id
      where t.source_id = $1 or t.source_id in (select id from subscription_disputes where payment_id = $1)
      group by 1 having sum(e.amount_minor) <> 0`,
    [toUuid("pay", paymentId)],
  );
  return Object.fromEntries(rows.map(({ account, sum }) => [account, sum]));
}

async function readMoneyNote(): Promise<string> {
  const { config, pool } = market.service.ctx;
  const target = String(pool.options.connectionString);
  const all = await runChecks({ config, target }, market.clock.now);
  return all.find(({ check }) => check === "money")!.note;
}

suite("a dispute of a plan payment", () => {
  test("open: nothing changes, and the doctor names it", async () => {
    const { paymentIds, readSubscription } = await createSubscriber();
    const [id] = await paymentIds();
    const paid = await accountsOf(id!);
    await sync(openDispute(book, id!, { amountMinor: BigInt(PRICE) }));
    assert.deepEqual(await accountsOf(id!), paid);
    assert.equal((await readSubscription()).plan, "pro");
    market.clock.forward(1);
    assert.match(await readMoneyNote(), new RegExp(`1 open as plan dispute, .*${id}`));
    await sync(openDispute(book, id!, { state: "won" }));
    assert.deepEqual(await accountsOf(id!), paid);
    assert.doesNotMatch(await readMoneyNote(), /open as plan dispute/);
  });

  test("inquiry: nothing changes until it becomes a dispute", async () => {
    const { paymentIds, readSubscription } = await createSubscriber();
    const [id] = await paymentIds();
    await sync(openDispute(book, id!, { amountMinor: BigInt(PRICE), state: "inquiry" }));
    market.clock.forward(1);
    assert.match(await readMoneyNote(), /inquiry as plan dispute/);
    openDispute(book, id!, { state: "lost" });
    await reconcileDisputes(market.service.ctx, disputeRooms);
    assert.equal((await readSubscription()).plan, "free");
  });

  test("lost: reverses revenue and tax, and the plan ends at once", async () => {
    const { key, paymentIds, readSubscription } = await createSubscriber();
    const [id] = await paymentIds();
    await sync(openDispute(book, id!, { amountMinor: BigInt(PRICE), feeMinor: 1_500n, state: "lost" }));
    assert.deepEqual(await accountsOf(id!), { provider_clearing: 1_500, processor_fees: -1_500 });
    assert.deepEqual(await readSubscription().then(({ plan, periodEnd }) => [plan, periodEnd]), [
      "free",
      null,
    ]);
    const [message] = await emailsToUser(market, key.userId);
    assert.equal(message!.subject, "Your plan pro has ended");
    assert.equal((await lastOf(key, "plan.disputed")).text, "Your account now has the free plan.");
    assert.match(await readMoneyNote(), /lost as plan dispute, .*pay_/);
    const { text } = await key.get("/v1/events?type=user.subscription.updated");
    assert.match(text, /"newPlan":"free"/);
  });

  test("lost, of an earlier month: the plan ends with the paid period", async () => {
    const { paymentIds, readSubscription } = await createSubscriber();
    market.clock.now = new Date((await readSubscription()).periodEnd!);
    await renewSubscriptions(market.service.ctx);
    const [, first] = await paymentIds();
    await sync(openDispute(book, first!, { amountMinor: BigInt(PRICE), state: "lost" }));
    const { plan, periodEnd, scheduled } = await readSubscription();
    assert.deepEqual([plan, scheduled?.plan], ["pro", "free"]);
    market.clock.now = new Date(periodEnd!);
    await renewSubscriptions(market.service.ctx);
    await applyDueDowngrades(market.service.ctx);
    assert.equal((await readSubscription()).plan, "free");
    assert.equal((await paymentIds()).length, 2);
  });

  test("any amounts and results: the ledger equals the provider", async () => {
    const any = fc.record({
      amount: fc.oneof(fc.integer({ min: 1, max: PRICE }), fc.constantFrom(PRICE, PRICE + 100)),
      fee: fc.constantFrom(0, 1_500),
      states: fc.constantFrom(
        ["open", "won"],
        ["open", "lost"],
        ["lost"],
        ["inquiry", "inquiry_closed"],
        ["inquiry", "open", "lost"],
      ) as fc.Arbitrary<("inquiry" | "inquiry_closed" | "open" | "won" | "lost")[]>,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(any, { minLength: 1, maxLength: 4 }), async (disputes) => {
        const { paymentIds } = await createSubscriber();
        const [id] = await paymentIds();
        let atProvider = PRICE;
        for (const [at, { amount, fee, states }] of disputes.entries()) {
          const input = { disputeId: `dp_${id}_${at}`, amountMinor: BigInt(amount), feeMinor: BigInt(fee) };
          for (const state of states) {
            // Webhooks may come twice.
            await sync(openDispute(book, id!, { ...input, state }));
            await sync(input.disputeId);
          }
          if (states.includes("lost")) atProvider -= amount + fee;
        }
        assert.equal((await accountsOf(id!))["provider_clearing"] ?? 0, 0 - atProvider);
        assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
      }),
      { numRuns: runs(15) },
    );
  });
});
