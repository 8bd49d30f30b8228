import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { buyProduct, createProduct, type ProductInput } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type FakeBank, installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { createFakeRefunds, openDispute, withRefunds } from "../../../test/refunds.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { disputeRooms } from "../../jobs.ts";
import { syncDispute } from "../charges/disputes.ts";
import { reconcileRefunds } from "../refunds/refund-submission.ts";
import { payOutBySchedule } from "./schedule.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

const book = createFakeRefunds();
let provider: FakeProvider;
let market: Market;
let bank: FakeBank;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  market = await openMarket({ payments: withRefunds(book, createFakePayments({ origin: provider.origin })) });
  bank = installFakeBank(market);
});
beforeEach(() => {
  book.trouble = "none";
  bank.begins = "completed";
});
after(async () => {
  await market.close();
  await provider.close();
});

/** Until the last moment in which a buyer may ask for a refund, which is the first in which the sale has matured. */
const matures = () => market.clock.forward(14 * DAY_MS);
const sessionOf = ({ userId }: Client) => market.createSession(userId);
const balanceOf = async (who: Client) => (await who.get("/v1/balance")).body.data[0];
const isBalance = async (who: Client, wanted: object) =>
  assert.partialDeepStrictEqual(await balanceOf(who), wanted);
const pays = (seller: Client, input: object = {}) => requestPayout(market, seller, input);

interface Sold {
  seller: Client;
  buyer: Client;
  orderId: string;
}

/** 20.00 of which the seller has 18.00; its buyer looked at it, so that the seller decides about a refund. */
async function hasSold(input: ProductInput = {}, purchase: object = {}): Promise<Sold> {
  const [seller, buyer] = [await market.createUser({ role: "seller" }), await market.createUser()];
  const productId = await createProduct(seller, { price: 20, ...input });
  const { body, text } = await buyer.post("/v1/purchases", { productId, ...purchase });
  assert.ok(body.data, text);
  await buyer.get(`/v1/products/${productId}`);
  return { seller, buyer, orderId: body.data.orderId };
}

async function asksForRefund({ buyer, orderId }: Sold): Promise<string> {
  const { body, text } = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "not_working" });
  assert.equal(body.data?.status, "pending", text);
  return body.data.id;
}

const decides = async ({ seller }: Sold, refundId: string, how: "approve" | "reject") => {
  const reply = await (await sessionOf(seller)).post(`/v1/refunds/${refundId}/${how}`, {
    ...(how === "reject" && { reason: "It works." }),
  });
  assert.equal(reply.status, 200, reply.text);
};

suite("what an open refund may take", () => {
  test("is reserved once the sale has matured, and not paid out until it is rejected", async () => {
    const sold = await hasSold();
    market.clock.forward(13 * DAY_MS);
    const refundId = await asksForRefund(sold);
    await isBalance(sold.seller, { pending: 18, available: 0, reserved: 0 });
    market.clock.forward(DAY_MS);
    await isBalance(sold.seller, { pending: 0, available: 0, reserved: 18 });
    const refusal = await pays(sold.seller);
    assertError(refusal, 422, "VALIDATION_ERROR", "amount");
    assert.match(refusal.text, /18\.00 USD is reserved for open refunds and disputes/);
    assertError(await pays(sold.seller, { amount: 18 }), 422, "VALIDATION_ERROR", "amount");
    await decides(sold, refundId, "reject");
    await isBalance(sold.seller, { available: 18, reserved: 0 });
    assert.equal((await pays(sold.seller)).body.data.amount, 18);
  });

  test("stays reserved while it is on its way, and is gone without anybody owing anything when it is there", async () => {
    const sold = await hasSold();
    matures();
    const refundId = await asksForRefund(sold);
    book.trouble = "down";
    await decides(sold, refundId, "approve");
    await isBalance(sold.seller, { available: 0, reserved: 18 });
    assertError(await pays(sold.seller), 422, "VALIDATION_ERROR", "amount");
    book.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    await reconcileRefunds(market.service.ctx);
    await isBalance(sold.seller, { available: 0, reserved: 0 });
  });

  test("leaves everything else to be paid out, by the schedule too", async () => {
    await payOutBySchedule(market.service.ctx, "daily");
    const sold = await hasSold();
    await buyProduct(await market.createUser(), await createProduct(sold.seller, { price: 30 }));
    matures();
    await asksForRefund(sold);
    await isBalance(sold.seller, { available: 27, reserved: 18 });
    market.clock.forward(DAY_MS);
    await payOutBySchedule(market.service.ctx, "daily");
    const [{ amount }] = (await sold.seller.get("/v1/payouts")).body.data;
    assert.equal(amount, 27);
    await isBalance(sold.seller, { available: 0, reserved: 18 });
  });

  test("is reserved of the referrer's commission as of the seller's part", async () => {
    const referrer = await market.createUser({ role: "seller" });
    const { code } = (await referrer.get("/v1/account/referral")).body.data;
    const sold = await hasSold({ price: 200 }, { referralCode: code });
    matures();
    const refundId = await asksForRefund(sold);
    await isBalance(referrer, { available: 0, reserved: 20 });
    await isBalance(sold.seller, { available: 0, reserved: 160 });
    assertError(await pays(referrer), 422, "VALIDATION_ERROR", "amount");
    await decides(sold, refundId, "reject");
    await isBalance(referrer, { available: 20, reserved: 0 });
  });

  test("takes a balance below zero when what it may take was paid out before anybody asked", async () => {
    const sold = await hasSold();
    matures();
    assert.equal((await pays(sold.seller)).status, 201);
    await asksForRefund(sold);
    await isBalance(sold.seller, { available: -18, reserved: 18 });
  });
});

