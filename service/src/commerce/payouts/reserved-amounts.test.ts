import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { buyProduct, createProduct, type ProductInput } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type FakeBank, installFakeBank, requestPayout } from "../../../test/payouts.ts";
import { createFakeRefunds, openDispute, withRefunds } from "../../../test/refunds.ts";
import { DAY_MS } from "../../core/dates.ts";
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

/** To the end of the refund window, when the sale matures. */
const forwardToMaturity = () => market.clock.forward(14 * DAY_MS);
const sessionOf = ({ userId }: Client) => market.createSession(userId);
const balanceOf = async (who: Client) => (await who.get("/v1/balance")).body.data[0];
const assertBalance = async (who: Client, expected: object) =>
  assert.partialDeepStrictEqual(await balanceOf(who), expected);
const payOut = (seller: Client, input: object = {}) => requestPayout(market, seller, input);

interface Sold {
  seller: Client;
  buyer: Client;
  orderId: string;
}

/** A sale of 20.00, 18.00 for the seller, that needs the seller's approval for a refund. */
async function createSale(input: ProductInput = {}, purchase: object = {}): Promise<Sold> {
  const [seller, buyer] = [await market.createUser({ role: "seller" }), await market.createUser()];
  const productId = await createProduct(seller, { price: 20, ...input });
  const { body, text } = await buyer.post("/v1/purchases", { productId, ...purchase });
  assert.ok(body.data, text);
  await buyer.get(`/v1/products/${productId}`);
  return { seller, buyer, orderId: body.data.orderId };
}

async function requestRefund({ buyer, orderId }: Sold): Promise<string> {
  const { body, text } = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "not_working" });
  assert.equal(body.data?.status, "pending", text);
  return body.data.id;
}

const decide = async ({ seller }: Sold, refundId: string, how: "approve" | "reject") => {
  const reply = await (await sessionOf(seller)).post(`/v1/refunds/${refundId}/${how}`, {
    ...(how === "reject" && { reason: "It works." }),
  });
  assert.equal(reply.status, 200, reply.text);
};

suite("the amount of an open refund", () => {
  test("reserved once the sale matures, and not paid out until the refund is rejected", async () => {
    const sold = await createSale();
    market.clock.forward(13 * DAY_MS);
    const refundId = await requestRefund(sold);
    await assertBalance(sold.seller, { pending: 18, available: 0, reserved: 0 });
    market.clock.forward(DAY_MS);
    await assertBalance(sold.seller, { pending: 0, available: 0, reserved: 18 });
    const refusal = await payOut(sold.seller);
    assertError(refusal, 422, "VALIDATION_ERROR", "amount");
    assert.match(refusal.text, /18\.00 USD is reserved for open refunds and disputes/);
    assertError(await payOut(sold.seller, { amount: 18 }), 422, "VALIDATION_ERROR", "amount");
    await decide(sold, refundId, "reject");
    await assertBalance(sold.seller, { available: 18, reserved: 0 });
    assert.equal((await payOut(sold.seller)).body.data.amount, 18);
  });

  test("processing: stays reserved; succeeded: gone, without a debt", async () => {
    const sold = await createSale();
    forwardToMaturity();
    const refundId = await requestRefund(sold);
    book.trouble = "down";
    await decide(sold, refundId, "approve");
    await assertBalance(sold.seller, { available: 0, reserved: 18 });
    assertError(await payOut(sold.seller), 422, "VALIDATION_ERROR", "amount");
    book.trouble = "none";
    market.clock.forward(2 * MINUTE_MS);
    await reconcileRefunds(market.service.ctx);
    await assertBalance(sold.seller, { available: 0, reserved: 0 });
  });

  test("the rest of the balance can be paid out, also by schedule", async () => {
    await payOutBySchedule(market.service.ctx, "daily");
    const sold = await createSale();
    await buyProduct(await market.createUser(), await createProduct(sold.seller, { price: 30 }));
    forwardToMaturity();
    await requestRefund(sold);
    await assertBalance(sold.seller, { available: 27, reserved: 18 });
    market.clock.forward(DAY_MS);
    await payOutBySchedule(market.service.ctx, "daily");
    const [{ amount }] = (await sold.seller.get("/v1/payouts")).body.data;
    assert.equal(amount, 27);
    await assertBalance(sold.seller, { available: 0, reserved: 18 });
  });

  test("reserved from commission and seller's part", async () => {
    const referrer = await market.createUser({ role: "seller" });
    const { code } = (await referrer.get("/v1/account/referral")).body.data;
    const sold = await createSale({ price: 200 }, { referralCode: code });
    forwardToMaturity();
    const refundId = await requestRefund(sold);
    await assertBalance(referrer, { available: 0, reserved: 20 });
    await assertBalance(sold.seller, { available: 0, reserved: 160 });
    assertError(await payOut(referrer), 422, "VALIDATION_ERROR", "amount");
    await decide(sold, refundId, "reject");
    await assertBalance(referrer, { available: 20, reserved: 0 });
  });

  test("requested after the payout: the balance becomes negative", async () => {
    const sold = await createSale();
    forwardToMaturity();
    assert.equal((await payOut(sold.seller)).status, 201);
    await requestRefund(sold);
    await assertBalance(sold.seller, { available: -18, reserved: 18 });
  });
});

