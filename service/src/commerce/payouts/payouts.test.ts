import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import {
  bookEarnings,
  type EarningInput,
  type FakeBank,
  installFakeBank,
  requestPayout,
} from "../../../test/payouts.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { minimumMinor } from "./balance.ts";

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

const createSeller = () => market.createUser({ role: "seller" });
const later = (days: number) => new Date(market.clock.now.getTime() + days * DAY_MS);
const day = (days: number) => later(days).toISOString().slice(0, 10);
const addEarnings = (seller: Client, input: EarningInput) => bookEarnings(market, seller, input);
const balances = async (seller: Client) => (await seller.get("/v1/balance")).body.data;
const request = (seller: Client, input: object = {}) => requestPayout(market, seller, input);

async function createPayout(seller: Client, input: object = {}) {
  const reply = await request(seller, input);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

suite("GET /balance", () => {
  test("before the first sale: zero in the default currency", async () => {
    assert.deepEqual(await balances(await createSeller()), [
      {
        ...{ currency: "USD", pending: 0, available: 0, reserved: 0, inTransit: 0 },
        ...{ minimum: 10, nextMaturity: null },
      },
    ]);
  });

  test("after a sale: the seller's share and its maturity", async () => {
    const seller = await createSeller();
    await buyProduct(await market.createUser(), await createProduct(seller, { price: 100 }));
    const [balance] = await balances(seller);
    const at = later(14).toISOString();
    assert.partialDeepStrictEqual(balance, { pending: 90, available: 0, nextMaturity: { amount: 90, at } });
    market.clock.forward(14 * DAY_MS - 1);
    assert.partialDeepStrictEqual((await balances(seller))[0], { pending: 90, available: 0 });
    market.clock.forward(1);
    assert.partialDeepStrictEqual((await balances(seller))[0], {
      pending: 0,
      available: 90,
      nextMaturity: null,
    });
  });

  test("matures after the buyer's refund window, at least seven days", async () => {
    for (const [refundDays, days] of [
      [0, 7],
      [7, 7],
      [30, 30],
    ] as const) {
      const seller = await createSeller();
      await (await market.createSession(seller.userId)).patch("/v1/account", { refundDays });
      await buyProduct(await market.createUser(), await createProduct(seller));
      const at = later(days).toISOString();
      assert.equal((await balances(seller))[0].nextMaturity.at, at, `a window of ${refundDays} days`);
    }
  });

  test("one balance for each currency, with its decimals and minimum", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 1999n, currency: "USD" });
    await addEarnings(seller, { amountMinor: 1500n, currency: "JPY", maturesAt: later(1) });
    await addEarnings(seller, { amountMinor: 1234n, currency: "KWD" });
    const matured = { pending: 0, reserved: 0, inTransit: 0, minimum: 10, nextMaturity: null };
    assert.deepEqual(await balances(seller), [
      {
        currency: "JPY",
        pending: 1500,
        available: 0,
        reserved: 0,
        inTransit: 0,
        minimum: 1000,
        nextMaturity: { amount: 1500, at: later(1).toISOString() },
      },
      { ...matured, currency: "KWD", available: 1.234 },
      { ...matured, currency: "USD", available: 19.99 },
    ]);
    const paged = await seller.get("/v1/balance?limit=1&page=2");
    assert.equal(paged.body.data[0].currency, "KWD");
    assert.equal(paged.body.meta.total, 3);
  });

  test("nextMaturity: skips fully refunded sales", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 500n, maturesAt: later(1) });
    await addEarnings(seller, { amountMinor: -500n, maturesAt: later(1) });
    await addEarnings(seller, { amountMinor: 700n, maturesAt: later(2) });
    const [{ pending, nextMaturity }] = await balances(seller);
    assert.deepEqual(
      { pending, nextMaturity },
      { pending: 7, nextMaturity: { amount: 7, at: later(2).toISOString() } },
    );
  });

  test("a negative balance: offset by later sales before any payout", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: -3000n });
    assert.equal((await balances(seller))[0].available, -30);
    assertError(await request(seller), 422, "VALIDATION_ERROR", "amount");
    await addEarnings(seller, { amountMinor: 3900n });
    assertError(await request(seller), 422, "VALIDATION_ERROR", "amount");
    await addEarnings(seller, { amountMinor: 200n });
    assert.equal((await createPayout(seller)).amount, 11);
  });
});

