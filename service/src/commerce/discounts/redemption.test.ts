import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { orderTarget, settleOrder } from "../checkout/order-payment.ts";

const MINUTE_MS = 60_000;
const DECLINED = "pm_test_declined";
const WAITS = "pm_test_requires_action";

const store = memoryStore();
const line: PaymentConnection = { trouble: "none" };
let provider: FakeProvider;
let market: Market;
let seller: Client;
before(async () => {
  provider = await startFakeProvider({ store, now: () => market.clock.now });
  market = await openMarket({
    payments: withConnectionTrouble(line, createFakePayments({ origin: provider.origin })),
  });
  seller = await market.createUser({ name: "Seller", role: "seller" });
});
beforeEach(() => {
  line.trouble = "none";
});
after(async () => {
  await market.close();
  await provider.close();
});

let made = 0;
async function hasCode(input: object = {}): Promise<{ id: string; code: string }> {
  const reply = await seller.post("/v1/discount-codes", { code: `CODE-${++made}`, percentOff: 50, ...input });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const buy = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases", { productId, ...input });
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const redemptionsOf = async (id: string) =>
  (await seller.get(`/v1/discount-codes/${id}`)).body.data.redemptions;
const completed = (replies: Reply[]) => replies.filter(({ status }) => status === 201).length;
const refuse = (reply: Reply, reason: RegExp) =>
  assert.match(assertError(reply, 422, "VALIDATION_ERROR", "discountCode").reason, reason);

test("half of 19.99 is 10.00, which leaves 9.99", async () => {
  const productId = await createProduct(seller, { price: 19.99 });
  const { id, code } = await hasCode();
  const buyer = await market.createUser();
  const reply = await buy(buyer, productId, { discountCode: code, expectedPrice: 9.99 });
  assert.equal(reply.status, 201, reply.text);
  assert.equal(reply.body.data.amount, 9.99);
  const order = await orderOf(buyer, reply.body.data.orderId);
  assert.deepEqual(order.lines, { subtotal: 19.99, discount: 10, tax: 0, total: 9.99 });
  assert.equal(order.discountCode, code);
  assert.equal((await store.findByOrder(order.orderId))?.amountMinor, 999n, "and 9.99 is what is charged");
  assert.equal(await redemptionsOf(id), 1);
});

test("neither case nor blanks around a code matter", async () => {
  const { code } = await hasCode({ code: "MixedCase" });
  const reply = await buy(await market.createUser(), await createProduct(seller), {
    discountCode: " mIXEDcASE ",
  });
  assert.equal(reply.status, 201, reply.text);
  assert.equal(code, "MixedCase");
});

test("every discount is the price's share, a half rounded up, and leaves the rest", async () => {
  const productId = await createProduct(seller, { price: 1, currency: "JPY" });
  const { id, code } = await hasCode({ percentOff: 1 });
  const buyer = await market.createUser();
  const input = { discountCode: code, paymentMethodId: DECLINED };
  const cases = fc.tuple(fc.integer({ min: 2, max: 99_999_999 }), fc.integer({ min: 0, max: 9_999 }));
  await fc.assert(
    fc.asyncProperty(cases, async ([price, basisPoints]) => {
      await seller.patch(`/v1/products/${productId}`, { price });
      market.clock.forward(1);
      await seller.patch(`/v1/discount-codes/${id}`, { percentOff: basisPoints / 100 });
      const exact = BigInt(price) * BigInt(basisPoints);
      const discount = Number(exact / 10_000n + (exact % 10_000n >= 5_000n ? 1n : 0n));
      if (discount === price) return;
      const { orderId } = assertError(await buy(buyer, productId, input), 402, "INSUFFICIENT_FUNDS");
      const { lines } = await orderOf(buyer, orderId);
      assert.deepEqual(lines, { subtotal: price, discount, tax: 0, total: price - discount });
    }),
    { numRuns: runs(40), examples: [[[3, 5_000]], [[10_001, 5_000]], [[2, 9_999]], [[99_999_999, 3_333]]] },
  );
});

test("an amount takes off so much, and at most the whole price", async () => {
  const productId = await createProduct(seller, { price: 5 });
  const some = await hasCode({ percentOff: undefined, amountOff: 1.25 });
  const all = await hasCode({ percentOff: undefined, amountOff: 500 });
  const totalWith = async ({ code }: { code: string }) =>
    (await buy(await market.createUser(), productId, { discountCode: code })).body.data.amount;
  assert.deepEqual([await totalWith(some), await totalWith(all)], [3.75, 0]);
});

test("a code that cannot be used stops the purchase, and says why", async () => {
  const [productId, other] = [await createProduct(seller, { price: 10 }), await createProduct(seller)];
  const buyer = await market.createUser();
  const now = market.clock.now.getTime();
  const at = (ms: number) => new Date(now + ms).toISOString();
  const attempt = async (input: object) =>
    buy(buyer, productId, { discountCode: (await hasCode(input)).code });
  refuse(await buy(buyer, productId, { discountCode: "NEVER" }), /is unknown/);
  refuse(await attempt({ startsAt: at(1) }), /valid from \d/);
  refuse(await attempt({ endsAt: at(0) }), /valid until \d/);
  refuse(await attempt({ productId: other }), /another product/);
  refuse(await attempt({ percentOff: undefined, amountOff: 1, currency: "EUR" }), /EUR.*USD/);
  const removed = await hasCode();
  await seller.delete(`/v1/discount-codes/${removed.id}`);
  refuse(await buy(buyer, productId, { discountCode: removed.code }), /is unknown/);
  const stranger = await market.createUser({ role: "seller" });
  await stranger.post("/v1/discount-codes", { code: "THEIRS", percentOff: 10 });
  refuse(await buy(buyer, productId, { discountCode: "THEIRS" }), /is unknown/);
  assert.equal((await buyer.get("/v1/purchases")).body.meta.total, 0, "no order stays behind");
  assert.equal((await attempt({ startsAt: at(0), endsAt: at(1), productId })).status, 201);
});

test("expectedPrice is what is left after the discount", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await hasCode({ percentOff: 30 });
  const reply = await buy(await market.createUser(), productId, { discountCode: code, expectedPrice: 10 });
  assert.deepEqual(assertError(reply, 409, "PRICE_CHANGED"), { price: 7, currency: "USD" });
  assert.equal(await redemptionsOf(id), 0);
});

