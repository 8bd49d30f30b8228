import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { lastOf, titlesOf } from "../../../test/notifications.ts";
import {
  type BankState,
  bookEarnings,
  type FakeBank,
  installFakeBank,
  ledgerSums,
  requestPayout,
} from "../../../test/payouts.ts";
import { DAY_MS } from "../../core/dates.ts";
import { reconcilePayouts, syncPayoutFromProvider } from "./payout-submission.ts";

const MINUTE_MS = 60_000;

let market: Market;
let bank: FakeBank;
before(async () => {
  market = await openMarket();
  bank = installFakeBank(market);
});
beforeEach(() => {
  bank.begins = "in_transit";
  bank.trouble = "none";
});
after(() => market.close());

async function createSeller(amountMinor = 5000n): Promise<Client> {
  const seller = await market.createUser({ role: "seller" });
  await bookEarnings(market, seller, { amountMinor });
  return seller;
}

const balanceOf = async (seller: Client) => {
  const [{ available, inTransit }] = (await seller.get("/v1/balance")).body.data;
  return { available, inTransit };
};
const payoutsOf = async (seller: Client) => (await seller.get("/v1/payouts")).body.data;
const eventsOf = async (seller: Client) => (await seller.get("/v1/events?type=payout.completed")).body.data;
const reconcile = () => reconcilePayouts(market.service.ctx);

async function createPayout(seller: Client) {
  const reply = await requestPayout(market, seller);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const subjectsTo = async ({ userId }: Client) =>
  (await emailsToUser(market, userId)).map(({ subject }) => subject);

suite("a payout that the provider", () => {
  test("confirms: completed, with one event", async () => {
    const seller = await createSeller();
    const { id } = await createPayout(seller);
    assert.deepEqual(await balanceOf(seller), { available: 0, inTransit: 50 });
    market.clock.forward(DAY_MS);
    for (let times = 0; times < 3; times++) await bank.moves(id, "completed");
    const [payout] = await payoutsOf(seller);
    assert.partialDeepStrictEqual(payout, {
      status: "completed",
      completedAt: market.clock.now.toISOString(),
    });
    assert.deepEqual(await balanceOf(seller), { available: 0, inTransit: 0 });
    const [event, ...others] = await eventsOf(seller);
    assert.deepEqual(others, []);
    const { sellerId, amount, currency, period } = payout;
    assert.deepEqual(event.data, { payout: { id, sellerId, amount, currency, period } });
    assert.deepEqual(await subjectsTo(seller), ["Paid out: 50.00 USD"]);
  });

  test("confirms in its answer: completed in the response", async () => {
    bank.begins = "completed";
    assert.equal((await createPayout(await createSeller())).status, "completed");
  });

  test("refuses: failed; the amount is available again", async () => {
    bank.begins = "failed";
    const seller = await createSeller();
    assert.partialDeepStrictEqual(await createPayout(seller), {
      status: "failed",
      failureCode: "account_closed",
    });
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    bank.begins = "completed";
    assert.equal((await createPayout(seller)).status, "completed");
    assert.deepEqual(await subjectsTo(seller), ["Paid out: 50.00 USD", "Payout failed: 50.00 USD"]);
    const { title, text } = await lastOf(seller, "payout.failed");
    assert.equal(
      `${title}. ${text}`,
      "A payout of $50.00 failed. The amount is back in your balance. Reason: account_closed.",
    );
    assert.equal((await eventsOf(seller)).length, 1);
  });

  test("returns after completion: returned; the amount is available again", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    const { id, period } = await createPayout(seller);
    market.clock.forward(3 * DAY_MS);
    for (let times = 0; times < 2; times++) await bank.moves(id, "returned");
    assert.equal((await payoutsOf(seller))[0].status, "returned");
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    assert.deepEqual(await subjectsTo(seller), ["Payout returned: 50.00 USD", "Paid out: 50.00 USD"]);
    const titles = ["Your bank returned a payout of $50.00", "$50.00 was paid out to you"];
    assert.deepEqual((await titlesOf(seller)).slice(0, 2), titles);
    const again = await createPayout(seller);
    assert.deepEqual([again.amount, again.period], [50, period]);
  });

  test("reports as failed after completion: returned", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    const { id } = await createPayout(seller);
    await bank.moves(id, "failed");
    assert.partialDeepStrictEqual((await payoutsOf(seller))[0], {
      status: "returned",
      failureCode: "account_closed",
    });
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
  });

  test("returned before we read the completion: never completed", async () => {
    const seller = await createSeller();
    const { id } = await createPayout(seller);
    await bank.moves(id, "returned");
    assert.partialDeepStrictEqual((await payoutsOf(seller))[0], { status: "returned", completedAt: null });
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    assert.deepEqual(await eventsOf(seller), []);
  });

  test("reports as completed after its failure: stays failed, with a warning in the log", async () => {
    bank.begins = "failed";
    const seller = await createSeller();
    const { id } = await createPayout(seller);
    await bank.moves(id, "completed");
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    assert.match(market.logs.join("\n"), /reports a payout as completed that failed or was returned here/);
  });
});