suite("POST /payouts", () => {
  test("pays the available balance and names its period", async () => {
    const seller = await createSeller();
    const now = market.clock.now;
    await addEarnings(seller, { amountMinor: 1000n, maturesAt: later(-9) });
    await addEarnings(seller, { amountMinor: 2550n, maturesAt: later(-2) });
    await addEarnings(seller, { amountMinor: 4000n, maturesAt: later(1) });
    const payout = await createPayout(seller);
    assert.deepEqual(payout, {
      id: payout.id,
      sellerId: toId("usr", seller.userId),
      status: "in_transit",
      amount: 35.5,
      currency: "USD",
      period: { start: day(-9), end: day(-2) },
      failureCode: null,
      createdAt: now.toISOString(),
      completedAt: null,
    });
    assert.partialDeepStrictEqual((await balances(seller))[0], {
      pending: 40,
      available: 0,
      inTransit: 35.5,
    });
    const { statement, ...read } = (await seller.get(`/v1/payouts/${payout.id}`)).body.data;
    assert.deepEqual(read, payout);
    assert.deepEqual(statement, { opening: 0, added: 35.5, closing: 0 });
    assert.deepEqual(bank.paid.get(payout.id)!.request, {
      payoutId: payout.id,
      destination: "acct_test",
      amountMinor: 3550n,
      currency: "USD",
    });
  });

  test("an amount: pays the earliest earnings; the next payout continues from there", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    for (const days of [-5, -4, -3, -2])
      await addEarnings(seller, { amountMinor: 2000n, maturesAt: later(days) });
    assert.deepEqual((await createPayout(seller, { amount: 30 })).period, { start: day(-5), end: day(-4) });
    assert.deepEqual((await createPayout(seller, { amount: 20 })).period, { start: day(-3), end: day(-3) });
    assert.deepEqual((await createPayout(seller)).period, { start: day(-2), end: day(-2) });
  });

  test("periods: from the first sale, then from the last paid day", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    const productId = await createProduct(seller, { price: 50 });
    const sold = day(0);
    await buyProduct(await market.createUser(), productId);
    market.clock.forward(3 * DAY_MS);
    await buyProduct(await market.createUser(), productId);
    market.clock.forward(12 * DAY_MS);
    assert.deepEqual((await createPayout(seller)).period, { start: sold, end: day(-1) });
    market.clock.forward(5 * DAY_MS);
    assert.deepEqual((await createPayout(seller)).period, { start: day(-5), end: day(-3) });
  });

  test("the rest of a paid day: its period is the following day", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    for (const days of [-3, -3, -1])
      await addEarnings(seller, { amountMinor: 2000n, maturesAt: later(days) });
    assert.deepEqual((await createPayout(seller, { amount: 20 })).period, { start: day(-3), end: day(-3) });
    assert.deepEqual((await createPayout(seller, { amount: 20 })).period, { start: day(-2), end: day(-2) });
    assert.deepEqual((await createPayout(seller)).period, { start: day(-1), end: day(-1) });
  });

  test("debits commissions first, then sales", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 1500n, account: "referrer" });
    await addEarnings(seller, { amountMinor: 5000n });
    await createPayout(seller, { amount: 20 });
    const { rows } = await market.query(
      `select account, sum(amount_minor) from ledger_entries where owner_id = $1 group by account order by account`,
      [seller.userId],
    );
    assert.deepEqual(
      rows.map(({ account, sum }) => [account, Number(sum)]),
      [
        ["in_transit", 2000],
        ["referrer", 0],
        ["seller", 4500],
      ],
    );
  });

  test("below the minimum or above the balance: 422", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 5000n });
    for (const amount of [9.99, 50.01, 1_000_000])
      assertError(await request(seller, { amount }), 422, "VALIDATION_ERROR", "amount");
    assert.equal((await createPayout(seller, { amount: 50 })).amount, 50);
    const poor = await createSeller();
    await addEarnings(poor, { amountMinor: 999n });
    const { reason } = assertError(await request(poor), 422, "VALIDATION_ERROR", "amount");
    assert.match(reason, /below the minimum of 10.00 USD; 9.99 USD is available/);
  });

  test("an invalid amount: 400", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 5000n });
    for (const amount of [0, -1, 10.001, "10", 1e20])
      assertError(await request(seller, { amount }), 400, "INVALID_REQUEST", "amount");
    for (const currency of ["XXX", "usd", "", 1])
      assertError(await request(seller, { currency }), 400, "INVALID_REQUEST", "currency");
    assertError(await request(seller, { sum: 10 }), 400, "INVALID_REQUEST", "sum");
    assert.equal((await balances(seller))[0].available, 50);
  });

  test("currency: the only one with a balance, else the default, unless requested", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 5000n, currency: "JPY" });
    assert.partialDeepStrictEqual(await createPayout(seller, { amount: 2000 }), {
      currency: "JPY",
      amount: 2000,
    });
    await addEarnings(seller, { amountMinor: 5000n, currency: "USD" });
    assert.partialDeepStrictEqual(await createPayout(seller), { currency: "USD", amount: 50 });
    await addEarnings(seller, { amountMinor: 20_000n, currency: "KWD" });
    assert.partialDeepStrictEqual(await createPayout(seller, { currency: "KWD" }), {
      currency: "KWD",
      amount: 20,
    });
    assertError(await request(seller, { currency: "EUR" }), 422, "VALIDATION_ERROR", "amount");
  });

  test("an open payout in the currency: 409 with its id", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 5000n });
    const payout = await createPayout(seller, { amount: 20 });
    assert.equal(assertError(await request(seller), 409, "CONFLICT").payoutId, payout.id);
    await bank.moves(payout.id, "completed");
    assert.equal((await createPayout(seller)).amount, 30);
  });

  test("another process with a slow clock: debited once", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 2_000n });
    await addEarnings(seller, { amountMinor: 1_000n, account: "referrer" });
    market.clock.forward(60_000);
    await createPayout(seller);
    market.clock.forward(-30_000);
    assert.partialDeepStrictEqual((await balances(seller))[0], { pending: 0, available: 0 });
    assertError(await request(seller), 422, "VALIDATION_ERROR", "amount");
    market.clock.forward(30_000);
  });

  test("concurrent requests: one payout", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 50_000n });
    const session = await market.createSession(seller.userId);
    const asks = Array.from({ length: runs(50) }, () => session.post("/v1/payouts", { amount: 10 }));
    const replies = await Promise.all(asks);
    assert.deepEqual(replies.map(({ status }) => status).sort(), [
      201,
      ...Array<number>(asks.length - 1).fill(409),
    ]);
    assert.equal((await seller.get("/v1/payouts")).body.meta.total, 1);
    assert.partialDeepStrictEqual((await balances(seller))[0], { available: 490, inTransit: 10 });
  });

  test("without a payout account: refused; otherwise paid to the seller's account", async () => {
    const { payments } = market.service.ctx.integrations;
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 5000n });
    Object.assign(market.service.ctx.integrations, { payments: { ...payments, sharedPayoutAccount: null } });
    assertError(await request(seller), 422, "VALIDATION_ERROR", "account");
    await market.query("insert into payment_customers (user_id, payout_account_id) values ($1, 'acct_own')", [
      seller.userId,
    ]);
    const payout = await createPayout(seller);
    assert.equal(bank.paid.get(payout.id)!.request.destination, "acct_own");
    Object.assign(market.service.ctx.integrations, { payments });
  });

  test("seller banned while the provider checks the account: no payout", async () => {
    const [seller, { payments }] = [await createSeller(), market.service.ctx.integrations];
    await addEarnings(seller, { amountMinor: 2_000n });
    const { findPayoutAccount } = payments;
    payments.findPayoutAccount = async (account) => {
      await market.query("update users set banned_at = $2 where id = $1", [seller.userId, market.clock.now]);
      return findPayoutAccount(account);
    };
    const reply = await request(seller);
    payments.findPayoutAccount = findPayoutAccount;
    assertError(reply, 401, "INVALID_API_KEY");
    const { rowCount } = await market.query("select from payouts where seller_id = $1", [seller.userId]);
    assert.equal(rowCount, 0);
  });

  test("repeated Idempotency-Key: the same payout", async () => {
    bank.begins = "completed";
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 5000n });
    const session = await market.createSession(seller.userId);
    const replies = [1, 2].map(() =>
      session.post("/v1/payouts", { amount: 10 }, { "idempotency-key": "once" }),
    );
    const [first, second] = await Promise.all(replies);
    assert.ok([first!.status, second!.status].includes(201));
    assert.equal((await seller.get("/v1/payouts")).body.meta.total, 1);
  });
});