test("50 buyers at once redeem a code of seven exactly seven times", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await hasCode({ maxRedemptions: 7 });
  const buyers = await Promise.all(Array.from({ length: 50 }, () => market.createUser()));
  const replies = await Promise.all(buyers.map((buyer) => buy(buyer, productId, { discountCode: code })));
  assert.equal(completed(replies), 7);
  for (const reply of replies.filter(({ status }) => status !== 201)) refuse(reply, /used up/);
  assert.equal(await redemptionsOf(id), 7);
  const { rows } = await market.query(
    "select count(*), count(distinct buyer_id) as buyers from orders where discount_code_id = $1",
    [toUuid("disc", id)],
  );
  assert.deepEqual(rows, [{ count: 7, buyers: 7 }]);
});

test("one buyer who buys many products at once redeems a code of one a buyer exactly once", async () => {
  const products = await Promise.all(Array.from({ length: 12 }, () => createProduct(seller)));
  const { id, code } = await hasCode({ maxPerBuyer: 1 });
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  const replies = await Promise.all(products.map((product) => buy(buyer, product, { discountCode: code })));
  assert.equal(completed(replies), 1);
  for (const reply of replies.filter(({ status }) => status !== 201)) refuse(reply, /no redemptions left/);
  assert.equal((await buy(other, products[0]!, { discountCode: code })).status, 201);
  assert.equal(await redemptionsOf(id), 2);
});

test("free copies keep to the limits under parallel purchases, too", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await hasCode({ percentOff: 100, maxRedemptions: 5 });
  const buyers = await Promise.all(Array.from({ length: 25 }, () => market.createUser()));
  const replies = await Promise.all(buyers.map((buyer) => buy(buyer, productId, { discountCode: code })));
  assert.equal(completed(replies), 5);
  assert.equal(await redemptionsOf(id), 5);
});

test("one buyer who asks twenty times for one product redeems once", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await hasCode({ maxRedemptions: 5 });
  const buyer = await market.createUser();
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => buy(buyer, productId, { discountCode: code })),
  );
  assert.ok(completed(replies) > 0);
  for (const reply of replies.filter(({ status }) => status !== 201))
    assertError(reply, 409, "ALREADY_PURCHASED");
  assert.equal(await redemptionsOf(id), 1);
});