test("a failed payout: credits commissions and sales to their accounts", async () => {
  const seller = await createSeller(4000n);
  await bookEarnings(market, seller, { amountMinor: 1500n, account: "referrer" });
  bank.begins = "failed";
  await createPayout(seller);
  bank.begins = "completed";
  await bank.moves((await createPayout(seller)).id, "returned");
  const { rows } = await market.query(
    "select account, sum(amount_minor)::bigint as sum from ledger_entries where owner_id = $1 group by account order by account",
    [seller.userId],
  );
  assert.deepEqual(
    rows.map(({ account, sum }) => [account, sum]),
    [
      ["in_transit", 0],
      ["referrer", 1500],
      ["seller", 4000],
    ],
  );
});

test("twenty concurrent webhooks: settled once", async () => {
  const seller = await createSeller();
  const { id } = await createPayout(seller);
  bank.paid.get(id)!.state = "completed";
  const { ctx } = market.service;
  await Promise.all(Array.from({ length: 20 }, () => syncPayoutFromProvider(ctx, id)));
  assert.equal((await eventsOf(seller)).length, 1);
  assert.deepEqual(await balanceOf(seller), { available: 0, inTransit: 0 });
});

suite("the reconciliation job", () => {
  const ENDS: BankState[] = ["completed", "failed", "returned"];

  for (const state of ENDS) {
    test(`a payout in transit without a webhook: asks until it is ${state}`, async () => {
      const seller = await createSeller();
      const { id } = await createPayout(seller);
      bank.paid.get(id)!.state = state;
      await reconcile();
      assert.equal((await payoutsOf(seller))[0].status, "in_transit");
      market.clock.forward(11 * MINUTE_MS);
      await reconcile();
      assert.equal((await payoutsOf(seller))[0].status, state);
    });
  }

  test("a returned payout without a webhook: found within a day for two weeks, then within a week", async () => {
    bank.begins = "completed";
    const [seller, late] = [await createSeller(), await createSeller()];
    const [early, tooLate] = [await createPayout(seller), await createPayout(late)];
    market.clock.forward(13 * DAY_MS);
    bank.paid.get(early.id)!.state = "returned";
    await reconcile();
    market.clock.forward(2 * DAY_MS);
    bank.paid.get(tooLate.id)!.state = "returned";
    await reconcile();
    assert.equal((await payoutsOf(seller))[0].status, "returned");
    assert.equal((await payoutsOf(late))[0].status, "completed");
    market.clock.forward(7 * DAY_MS);
    await reconcile();
    assert.equal((await payoutsOf(late))[0].status, "returned");
  });

  test("a payout that cannot be read: does not delay the others", async () => {
    const sellers = [await createSeller(), await createSeller()];
    const [first, second] = [await createPayout(sellers[0]!), await createPayout(sellers[1]!)];
    bank.paid.get(second.id)!.state = "completed";
    const { request } = bank.paid.get(first.id)!;
    Object.defineProperty(bank.paid.get(first.id)!, "state", {
      get() {
        throw new Error("a broken answer");
      },
    });
    market.clock.forward(11 * MINUTE_MS);
    await reconcile();
    assert.equal((await payoutsOf(sellers[1]!))[0].status, "completed");
    bank.paid.set(first.id, { request, state: "completed" });
    market.clock.forward(11 * MINUTE_MS);
    await reconcile();
    assert.equal((await payoutsOf(sellers[0]!))[0].status, "completed");
  });
});