suite("GET /payouts", () => {
  test("newest first, by status and currency, only the caller's", async () => {
    const seller = await createSeller();
    await addEarnings(seller, { amountMinor: 10_000n });
    await addEarnings(seller, { amountMinor: 9000n, currency: "JPY" });
    const first = await createPayout(seller, { currency: "USD", amount: 10 });
    await bank.moves(first.id, "completed");
    const second = await createPayout(seller, { currency: "USD", amount: 10 });
    const third = await createPayout(seller, { currency: "JPY" });
    const ids = async (query: string) =>
      (await seller.get(`/v1/payouts${query}`)).body.data.map(({ id }: { id: string }) => id);
    assert.deepEqual(await ids(""), [third.id, second.id, first.id]);
    assert.deepEqual(await ids("?status=in_transit"), [third.id, second.id]);
    assert.deepEqual(await ids("?currency=USD&status=completed"), [first.id]);
    assert.deepEqual(await ids("?limit=1&page=2"), [second.id]);
    const other = await createSeller();
    assert.deepEqual((await other.get("/v1/payouts")).body.data, []);
    assertError(await other.get(`/v1/payouts/${first.id}`), 404, "PAYOUT_NOT_FOUND");
    assertError(await seller.get("/v1/payouts?status=lost"), 400, "INVALID_REQUEST", "status");
    for (const id of ["payout_00000000000000000000000000", "1", first.id.replace("payout", "ord")])
      assertError(await seller.get(`/v1/payouts/${id}`), 404, "PAYOUT_NOT_FOUND");
  });

  test("GET /admin/payouts: with seller and account", async () => {
    const seller = await market.createUser({ role: "seller", name: "Grace" });
    await addEarnings(seller, { amountMinor: 10_000n });
    const { id } = await createPayout(seller);
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    const sellerId = toId("usr", seller.userId);
    const { data } = (await admin.get(`/v1/admin/payouts?sellerId=${sellerId}`)).body;
    assert.equal(data.length, 1);
    assert.partialDeepStrictEqual(data[0], {
      id,
      seller: { id: sellerId, name: "Grace" },
      account: "acct_test",
      providerPayoutId: `po_${id}`,
      scheduled: false,
    });
    assert.equal((await admin.get("/v1/admin/payouts")).body.data[0].id, id);
    assert.deepEqual((await admin.get("/v1/admin/payouts?sellerId=nobody")).body.data, []);
    assertError(await seller.get("/v1/admin/payouts"), 403, "UNAUTHORIZED");
  });
});

test("balance and payouts: sellers only; keys can read, only sessions can request", async () => {
  const buyer = await market.createUser();
  for (const path of ["/v1/balance", "/v1/payouts"])
    assert.equal(assertError(await buyer.get(path), 403, "UNAUTHORIZED").required, "manage:products");
  const reader = await market.createUser({ role: "seller", permissions: ["purchases:read"] });
  assert.equal((await reader.get("/v1/balance")).status, 200);
  const reply = await (await market.createUser({ role: "seller" })).post("/v1/payouts", {});
  assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "session");
});

test("the minimum: 10 with decimals, 1,000 without", () => {
  assert.deepEqual(["USD", "KWD", "JPY"].map(minimumMinor), [1_000n, 10_000n, 1_000n]);
});
