import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings, type FakeBank, installFakeBank, ProcessKilled } from "../../../test/payouts.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { reconcilePayouts } from "./payout-submission.ts";
import { nextPayoutTime, payOutBySchedule } from "./schedule.ts";

const MINUTE_MS = 60_000;
const WEEK_MS = 7 * DAY_MS;

suite("nextPayoutTime", () => {
  const next = (schedule: Parameters<typeof nextPayoutTime>[0], after: string) =>
    nextPayoutTime(schedule, new Date(after)).toISOString();

  test("daily: 06:00 UTC", () => {
    assert.equal(next("daily", "2026-06-15T05:59:59.999Z"), "2026-06-15T06:00:00.000Z");
    assert.equal(next("daily", "2026-06-15T06:00:00.000Z"), "2026-06-16T06:00:00.000Z");
  });

  test("weekly: Mondays", () => {
    assert.equal(next("weekly", "2026-06-15T05:00:00.000Z"), "2026-06-15T06:00:00.000Z");
    assert.equal(next("weekly", "2026-06-15T06:00:00.000Z"), "2026-06-22T06:00:00.000Z");
    assert.equal(next("weekly", "2026-12-30T12:00:00.000Z"), "2027-01-04T06:00:00.000Z");
  });

  test("monthly: the first day", () => {
    assert.equal(next("monthly", "2026-02-01T06:00:00.000Z"), "2026-03-01T06:00:00.000Z");
    assert.equal(next("monthly", "2026-12-31T23:59:59.999Z"), "2027-01-01T06:00:00.000Z");
  });
});