test("100 % is a free copy: completed at once, by no method, in no books, with a receipt", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { code } = await hasCode({ percentOff: 100 });
  const buyer = await market.createUser();
  line.trouble = "down";
  const reply = await buy(buyer, productId, { discountCode: code, expectedPrice: 0 });
  assert.equal(reply.status, 201, reply.text);
  assert.partialDeepStrictEqual(reply.body.data, { status: "completed", amount: 0, currency: "USD" });
  const { orderId, receipt, downloadUrl } = reply.body.data;
  const order = await orderOf(buyer, orderId);
  assert.partialDeepStrictEqual(order, {
    lines: { subtotal: 10, discount: 10, tax: 0, total: 0 },
    paymentMethod: null,
    entitlement: { status: "active" },
  });
  assert.match(order.receipt.number, /^R-/);
  assert.equal((await fetch(downloadUrl)).status, 200);
  assert.match(await (await fetch(receipt.url)).text(), /Nothing to pay/);
  assert.equal(await store.findByOrder(orderId), null);
  const { rows } = await market.query("select count(*) from ledger_entries where order_id = $1", [
    toUuid("ord", orderId),
  ]);
  assert.equal(rows[0].count, 0);
});

test("a payment that fails gives the code back", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await hasCode({ maxRedemptions: 1, maxPerBuyer: 1 });
  const buyer = await market.createUser();
  const declined = { discountCode: code, paymentMethodId: DECLINED };
  assertError(await buy(buyer, productId, declined), 402, "INSUFFICIENT_FUNDS");
  assert.equal(await redemptionsOf(id), 0);
  assert.equal((await buy(buyer, productId, { discountCode: code })).status, 201);
  assert.equal(await redemptionsOf(id), 1);
});

test("an order that leaves nothing behind leaves no redemption", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await hasCode();
  const reply = await buy(await market.createUser(), productId, {
    discountCode: code,
    paymentMethodId: "pm_of_nobody",
  });
  assertError(reply, 404, "PAYMENT_METHOD_NOT_FOUND");
  assert.equal(await redemptionsOf(id), 0);
});

test("an order that waits holds its code; given up for another, it gives the code back", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await hasCode({ maxRedemptions: 1 });
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  const waiting = await buy(buyer, productId, { discountCode: code, paymentMethodId: WAITS });
  assert.equal(waiting.status, 202, waiting.text);
  assert.equal(await redemptionsOf(id), 1);
  refuse(await buy(other, productId, { discountCode: code }), /used up/);
  const same = await buy(buyer, productId, { discountCode: code, paymentMethodId: WAITS });
  assert.equal(same.body.data.orderId, waiting.body.data.orderId, "the same wish is the same order");
  assert.equal(await redemptionsOf(id), 1);
  const byCard = await buy(buyer, productId, { discountCode: code });
  assert.equal(byCard.status, 201, byCard.text);
  assert.equal(byCard.body.data.amount, 5);
  assert.equal(await redemptionsOf(id), 1);
});

test("an unconfirmed payment holds the last redemption of a code for half an hour, not for a day", async () => {
  const { ctx } = market.service;
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await hasCode({ maxRedemptions: 1 });
  const unlimited = await hasCode();
  const [buyer, other, patient] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const waiting = await buy(buyer, productId, { discountCode: code, paymentMethodId: WAITS });
  const kept = await buy(patient, productId, { discountCode: unlimited.code, paymentMethodId: WAITS });
  market.clock.forward(30 * MINUTE_MS);
  await reconcileCharges(ctx, orderTarget);
  refuse(await buy(other, productId, { discountCode: code }), /used up/);
  market.clock.forward(MINUTE_MS + 1);
  await reconcileCharges(ctx, orderTarget);
  assert.equal((await orderOf(buyer, waiting.body.data.orderId)).status, "canceled");
  assert.equal((await orderOf(patient, kept.body.data.orderId)).status, "requires_action");
  assert.equal(await redemptionsOf(id), 0);
  assert.equal((await buy(other, productId, { discountCode: code })).status, 201);
});

test("an open order is not charged for another wish: with a code or without one it is another", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await hasCode();
  const buyer = await market.createUser();
  const whole = await buy(buyer, productId, { paymentMethodId: WAITS });
  const half = await buy(buyer, productId, { paymentMethodId: WAITS, discountCode: code });
  const free = await hasCode({ percentOff: 100 });
  const nothing = await buy(buyer, productId, { paymentMethodId: WAITS, discountCode: free.code });
  assert.deepEqual([whole.body.data.amount, half.body.data.amount, nothing.body.data.amount], [10, 5, 0]);
  assert.deepEqual([whole.status, half.status, nothing.status], [202, 202, 201]);
  assert.equal(await redemptionsOf(id), 0);
  assert.equal(await redemptionsOf(free.id), 1);
});

