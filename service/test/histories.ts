import assert from "node:assert/strict";
import fc from "fast-check";
import { flushViews } from "../src/catalog/search/views.ts";
import { rollUpSales } from "../src/commerce/analytics/sales-sums.ts";
import { syncDispute } from "../src/commerce/charges/disputes.ts";
import { dayOf } from "../src/core/dates.ts";
import { toDecimal, toMinor } from "../src/core/money/amount.ts";
import {
  createFakePayments,
  memoryStore,
  startFakeProvider,
} from "../src/integrations/payments/fake-payments.ts";
import { disputeRooms } from "../src/jobs.ts";
import { createProduct } from "./factories.ts";
import { type Client, type Market, openMarket } from "./market.ts";
import { createFakeRefunds, type FakeRefunds, openDispute, withRefunds } from "./refunds.ts";

const MINUTE_MS = 60_000;
const TAX_RATES = new Map([
  ["DE", 1_900],
  ["FR", 550],
]);
const COUNTRIES = ["DE", "FR", null, "JP", null];
/** Prices without round parts, in several currencies. */
const WARES = [
  { price: 19.99, currency: "USD" },
  { price: 7.77, currency: "USD" },
  { price: 1_001, currency: "JPY" },
  { price: 3.333, currency: "KWD" },
];
/** In minor units of any currency. */
export const DISPUTE_FEE = 15n;

const any = fc.nat(1_000);
const anyPurchase = fc.record({
  what: fc.constant("buy" as const),
  buyer: any,
  product: any,
  code: fc.constantFrom(undefined, undefined, "HALF", "FREE"),
  isReferred: fc.boolean(),
});
const anyLook = fc.record({ what: fc.constant("look" as const), buyer: any, product: any });
/** Which of all orders, and how much of its rest: above 7,000 all. */
const anyRefund = fc.record({
  what: fc.constant("refund" as const),
  which: any,
  share: fc.integer({ min: 0, max: 10_000 }),
});
/** A bank opens or decides a dispute. */
const anyDispute = fc.record({
  what: fc.constant("dispute" as const),
  which: any,
  share: fc.integer({ min: 0, max: 10_000 }),
  isWon: fc.boolean(),
});
const anyWait = fc.record({
  what: fc.constant("wait" as const),
  minutes: fc.oneof(fc.integer({ min: 1, max: 180 }), fc.integer({ min: 60, max: 30 * 24 * 60 })),
});
/** The job that rolls sales up. */
const anyFold = fc.record({ what: fc.constant("fold" as const) });

/** Months of two shops. */
export const anyHistory = fc.array(
  fc.oneof(
    { arbitrary: anyPurchase, weight: 10 },
    { arbitrary: anyLook, weight: 2 },
    { arbitrary: anyRefund, weight: 4 },
    { arbitrary: anyDispute, weight: 5 },
    { arbitrary: anyWait, weight: 5 },
    { arbitrary: anyFold, weight: 1 },
  ),
  { minLength: 50, maxLength: 50, size: "max" },
);

type Step = (typeof anyHistory extends fc.Arbitrary<infer Steps extends unknown[]> ? Steps : never)[number];

export interface Order {
  id: string;
  buyer: Client;
}

/** A view of a product on a UTC day. */
export interface ProductView {
  productId: string;
  day: string;
  viewerId: string;
}

export interface Shop {
  seller: Client;
  products: { id: string; title: string; category: string }[];
  orders: Order[];
}

export interface History {
  shops: Shop[];
  looks: ProductView[];
  /** An administrator's session, valid while the clock stands still. */
  admin: Client;
}

/** A market that plays histories one after another, with a fake bank. */
export async function openStage(taxInclusive: boolean) {
  let market: Market;
  const provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  const book = createFakeRefunds();
  market = await openMarket({
    payments: withRefunds(book, createFakePayments({ origin: provider.origin })),
    config: { taxRates: TAX_RATES, taxInclusive },
  });
  const people = await hasPeople(market);
  return {
    play: (history: Step[], from: Date) => play({ market, book, ...people }, history, from),
    async close() {
      await market.close();
      await provider.close();
    },
  };
}

interface People {
  buyers: Client[];
  referralCode: string;
  adminId: string;
}

async function hasPeople(market: Market): Promise<People> {
  const buyers = COUNTRIES.map(async (country, at) => {
    const buyer = await market.createUser({ name: `Buyer ${at}` });
    const session = await market.createSession(buyer.userId);
    assert.equal((await session.patch("/v1/account", { country })).status, 200);
    return buyer;
  });
  const { code } = (await (await market.createUser()).get("/v1/account/referral")).body.data;
  const { userId } = await market.createUser({ role: "admin" });
  return { buyers: await Promise.all(buyers), referralCode: code, adminId: userId };
}

interface Stage extends People {
  market: Market;
  book: FakeRefunds;
}

interface Scene extends Stage {
  shops: Shop[];
  looks: ProductView[];
  /** Open disputes by order. */
  disputes: Map<string, string>;
}

