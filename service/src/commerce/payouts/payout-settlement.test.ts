import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import {
  type BankState,
  bookEarnings,
  type FakeBank,
  installFakeBank,
  ledgerSums,
  requestPayout,
} from "../../../test/payouts.ts";
import { reconcilePayouts, syncPayoutFromProvider } from "./payout-submission.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

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

async function hasSeller(amountMinor = 5000n): Promise<Client> {
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

async function hasPayout(seller: Client) {
  const reply = await requestPayout(market, seller);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const subjectsTo = async ({ userId }: Client) =>
  (await emailsToUser(market, userId)).map(({ subject }) => subject);

suite("a payout that the provider", () => {
  test("confirms is completed, and its seller hears of it once", async () => {
    const seller = await hasSeller();
    const { id } = await hasPayout(seller);
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

  test("confirms at once is completed in the answer", async () => {
    bank.begins = "completed";
    assert.equal((await hasPayout(await hasSeller())).status, "completed");
  });

  test("refuses has failed: its amount is there at once, and another one may be asked for", async () => {
    bank.begins = "failed";
    const seller = await hasSeller();
    assert.partialDeepStrictEqual(await hasPayout(seller), {
      status: "failed",
      failureCode: "account_closed",
    });
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    bank.begins = "completed";
    assert.equal((await hasPayout(seller)).status, "completed");
    assert.deepEqual(await subjectsTo(seller), ["Paid out: 50.00 USD", "Payout failed: 50.00 USD"]);
    assert.equal((await eventsOf(seller)).length, 1);
  });

  test("gets back after its completion is returned, and its amount is there again", async () => {
    bank.begins = "completed";
    const seller = await hasSeller();
    const { id, period } = await hasPayout(seller);
    market.clock.forward(3 * DAY_MS);
    for (let times = 0; times < 2; times++) await bank.moves(id, "returned");
    assert.equal((await payoutsOf(seller))[0].status, "returned");
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    assert.deepEqual(await subjectsTo(seller), ["Payout returned: 50.00 USD", "Paid out: 50.00 USD"]);
    const again = await hasPayout(seller);
    assert.deepEqual([again.amount, again.period], [50, period]);
  });

  test("calls failed after its completion came back as well", async () => {
    bank.begins = "completed";
    const seller = await hasSeller();
    const { id } = await hasPayout(seller);
    await bank.moves(id, "failed");
    assert.partialDeepStrictEqual((await payoutsOf(seller))[0], {
      status: "returned",
      failureCode: "account_closed",
    });
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
  });

  test("has sent back before we heard that it was paid was never completed", async () => {
    const seller = await hasSeller();
    const { id } = await hasPayout(seller);
    await bank.moves(id, "returned");
    assert.partialDeepStrictEqual((await payoutsOf(seller))[0], { status: "returned", completedAt: null });
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    assert.deepEqual(await eventsOf(seller), []);
  });

  test("calls completed after its amount was given back stays given back, which the log tells", async () => {
    bank.begins = "failed";
    const seller = await hasSeller();
    const { id } = await hasPayout(seller);
    await bank.moves(id, "completed");
    assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
    assert.match(market.logs.join("\n"), /calls a payout completed whose amount was given back/);
  });
});

test("a payout gives commissions and sales back to where they were drawn from", async () => {
  const seller = await hasSeller(4000n);
  await bookEarnings(market, seller, { amountMinor: 1500n, account: "referrer" });
  bank.begins = "failed";
  await hasPayout(seller);
  bank.begins = "completed";
  await bank.moves((await hasPayout(seller)).id, "returned");
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

test("twenty notices at once move a payout once", async () => {
  const seller = await hasSeller();
  const { id } = await hasPayout(seller);
  bank.paid.get(id)!.state = "completed";
  const { ctx } = market.service;
  await Promise.all(Array.from({ length: 20 }, () => syncPayoutFromProvider(ctx, id)));
  assert.equal((await eventsOf(seller)).length, 1);
  assert.deepEqual(await balanceOf(seller), { available: 0, inTransit: 0 });
});

suite("the reconciling job", () => {
  const ENDS: BankState[] = ["completed", "failed", "returned"];

  for (const state of ENDS) {
    test(`asks about what is on its way until it is ${state}, though no notice comes`, async () => {
      const seller = await hasSeller();
      const { id } = await hasPayout(seller);
      bank.paid.get(id)!.state = state;
      await reconcile();
      assert.equal((await payoutsOf(seller))[0].status, "in_transit");
      market.clock.forward(11 * MINUTE_MS);
      await reconcile();
      assert.equal((await payoutsOf(seller))[0].status, state);
    });
  }

  test("finds within a day for two weeks, and later within a week, what a bank sent back without a word", async () => {
    bank.begins = "completed";
    const [seller, late] = [await hasSeller(), await hasSeller()];
    const [early, tooLate] = [await hasPayout(seller), await hasPayout(late)];
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

  test("goes on with the others when one cannot be asked about", async () => {
    const sellers = [await hasSeller(), await hasSeller()];
    const [first, second] = [await hasPayout(sellers[0]!), await hasPayout(sellers[1]!)];
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

suite("a payout of which we heard nothing", () => {
  const lost = {
    "because nobody is there": "down",
    "because the answer is lost": "answers get lost",
    "because we died before we asked": "we die before",
    "because we died before the answer": "we die after",
  } as const;

  for (const [why, trouble] of Object.entries(lost)) {
    for (const state of ["completed", "failed"] as const) {
      test(`${why}, is ended by the job as ${state}, with one payout at the provider`, async () => {
        bank.begins = state;
        const seller = await hasSeller();
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

  /** Drawn, and then its seller is shut out. */
  async function hasDrawnAndIsBanned(waitsFor: string | null = null): Promise<Client> {
    const seller = await hasSeller();
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
    test(`${waitsFor ? "that waits for balance" : "and the provider neither"} is not sent to somebody who is shut out meanwhile: it is their balance again`, async () => {
      bank.begins = "completed";
      const seller = await hasDrawnAndIsBanned(waitsFor);
      const asked = bank.paid.size;
      market.clock.forward(61 * MINUTE_MS);
      await reconcile();
      assert.equal(bank.paid.size, asked);
      await market.query("update users set banned_at = null where id = $1", [seller.userId]);
      const [payout] = await payoutsOf(seller);
      assert.deepEqual([payout.status, payout.failureCode], ["failed", "seller_banned"]);
      const [message] = (await emailsToUser(market, seller.userId)).slice(-1);
      assert.match(unwrapLines(message!.text), /is not paid while your account is banned\./);
      assert.deepEqual(await balanceOf(seller), { available: 50, inTransit: 0 });
      assert.equal((await hasPayout(seller)).status, "completed");
    });

  test("which the provider has paid is paid, though its seller is shut out meanwhile", async () => {
    bank.begins = "completed";
    const seller = await hasSeller();
    bank.trouble = "we die after";
    await requestPayout(market, seller);
    bank.trouble = "none";
    await market.query("update users set banned_at = $2 where id = $1", [seller.userId, market.clock.now]);
    market.clock.forward(2 * MINUTE_MS);
    await reconcile();
    await market.query("update users set banned_at = null where id = $1", [seller.userId]);
    assert.equal((await payoutsOf(seller))[0].status, "completed");
  });

  test("costs nobody anything", async () => {
    assert.deepEqual(await ledgerSums(market), { USD: 0 });
  });
});