test("what the provider charges for a dispute is reserved until the bank has decided", async () => {
  const sold = await hasSold({ price: 100 });
  await buyProduct(await market.createUser(), await createProduct(sold.seller, { price: 20 }));
  matures();
  const disputeId = openDispute(book, sold.orderId, { amountMinor: 10_000n, feeMinor: 1_500n });
  await syncDispute(market.service.ctx, disputeRooms, disputeId);
  await isBalance(sold.seller, { available: 3, reserved: 15 });
  assertError(await pays(sold.seller, { amount: 18 }), 422, "VALIDATION_ERROR", "amount");
  openDispute(book, sold.orderId, { state: "lost" });
  await syncDispute(market.service.ctx, disputeRooms, disputeId);
  await isBalance(sold.seller, { available: 3, reserved: 0 });
});

suite("at once", () => {
  /** Orders of one seller, each of which leaves 18.00. */
  async function hasSoldMany(count: number): Promise<Sold[]> {
    const seller = await market.createUser({ role: "seller" });
    const productIds = await Promise.all(
      Array.from({ length: 5 }, (_, n) => createProduct(seller, { title: `Haiku ${n}`, price: 20 })),
    );
    const buyers = await Promise.all(Array.from({ length: count / 5 }, () => market.createUser()));
    const all = buyers.flatMap((buyer) => productIds.map((productId) => ({ buyer, productId })));
    const sold = await Promise.all(
      all.map(async ({ buyer, productId }) => {
        const orderId = await buyProduct(buyer, productId);
        await buyer.get(`/v1/products/${productId}`);
        return { seller, buyer, orderId };
      }),
    );
    matures();
    return sold;
  }

  test("25 refunds that are approved beside 25 payouts never let a payout take what is theirs", async () => {
    const sold = await hasSoldMany(50);
    const { seller } = sold[0]!;
    const asked = sold.slice(0, 25);
    const refundIds = await Promise.all(asked.map(asksForRefund));
    await isBalance(seller, { available: 450, reserved: 450 });
    const session = await sessionOf(seller);
    const payouts = sold.slice(25).map(() => session.post("/v1/payouts", { amount: 60 }));
    const approvals = refundIds.map((id) => session.post(`/v1/refunds/${id}/approve`, {}));
    const replies = await Promise.all([...approvals, ...payouts]);
    for (const { status, text } of replies) assert.ok([200, 201, 409, 422].includes(status), text);
    const drawn = (await seller.get("/v1/payouts?limit=100")).body.data.length * 60;
    assert.ok(drawn > 0 && drawn <= 450, String(drawn));
    await isBalance(seller, { available: 450 - drawn, reserved: 0 });
  });

  test("50 requests for refunds beside payouts: what was drawn is never more than what is not asked for", async () => {
    const sold = await hasSoldMany(50);
    const { seller } = sold[0]!;
    const session = await sessionOf(seller);
    let [asked, drawn] = [0, 0];
    const refundsAndPayouts = async (mine: Sold[]) => {
      for (const one of mine) {
        const [askedBefore, drawnBefore] = [asked, drawn];
        const { status, body, text } = await session.post("/v1/payouts", { amount: 30 });
        assert.ok([201, 409, 422].includes(status), text);
        if (status === 201) {
          drawn += body.data.amount;
          assert.ok(body.data.amount + drawnBefore + askedBefore <= 900, `${drawnBefore} and ${askedBefore}`);
        }
        await asksForRefund(one);
        asked += 18;
      }
    };
    await Promise.all(Array.from({ length: 10 }, (_, n) => refundsAndPayouts(sold.slice(5 * n, 5 * n + 5))));
    assert.ok(drawn > 0, "a payout was made");
    await isBalance(seller, { available: -drawn, reserved: 900 });
    assertError(await pays(seller), 422, "VALIDATION_ERROR", "amount");
  });
});