/** Runs the possible steps of a history from a time on. The clock moves at each step, so that the order is defined. */
async function play(stage: Stage, steps: Step[], from: Date): Promise<History> {
  const { market, adminId } = stage;
  market.clock.now = from;
  const shops = [await hasShop(market, 0), await hasShop(market, 1)];
  const scene: Scene = { ...stage, shops, looks: [], disputes: new Map() };
  for (const step of steps) {
    market.clock.forward(1);
    if (step.what === "wait") market.clock.forward(step.minutes * MINUTE_MS);
    if (step.what === "buy") await buy(scene, step);
    if (step.what === "look") await look(scene, step);
    if (step.what === "refund") await refund(scene, step);
    if (step.what === "dispute") await contest(scene, step);
    if (step.what === "fold") await rollUpSales(market.service.ctx);
  }
  const admin = await market.createSession(adminId, { secondFactor: true });
  return { shops, looks: scene.looks, admin };
}

async function hasShop(market: Market, number: number): Promise<Shop> {
  const seller = await market.createUser({ name: `Seller ${number}` });
  const products: Shop["products"] = [];
  for (const [at, ware] of WARES.entries()) {
    const title = `Product ${number}.${at}`;
    const category = at % 2 === 0 ? "writing" : "fiction";
    products.push({ title, category, id: await createProduct(seller, { ...ware, title, category }) });
  }
  for (const [code, percentOff] of [
    ["HALF", 50],
    ["FREE", 100],
  ])
    assert.equal((await seller.post("/v1/discount-codes", { code, percentOff })).status, 201);
  return { seller, products, orders: [] };
}

type Of<What extends Step["what"]> = Extract<Step, { what: What }>;

export const pick = <T>(items: T[], number: number): T | undefined => items[number % (items.length || 1)];

function wareOf({ shops }: Scene, number: number) {
  const shop = pick(shops, number)!;
  return { shop, product: pick(shop.products, Math.floor(number / shops.length))! };
}

async function buy(scene: Scene, step: Of<"buy">): Promise<void> {
  const buyer = pick(scene.buyers, step.buyer)!;
  const { shop, product } = wareOf(scene, step.product);
  const reply = await buyer.post("/v1/purchases", {
    productId: product.id,
    ...(step.code && { discountCode: step.code }),
    ...(step.isReferred && { referralCode: scene.referralCode }),
  });
  // The buyer may own the product already.
  assert.ok([201, 409].includes(reply.status), reply.text);
  if (reply.status === 201) shop.orders.push({ id: reply.body.data.orderId, buyer });
}

async function look(scene: Scene, step: Of<"look">): Promise<void> {
  const { clock, service } = scene.market;
  const buyer = pick(scene.buyers, step.buyer)!;
  const { product } = wareOf(scene, step.product);
  assert.equal((await buyer.get(`/v1/products/${product.id}`)).status, 200);
  await flushViews(service.ctx);
  scene.looks.push({ productId: product.id, day: dayOf(clock.now), viewerId: buyer.userId });
}

const anyOrder = ({ shops }: Scene, number: number) =>
  pick(
    shops.flatMap(({ orders }) => orders),
    number,
  );

/** A share of an order's undisputed rest. */
async function someOf({ disputes }: Scene, order: Order | undefined, share: number) {
  if (!order || disputes.has(order.id)) return null;
  const { amount, refundedAmount, currency } = (await order.buyer.get(`/v1/purchases/${order.id}`)).body.data;
  const rest = toMinor(amount, currency)! - toMinor(refundedAmount, currency)!;
  if (rest === 0n) return null;
  const amountMinor = share > 7_000 ? rest : 1n + ((rest - 1n) * BigInt(share)) / 10_000n;
  return { order, amountMinor, currency };
}

async function refund(scene: Scene, { which, share }: Of<"refund">): Promise<void> {
  const some = await someOf(scene, anyOrder(scene, which), share);
  if (!some) return;
  const admin = await scene.market.createSession(scene.adminId, { secondFactor: true });
  const amount = toDecimal(some.amountMinor, some.currency);
  const reply = await admin.post(`/v1/admin/orders/${some.order.id}/refund`, { reason: "other", amount });
  assert.equal(reply.body?.data?.status, "succeeded", reply.text);
}

async function contest(scene: Scene, { which, share, isWon }: Of<"dispute">): Promise<void> {
  const { disputes, book, market } = scene;
  const [open] = disputes;
  // Every second time, the oldest dispute is decided, so that few stay open.
  if (open && which % 2 === 0) {
    const [orderId, disputeId] = open;
    disputes.delete(orderId);
    openDispute(book, orderId, { disputeId, state: isWon ? "won" : "lost" });
    return syncDispute(market.service.ctx, disputeRooms, disputeId);
  }
  const some = await someOf(scene, anyOrder(scene, which), share);
  if (!some) return;
  const disputeId = `dp_${some.order.id}_${market.clock.now.getTime()}`;
  openDispute(book, some.order.id, { disputeId, amountMinor: some.amountMinor, feeMinor: DISPUTE_FEE });
  disputes.set(some.order.id, disputeId);
  await syncDispute(market.service.ctx, disputeRooms, disputeId);
}