test("an order that nobody waits for any more gives the code back, and money that comes later takes it anew", async () => {
  const { ctx } = market.service;
  const productId = await createProduct(seller);
  const { id, code } = await hasCode({ maxRedemptions: 1 });
  const buyer = await market.createUser();
  line.trouble = "down";
  const { body } = await buy(buyer, productId, { discountCode: code });
  line.trouble = "none";
  assert.equal(body.data.status, "pending");
  market.clock.forward(11 * MINUTE_MS);
  await reconcileCharges(ctx, orderTarget);
  assert.equal((await orderOf(buyer, body.data.orderId)).status, "canceled");
  assert.equal(await redemptionsOf(id), 0);
  const method = { brand: "visa", last4: "4242" };
  const paid = { state: "succeeded", paymentId: "ch_late", method, feeMinor: null } as const;
  await settleOrder(ctx, toUuid("ord", body.data.orderId)!, paid);
  await settleOrder(ctx, toUuid("ord", body.data.orderId)!, paid);
  assert.equal(await redemptionsOf(id), 1);
});

test("a full refund gives the code back, a part of one does not", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await hasCode({ maxRedemptions: 1 });
  const [buyer, { userId }] = [await market.createUser(), await market.createUser({ role: "admin" })];
  const admin = await market.createSession(userId, { secondFactor: true });
  const { orderId } = (await buy(buyer, productId, { discountCode: code })).body.data;
  const refund = async (amount?: number) => {
    const reply = await admin.post(`/v1/admin/orders/${orderId}/refund`, { amount, reason: "not_working" });
    assert.equal(reply.body.data?.status, "succeeded", reply.text);
  };
  await refund(1);
  assert.equal(await redemptionsOf(id), 1);
  await refund();
  assert.equal(await redemptionsOf(id), 0);
  assert.equal((await buy(buyer, productId, { discountCode: code })).status, 201);
});

test("whatever becomes of its orders, all at once, a code's redemptions are the orders that hold it", async () => {
  const products = await Promise.all(Array.from({ length: 4 }, () => createProduct(seller, { price: 10 })));
  const { id, code } = await hasCode({ maxRedemptions: 12, maxPerBuyer: 2 });
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const buyers = await Promise.all(Array.from({ length: 8 }, () => market.createUser()));
  const methods = ["pm_test_ok", DECLINED, WAITS, "pm_test_ok"];
  const tryOnce = async (buyer: Client, at: number) => {
    const input = { discountCode: code, paymentMethodId: methods[at % methods.length] };
    const { status, body, text } = await buy(buyer, products[at % products.length]!, input);
    assert.ok([201, 202, 402, 409, 422].includes(status), text);
    if (status === 201 && at % 3 === 0)
      await admin.post(`/v1/admin/orders/${body.data.orderId}/refund`, { reason: "not_working" });
  };
  await Promise.all(
    buyers.flatMap((buyer, who) => Array.from({ length: 8 }, (_, at) => tryOnce(buyer, who + at))),
  );
  const { rows } = await market.query(
    `select count(*), coalesce(max(of_one), 0) as most from (
       select count(*) over (partition by buyer_id) as of_one from orders
        where discount_code_id = $1 and status not in ('failed', 'canceled', 'refunded')) as held`,
    [toUuid("disc", id)],
  );
  assert.equal(await redemptionsOf(id), rows[0].count);
  assert.ok(rows[0].count > 0 && rows[0].count <= 12 && rows[0].most <= 2, JSON.stringify(rows[0]));
});

test("a limit cannot be set below what was redeemed, and a change acts on the next purchase", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await hasCode();
  for (let at = 0; at < 2; at++)
    assert.equal((await buy(await market.createUser(), productId, { discountCode: code })).status, 201);
  const path = `/v1/discount-codes/${id}`;
  assertError(await seller.patch(path, { maxRedemptions: 1 }), 422, "VALIDATION_ERROR", "maxRedemptions");
  assert.equal((await seller.patch(path, { maxRedemptions: 2, percentOff: 20 })).status, 200);
  refuse(await buy(await market.createUser(), productId, { discountCode: code }), /used up/);
});
