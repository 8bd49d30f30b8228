import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import {
  assertKilledBy,
  type CrashSetup,
  openCrashSetup,
  repeatAfterCrash,
} from "../../../test/crash-setup.ts";
import { inFullRun, oneOf } from "../../../test/full-size.ts";
import { type Client, clientOf, type Market } from "../../../test/market.ts";
import { bookEarnings, ledgerSums } from "../../../test/payouts.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { reconcilePayouts } from "./payout-submission.ts";

const MINUTE_MS = 60_000;

/** The steps of a payout, in order. */
const steps = [
  "payout: created, not submitted",
  "payout: about to be submitted",
  "payout: submitted, not settled",
  "payout: settling",
  "payout: settled, no response",
];

let site: CrashSetup;
let market: Market;
before(async () => {
  site = await openCrashSetup();
  ({ market } = site);
});
after(() => site.close());

async function createSeller(account: string): Promise<Client> {
  const seller = await market.createUser({ role: "seller" });
  const session = await market.createSession(seller.userId);
  assert.equal((await session.put("/v1/account/payout-account", { account })).status, 200);
  await bookEarnings(market, seller, { amountMinor: 5000n });
  return seller;
}

/** Sends the request to a process that crashes at `step`. */
async function requestPayoutAndCrash(seller: Client, step: string): Promise<void> {
  const crashing = await site.startDoomed(step);
  const { key } = await market.createSession(seller.userId);
  await assertKilledBy(crashing, clientOf(crashing.origin, key).post("/v1/payouts", {}));
}

const payoutsOf = async (seller: Client): Promise<{ id: string; status: string }[]> =>
  (await seller.get("/v1/payouts")).body.data;
const balanceOf = async (seller: Client) => {
  const [{ available, inTransit }] = (await seller.get("/v1/balance")).body.data;
  return { available, inTransit };
};

suite("a killed process", () => {
  for (const step of oneOf(steps, 1)) {
    for (const [account, status, available] of oneOf([
      ["acct_test", "completed", 0],
      ["acct_test_fails", "failed", 50],
    ] as const)) {
      test(`at "${step}": the job ends the payout as ${status}, with one at the provider`, async () => {
        const seller = await createSeller(account);
        const before = site.done.payouts.length;
        await requestPayoutAndCrash(seller, step);
        market.clock.forward(2 * MINUTE_MS);
        for (let times = 0; times < 2; times++) await reconcilePayouts(market.service.ctx);
        const payouts = await payoutsOf(seller);
        assert.deepEqual(
          payouts.map((payout) => payout.status),
          [status],
        );
        assert.deepEqual(
          site.done.payouts.slice(before).map(({ payoutId }) => payoutId),
          [payouts[0]!.id],
        );
        assert.deepEqual(await balanceOf(seller), { available, inTransit: 0 });
      });
    }
  }

  test('at "payout: creating": nothing is debited', inFullRun, async () => {
    const seller = await createSeller("acct_test");
    await requestPayoutAndCrash(seller, "payout: creating");
    assert.deepEqual(await payoutsOf(seller), []);
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
  });

  test("afterwards: the ledger balances and agrees with the payouts", async () => {
    assert.deepEqual(await ledgerSums(market), { USD: 0 });
    const { problems } = await verifyLedger(market.service.ctx.db);
    assert.deepEqual(
      problems.filter((problem) => /payout/i.test(problem)),
      [],
    );
  });
});

suite("POST /payouts with an amount and an Idempotency-Key", () => {
  for (const step of oneOf(steps, 2)) {
    test(`process killed at "${step}": a repeat returns the same payout`, async () => {
      const { userId } = await createSeller("acct_test");
      const session = await market.createSession(userId);
      const ask = (client: Client) =>
        client.post("/v1/payouts", { amount: 10 }, { "idempotency-key": "part" });
      const crashing = await site.startDoomed(step);
      await assertKilledBy(crashing, ask(clientOf(crashing.origin, session.key)));
      const before = site.done.payouts.length;
      const reply = await repeatAfterCrash(site.market, () => ask(session));
      const [only, ...others] = await payoutsOf(session);
      assert.deepEqual([reply.status, reply.body.data?.id, others], [201, only?.id, []], reply.text);
      assert.equal(only!.status, "completed");
      assert.ok(site.done.payouts.length <= before + 1);
    });
  }
});

test("POST /payouts repeated under its key after a failed step: paid once", async () => {
  for (const step of steps) {
    const { userId } = await createSeller("acct_test");
    const session = await market.createSession(userId);
    const ask = () => session.post("/v1/payouts", { amount: 10 }, { "idempotency-key": `part of ${userId}` });
    site.failsAt = step;
    await ask();
    site.failsAt = "";
    assert.equal((await ask()).status, 201, step);
    market.clock.forward(2 * MINUTE_MS);
    await reconcilePayouts(market.service.ctx);
    assert.equal((await session.get("/v1/payouts")).body.data.length, 1, step);
  }
});
