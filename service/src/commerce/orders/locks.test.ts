import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { isFullSize } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { installFakeBank } from "../../../test/payouts.ts";
import { createFakeRefunds, openDispute, withRefunds } from "../../../test/refunds.ts";
import { DAY_MS } from "../../core/dates.ts";
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

/** With three buyers, each kind of refund and dispute still meets payouts and changes of its product. */
const [ROUNDS, BUYERS] = isFullSize ? [2, 5] : [1, 3];

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

/** A seller with products, discount codes for half and full price, and a referral code. */
async function createShop() {
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
  const buyers = await Promise.all(Array.from({ length: BUYERS }, () => market.createUser()));
  return { seller, referralCode, productIds, buyers };
}

type Shop = Awaited<ReturnType<typeof createShop>>;

/** Server errors, including deadlocks, which PostgreSQL ends by failing one transaction. */
const failures: string[] = [];
async function collectFailures(...requests: Promise<Reply>[]): Promise<Reply[]> {
  const replies = await Promise.all(requests);
  failures.push(...replies.filter(({ status }) => status >= 500).map(({ text }) => text));
  return replies;
}

/** The last requests of a shop wait for them, so that they meet the refunds and cannot prevent most of the purchases. */
function awaitMostPurchases() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let bought = 0;
  const onPurchase = () => {
    if (++bought === 2 * BUYERS) resolve();
  };
  return { mostAreBought: promise, onPurchase };
}

/** Buys twice at once, reads, reviews, disputes some orders, and refunds from several sides. */
async function buyAndRefund(
  { referralCode }: Shop,
  admin: Client,
  {
    buyer,
    productId,
    which,
    onPurchase,
  }: { buyer: Client; productId: string; which: number; onPurchase: () => void },
): Promise<void> {
  const ways = [{ discountCode: "half", referralCode }, { discountCode: "free" }, {}, { referralCode }];
  const input = { productId, ...ways[which % ways.length] };
  const bought = await collectFailures(
    buyer.post("/v1/purchases", input),
    buyer.post("/v1/purchases", input),
  );
  const { orderId, amount } = bought.find(({ status }) => status === 201)?.body.data ?? {};
  if (!orderId) return;
  onPurchase();
  if (which % 3 > 0) await collectFailures(buyer.get(`/v1/products/${productId}`));
  await collectFailures(buyer.post(`/v1/products/${productId}/reviews`, { rating: 4, comment: "Yes." }));
  const disputeId = which % 4 === 3 && amount > 0 ? openDispute(book, orderId) : null;
  if (disputeId) await syncDispute(market.service.ctx, disputeRooms, disputeId);
  if (disputeId) openDispute(book, orderId, { state: "lost" });
  await collectFailures(
    buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "other" }),
    admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other" }),
  );
  if (disputeId) await syncDispute(market.service.ctx, disputeRooms, disputeId);
}

/** Concurrent requests of the seller, an administrator and the schedule. */
async function runShop(
  { seller, productIds }: Shop,
  admin: Client,
  mostAreBought: Promise<unknown>,
): Promise<void> {
  const session = await market.createSession(seller.userId);
  for (let times = 0; times < 4; times++) {
    await collectFailures(
      session.post("/v1/payouts", { amount: 10 }),
      session.patch("/v1/account", { bio: `${times}` }),
    );
    await payOutBySchedule(market.service.ctx, "daily");
    const changes = productIds.map((id) => admin.patch(`/v1/products/${id}`, { description: `${times}` }));
    await collectFailures(
      ...changes,
      admin.post(`/v1/admin/users/${toId("usr", seller.userId)}/end-sessions`),
    );
  }
  await mostAreBought;
  const moderate = (action: string, input?: object) =>
    collectFailures(admin.post(`/v1/admin/users/${toId("usr", seller.userId)}/${action}`, input));
  await moderate("ban", { reason: "Fraud" });
  await moderate("unban");
}

test("all movements of money at once: no deadlock", async () => {
  await payOutBySchedule(market.service.ctx, "daily");
  for (let round = 0; round < ROUNDS; round++) {
    market.clock.forward(7 * DAY_MS);
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    const shop = await createShop();
    const purchases = shop.buyers.flatMap((buyer) =>
      shop.productIds.map((productId) => ({ buyer, productId })),
    );
    const { mostAreBought, onPurchase } = awaitMostPurchases();
    const allHaveEnded = Promise.all(
      purchases.map(({ buyer, productId }, which) =>
        buyAndRefund(shop, admin, { buyer, productId, which, onPurchase }),
      ),
    );
    await Promise.all([allHaveEnded, runShop(shop, admin, Promise.race([mostAreBought, allHaveEnded]))]);
  }
  const { rowCount } = await market.query("select from orders where status = 'refunded'");
  assert.ok(rowCount! > ROUNDS * BUYERS, `${rowCount} were refunded`);
  assert.deepEqual(failures, []);
  assert.ok(!market.logs.some((line) => line.includes("deadlock")));
});
