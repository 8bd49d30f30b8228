import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { installFakeBank } from "../../../test/payouts.ts";
import { createFakeRefunds, openDispute, withRefunds } from "../../../test/refunds.ts";
import { toId } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { disputeRooms } from "../../jobs.ts";
import { syncDispute } from "../charges/disputes.ts";
import { payOutBySchedule } from "../payouts/schedule.ts";

const DAY_MS = 86_400_000;

const book = createFakeRefunds();
let provider: FakeProvider;
let market: Market;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  market = await openMarket({ payments: withRefunds(book, createFakePayments({ origin: provider.origin })) });
  installFakeBank(market);
});
after(async () => {
  await market.close();
  await provider.close();
});

/** A seller whose products are had for the price, for half and for nothing, by a referral or without. */
async function hasShop() {
  const [seller, referrer] = [await market.createUser({ role: "seller" }), await market.createUser()];
  const { code: referralCode } = (await referrer.get("/v1/account/referral")).body.data;
  const productIds = [];
  for (let n = 0; n < 3; n++)
    productIds.push(await createProduct(seller, { title: `Haiku ${n}`, price: 20 }));
  for (const [code, percentOff] of [
    ["half", 50],
    ["free", 100],
  ] as const) {
    const reply = await seller.post("/v1/discount-codes", { code, percentOff, maxRedemptions: 1_000 });
    assert.equal(reply.status, 201, reply.text);
  }
  const buyers = await Promise.all(Array.from({ length: 5 }, () => market.createUser()));
  return { seller, referralCode, productIds, buyers };
}

type Shop = Awaited<ReturnType<typeof hasShop>>;

/** What no client shall ever hear: also of a deadlock, which PostgreSQL ends by failing one of those who wait. */
const failures: string[] = [];
async function hears(...asked: Promise<Reply>[]): Promise<Reply[]> {
  const replies = await Promise.all(asked);
  failures.push(...replies.filter(({ status }) => status >= 500).map(({ text }) => text));
  return replies;
}

/** Buys twice at once, looks, reviews, has the bank take it back or not, and is given it back from three sides. */
async function buyAndGiveBack(
  { referralCode }: Shop,
  admin: Client,
  { buyer, productId, which }: { buyer: Client; productId: string; which: number },
): Promise<void> {
  const ways = [{ discountCode: "half", referralCode }, { discountCode: "free" }, {}, { referralCode }];
  const input = { productId, ...ways[which % ways.length] };
  const bought = await hears(buyer.post("/v1/purchases", input), buyer.post("/v1/purchases", input));
  const { orderId, amount } = bought.find(({ status }) => status === 201)?.body.data ?? {};
  if (!orderId) return;
  if (which % 3 > 0) await hears(buyer.get(`/v1/products/${productId}`));
  await hears(buyer.post(`/v1/products/${productId}/reviews`, { rating: 4, comment: "Yes." }));
  const disputeId = which % 4 === 3 && amount > 0 ? openDispute(book, orderId) : null;
  if (disputeId) await syncDispute(market.service.ctx, disputeRooms, disputeId);
  if (disputeId) openDispute(book, orderId, { state: "lost" });
  await hears(
    buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "other" }),
    admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other" }),
  );
  if (disputeId) await syncDispute(market.service.ctx, disputeRooms, disputeId);
}

/** What its seller, an administrator and the clock do with a shop meanwhile. */
async function runTheShop({ seller, productIds }: Shop, admin: Client): Promise<void> {
  const session = await market.createSession(seller.userId);
  for (let times = 0; times < 4; times++) {
    await hears(
      session.post("/v1/payouts", { amount: 10 }),
      session.patch("/v1/account", { bio: `${times}` }),
    );
    await payOutBySchedule(market.service.ctx, "daily");
    const changes = productIds.map((id) => admin.patch(`/v1/products/${id}`, { description: `${times}` }));
    await hears(...changes, admin.post(`/v1/admin/users/${toId("usr", seller.userId)}/end-sessions`));
  }
  const judge = (verdict: string, input?: object) =>
    hears(admin.post(`/v1/admin/users/${toId("usr", seller.userId)}/${verdict}`, input));
  await judge("ban", { reason: "Fraud" });
  await judge("unban");
}

test("all movements of money at once: no deadlock", async () => {
  await payOutBySchedule(market.service.ctx, "daily");
  for (let round = 0; round < 2; round++) {
    market.clock.forward(7 * DAY_MS);
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    const shop = await hasShop();
    const pairs = shop.buyers.flatMap((buyer) => shop.productIds.map((productId) => ({ buyer, productId })));
    await Promise.all([
      ...pairs.map(({ buyer, productId }, which) => buyAndGiveBack(shop, admin, { buyer, productId, which })),
      runTheShop(shop, admin),
    ]);
  }
  const { rowCount } = await market.query("select from orders where status = 'refunded'");
  assert.ok(rowCount! > 10, `${rowCount} were given back`);
  assert.deepEqual(failures, []);
  assert.ok(!market.logs.some((line) => line.includes("deadlock")));
});