suite("payOutBySchedule", () => {
  let market: Market;
  let bank: FakeBank;
  before(async () => {
    market = await openMarket();
    bank = installFakeBank(market);
    await runSchedule();
  });
  beforeEach(() => {
    bank.begins = "completed";
    bank.trouble = "none";
  });
  after(() => market.close());

  const runSchedule = () => payOutBySchedule(market.service.ctx, "weekly");
  const payoutsOf = async (seller: Client) => (await seller.get("/v1/payouts")).body.data;
  const amountsOf = async (seller: Client) =>
    (await payoutsOf(seller)).map(({ amount }: { amount: number }) => amount);

  async function createSeller(amountMinor = 5000n, currency = "USD"): Promise<Client> {
    const seller = await market.createUser({ role: "seller" });
    await bookEarnings(market, seller, { amountMinor, currency });
    return seller;
  }

  test("weekly: pays the available balance of each currency from the minimum on", async () => {
    const [seller, poor] = [await createSeller(), await createSeller(999n)];
    await bookEarnings(market, seller, { amountMinor: 1000n, currency: "JPY" });
    await runSchedule();
    assert.deepEqual(await payoutsOf(seller), []);
    market.clock.forward(WEEK_MS);
    for (let times = 0; times < 3; times++) await runSchedule();
    assert.deepEqual((await amountsOf(seller)).sort(), [1000, 50]);
    assert.deepEqual(await payoutsOf(poor), []);
    await bookEarnings(market, seller, { amountMinor: 7000n });
    await runSchedule();
    assert.equal((await payoutsOf(seller)).length, 2);
    await bookEarnings(market, poor, { amountMinor: 1n });
    market.clock.forward(WEEK_MS);
    await runSchedule();
    assert.deepEqual(await amountsOf(poor), [10]);
    assert.deepEqual((await amountsOf(seller)).sort(), [1000, 50, 70]);
  });

  test("missed times: paid once, and each time is recorded", async () => {
    bank.begins = "failed";
    const seller = await createSeller();
    market.clock.forward(5 * WEEK_MS);
    const { rows: before } = await market.query("select slot from scheduled_runs where job = 'pay-out'");
    await runSchedule();
    const { rows: after } = await market.query("select slot from scheduled_runs where job = 'pay-out'");
    assert.equal(after.length - before.length, 5);
    assert.deepEqual(
      (await payoutsOf(seller)).map(({ status }: { status: string }) => status),
      ["failed"],
    );
    await runSchedule();
    assert.equal((await payoutsOf(seller)).length, 1);
  });

  test("concurrent workers: paid once", async () => {
    const sellers = await Promise.all(Array.from({ length: runs(5, 3) }, () => createSeller()));
    market.clock.forward(WEEK_MS);
    await Promise.all(Array.from({ length: runs(10, 3) }, runSchedule));
    for (const seller of sellers) assert.deepEqual(await amountsOf(seller), [50]);
  });

  test("a worker killed while paying: the reconciliation job completes its payouts", async () => {
    const sellers = await Promise.all(Array.from({ length: 3 }, () => createSeller()));
    market.clock.forward(WEEK_MS);
    bank.trouble = "we die after";
    await runSchedule();
    bank.trouble = "none";
    await runSchedule();
    market.clock.forward(2 * MINUTE_MS);
    await reconcilePayouts(market.service.ctx);
    for (const seller of sellers) {
      const payouts = await payoutsOf(seller);
      assert.deepEqual(
        payouts.map(({ status }: { status: string }) => status),
        ["completed"],
      );
    }
  });

  test("a payout that cannot be created: does not delay others; the run is retried", async () => {
    const sellers = await Promise.all([createSeller(), createSeller(), createSeller()]);
    market.clock.forward(WEEK_MS);
    const { ctx } = market.service;
    let ids = 0;
    const broken = {
      ...ctx,
      newId: () => {
        if (ids++ === 0) throw new ProcessKilled();
        return ctx.newId();
      },
    };
    await assert.rejects(payOutBySchedule(broken, "weekly"), ProcessKilled);
    const paid = async () => (await Promise.all(sellers.map(amountsOf))).flat();
    assert.deepEqual(await paid(), [50, 50]);
    for (const seller of sellers) await bookEarnings(market, seller, { amountMinor: 2000n });
    for (let times = 0; times < 3; times++) await runSchedule();
    assert.deepEqual((await paid()).sort(), [50, 50, 70], "who was paid in the slot waits for the next one");
  });

  test("a payout that can never be created: does not delay others or later runs, and is logged", async () => {
    // An amount that no payout can represent.
    const broken = await createSeller(5000n, "NOT A CURRENCY");
    const seller = await createSeller();
    const late = await market.createUser({ role: "seller" });
    const slots = async () =>
      (await market.query("select slot from scheduled_runs where done_at is null")).rows;
    for (let weeks = 1; weeks <= 3; weeks++) {
      market.clock.forward(WEEK_MS);
      await assert.rejects(runSchedule(), RangeError);
      await bookEarnings(market, late, { amountMinor: 2000n });
      await assert.rejects(runSchedule(), RangeError);
      assert.equal((await amountsOf(late)).length, weeks - 1, "what matures after a slot is not for it");
      assert.equal((await amountsOf(seller)).length, weeks, "others are paid in each slot");
      assert.equal((await slots()).length, 1, "the last slot is tried again");
      await bookEarnings(market, seller, { amountMinor: 3000n });
      const logged = market.logs.filter((line) => line.includes(toId("usr", broken.userId)));
      assert.ok(logged.length >= weeks, "the log says whose");
    }
    await bookEarnings(market, broken, { amountMinor: -5000n, currency: "NOT A CURRENCY" });
    market.clock.forward(WEEK_MS);
    await runSchedule();
    assert.equal((await slots()).length, 0);
    assert.equal((await amountsOf(seller)).length, 4);
  });

  test("a banned seller: not paid until the ban ends", async () => {
    const seller = await createSeller();
    await market.query("update users set banned_at = $2 where id = $1", [seller.userId, market.clock.now]);
    market.clock.forward(WEEK_MS);
    await runSchedule();
    await market.query("update users set banned_at = null where id = $1", [seller.userId]);
    assert.deepEqual(await amountsOf(seller), []);
    market.clock.forward(WEEK_MS);
    await runSchedule();
    assert.deepEqual(await amountsOf(seller), [50]);
  });
});