test("the fee of an open dispute: reserved until the bank decides", async () => {
  const sold = await createSale({ price: 100 });
  await buyProduct(await market.createUser(), await createProduct(sold.seller, { price: 20 }));
  forwardToMaturity();
  const disputeId = openDispute(book, sold.orderId, { amountMinor: 10_000n, feeMinor: 1_500n });
  await syncDispute(market.service.ctx, disputeRooms, disputeId);
  await assertBalance(sold.seller, { available: 3, reserved: 15 });
  assertError(await payOut(sold.seller, { amount: 18 }), 422, "VALIDATION_ERROR", "amount");
  openDispute(book, sold.orderId, { state: "lost" });
  await syncDispute(market.service.ctx, disputeRooms, disputeId);
  await assertBalance(sold.seller, { available: 3, reserved: 0 });
});

suite("concurrency", () => {
  const SALES = runs(50);

  /** Orders of one seller with 18.00 each. */
  async function createSales(count: number): Promise<Sold[]> {
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
    forwardToMaturity();
    return sold;
  }

  test("concurrent approvals and payouts: no payout takes a reserved amount", async () => {
    const sold = await createSales(SALES);
    const { seller } = sold[0]!;
    const half = SALES / 2;
    const requested = sold.slice(0, half);
    const refundIds = await Promise.all(requested.map(requestRefund));
    await assertBalance(seller, { available: 18 * half, reserved: 18 * half });
    const session = await sessionOf(seller);
    const payouts = sold.slice(half).map(() => session.post("/v1/payouts", { amount: 60 }));
    const approvals = refundIds.map((id) => session.post(`/v1/refunds/${id}/approve`, {}));
    const replies = await Promise.all([...approvals, ...payouts]);
    for (const { status, text } of replies) assert.ok([200, 201, 409, 422].includes(status), text);
    const paidOut = (await seller.get("/v1/payouts?limit=100")).body.data.length * 60;
    assert.ok(paidOut > 0 && paidOut <= 18 * half, String(paidOut));
    await assertBalance(seller, { available: 18 * half - paidOut, reserved: 0 });
  });

  test("concurrent refund requests and payouts: payouts never exceed the unreserved balance", async () => {
    const sold = await createSales(SALES);
    const { seller } = sold[0]!;
    const session = await sessionOf(seller);
    let [requested, paidOut] = [0, 0];
    const refundsAndPayouts = async (mine: Sold[]) => {
      for (const one of mine) {
        const [askedBefore, drawnBefore] = [requested, paidOut];
        const { status, body, text } = await session.post("/v1/payouts", { amount: 30 });
        assert.ok([201, 409, 422].includes(status), text);
        if (status === 201) {
          paidOut += body.data.amount;
          assert.ok(
            body.data.amount + drawnBefore + askedBefore <= 18 * SALES,
            `${drawnBefore} and ${askedBefore}`,
          );
        }
        await requestRefund(one);
        requested += 18;
      }
    };
    await Promise.all(
      Array.from({ length: SALES / 5 }, (_, n) => refundsAndPayouts(sold.slice(5 * n, 5 * n + 5))),
    );
    assert.ok(paidOut > 0, "a payout was made");
    await assertBalance(seller, { available: -paidOut, reserved: 18 * SALES });
    assertError(await payOut(seller), 422, "VALIDATION_ERROR", "amount");
  });
});