suite("a payout without the provider's answer", () => {
  const causes = {
    "provider unavailable": "down",
    "answer lost": "answers get lost",
    "process ended before the request": "we die before",
    "process ended before the answer": "we die after",
  } as const;

  for (const [why, trouble] of Object.entries(causes)) {
    for (const state of ["completed", "failed"] as const) {
      test(`${why}: the job ends it as ${state}, with one payout at the provider`, async () => {
        bank.begins = state;
        const seller = await createSeller();
        const before = new Set(bank.paid.keys());
        bank.trouble = trouble;
        await requestPayout(market, seller);
        market.clock.forward(2 * MINUTE_MS);
        await reconcile();
        bank.trouble = "none";
        assert.deepEqual(await balanceOf(seller), { available: 0, inTransit: 50 });
        market.clock.forward(2 * MINUTE_MS);
        await reconcile();
        const payouts = await payoutsOf(seller);
        assert.deepEqual(
          payouts.map(({ status }: { status: string }) => status),
          [state],
        );
        assert.deepEqual(
          [...bank.paid.keys()].filter((id) => !before.has(id)),
          [payouts[0].id],
        );
        assert.deepEqual(await balanceOf(seller), { available: state === "failed" ? 50 : 0, inTransit: 0 });
      });
    }
  }

  /** Creates a payout, then bans its seller. */
  async function createPayoutOfBannedSeller(waitsFor: string | null = null): Promise<Client> {
    const seller = await createSeller();
    bank.trouble = waitsFor ? "none" : "we die before";
    const { payments } = market.service.ctx.integrations;
    const { payOut } = payments;
    if (waitsFor) payments.payOut = async () => ({ state: "waits", providerPayoutId: null, waitsFor });
    await requestPayout(market, seller);
    payments.payOut = payOut;
    await market.query("update users set banned_at = $2 where id = $1", [seller.userId, market.clock.now]);
    bank.trouble = "none";
    return seller;
  }

  for (const waitsFor of [null, "balance_insufficient"])
    test(`${waitsFor ? "waiting for balance" : "not submitted"}, seller banned meanwhile: fails, and the amount is available again`, async () => {
      bank.begins = "completed";
      const seller = await createPayoutOfBannedSeller(waitsFor);
      const requestCount = bank.paid.size;
      market.clock.forward(61 * MINUTE_MS);
      await reconcile();
      assert.equal(bank.paid.size, requestCount);
      await market.query("update users set banned_at = null where id = $1", [seller.userId]);
      const [payout] = await payoutsOf(seller);
      assert.deepEqual([payout.status, payout.failureCode], ["failed", "seller_banned"]);
      const [message] = (await emailsToUser(market, seller.userId)).slice(-1);
      assert.match(unwrapLines(message!.text), /is not paid while your account is banned\./);
      assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
      assert.equal((await createPayout(seller)).status, "completed");
    });

  test("paid by the provider, seller banned meanwhile: completed", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    bank.trouble = "we die after";
    await requestPayout(market, seller);
    bank.trouble = "none";
    await market.query("update users set banned_at = $2 where id = $1", [seller.userId, market.clock.now]);
    market.clock.forward(2 * MINUTE_MS);
    await reconcile();
    await market.query("update users set banned_at = null where id = $1", [seller.userId]);
    assert.equal((await payoutsOf(seller))[0].status, "completed");
  });

  test("all payouts above: the ledger sums to zero", async () => {
    assert.deepEqual(await ledgerSums(market), { USD: 0 });
  });
});
