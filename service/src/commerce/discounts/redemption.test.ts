import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import fc from "fast-check";
import { sql } from "kysely";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
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

let codes = 0;
async function createCode(input: object = {}): Promise<{ id: string; code: string }> {
  const reply = await seller.post("/v1/discount-codes", {
    code: `CODE-${++codes}`,
    percentOff: 50,
    ...input,
  });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const buy = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases", { productId, ...input });
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const redemptionsOf = async (id: string) =>
  (await seller.get(`/v1/discount-codes/${id}`)).body.data.redemptions;
const completed = (replies: Reply[]) => replies.filter(({ status }) => status === 201).length;
const assertRefused = (reply: Reply, reason: RegExp) =>
  assert.match(assertError(reply, 422, "VALIDATION_ERROR", "discountCode").reason, reason);

test("POST /purchases with 50 % of 19.99: discount 10.00, total 9.99", async () => {
  const productId = await createProduct(seller, { price: 19.99 });
  const { id, code } = await createCode();
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

test("POST /purchases: ignores case and surrounding blanks of a code", async () => {
  const { code } = await createCode({ code: "MixedCase" });
  const reply = await buy(await market.createUser(), await createProduct(seller), {
    discountCode: " mIXEDcASE ",
  });
  assert.equal(reply.status, 201, reply.text);
  assert.equal(code, "MixedCase");
});

test("any percentage: the discount is the share rounded half up, the total the rest", async () => {
  const productId = await createProduct(seller, { price: 1, currency: "JPY" });
  const { id, code } = await createCode({ percentOff: 1 });
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
    {
      numRuns: runs(40, 10),
      examples: [[[3, 5_000]], [[10_001, 5_000]], [[2, 9_999]], [[99_999_999, 3_333]]],
    },
  );
});

test("amountOff: limited to the price", async () => {
  const productId = await createProduct(seller, { price: 5 });
  const some = await createCode({ percentOff: undefined, amountOff: 1.25 });
  const all = await createCode({ percentOff: undefined, amountOff: 500 });
  const totalWith = async ({ code }: { code: string }) =>
    (await buy(await market.createUser(), productId, { discountCode: code })).body.data.amount;
  assert.deepEqual([await totalWith(some), await totalWith(all)], [3.75, 0]);
});

test("POST /purchases with an unusable code: 422 with the reason", async () => {
  const [productId, other] = [await createProduct(seller, { price: 10 }), await createProduct(seller)];
  const buyer = await market.createUser();
  const now = market.clock.now.getTime();
  const at = (ms: number) => new Date(now + ms).toISOString();
  const attempt = async (input: object) =>
    buy(buyer, productId, { discountCode: (await createCode(input)).code });
  assertRefused(await buy(buyer, productId, { discountCode: "NEVER" }), /is unknown/);
  assertRefused(await attempt({ startsAt: at(1) }), /valid from \d/);
  assertRefused(await attempt({ endsAt: at(0) }), /valid until \d/);
  assertRefused(await attempt({ productId: other }), /another product/);
  assertRefused(await attempt({ percentOff: undefined, amountOff: 1, currency: "EUR" }), /EUR.*USD/);
  const removed = await createCode();
  await seller.delete(`/v1/discount-codes/${removed.id}`);
  assertRefused(await buy(buyer, productId, { discountCode: removed.code }), /is unknown/);
  const stranger = await market.createUser({ role: "seller" });
  await stranger.post("/v1/discount-codes", { code: "THEIRS", percentOff: 10 });
  assertRefused(await buy(buyer, productId, { discountCode: "THEIRS" }), /is unknown/);
  assert.equal((await buyer.get("/v1/purchases")).body.meta.total, 0, "no order stays behind");
  assert.equal((await attempt({ startsAt: at(0), endsAt: at(1), productId })).status, 201);
});

test("POST /purchases: expectedPrice is the price after the discount", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode({ percentOff: 30 });
  const reply = await buy(await market.createUser(), productId, { discountCode: code, expectedPrice: 10 });
  assert.deepEqual(assertError(reply, 409, "PRICE_CHANGED"), { price: 7, currency: "USD" });
  assert.equal(await redemptionsOf(id), 0);
});

test("a code that changes during the purchase: 422, nothing is charged", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode();
  const buyer = await market.createUser();
  const { bought } = await market.service.ctx.db.transaction().execute(async (tx) => {
    market.clock.forward(1);
    await sql`update discount_codes set percent_basis_points = 1000, updated_at = ${market.clock.now}
               where id = ${toUuid("disc", id)}`.execute(tx);
    const bought = buy(buyer, productId, { discountCode: code });
    await waitForBlockedStatements(market);
    return { bought };
  });
  assertRefused(await bought, /changed during the purchase/);
  assert.deepEqual((await buyer.get("/v1/purchases")).body.data, []);
});

test("concurrent buyers, maxRedemptions 7: seven redemptions", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await createCode({ maxRedemptions: 7 });
  const buyers = await Promise.all(Array.from({ length: runs(50) }, () => market.createUser()));
  const replies = await Promise.all(buyers.map((buyer) => buy(buyer, productId, { discountCode: code })));
  assert.equal(completed(replies), 7);
  for (const reply of replies.filter(({ status }) => status !== 201)) assertRefused(reply, /used up/);
  assert.equal(await redemptionsOf(id), 7);
  const { rows } = await market.query(
    "select count(*), count(distinct buyer_id) as buyers from orders where discount_code_id = $1",
    [toUuid("disc", id)],
  );
  assert.deepEqual(rows, [{ count: 7, buyers: 7 }]);
});

test("one buyer, concurrent purchases, maxPerBuyer 1: one redemption", async () => {
  const products = await Promise.all(Array.from({ length: runs(12) }, () => createProduct(seller)));
  const { id, code } = await createCode({ maxPerBuyer: 1 });
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  const replies = await Promise.all(products.map((product) => buy(buyer, product, { discountCode: code })));
  assert.equal(completed(replies), 1);
  for (const reply of replies.filter(({ status }) => status !== 201))
    assertRefused(reply, /no redemptions left/);
  assert.equal((await buy(other, products[0]!, { discountCode: code })).status, 201);
  assert.equal(await redemptionsOf(id), 2);
});

test("concurrent free purchases: respect the limits", async () => {
  const productId = await createProduct(seller);
  const limit = runs(5, 2);
  const { id, code } = await createCode({ percentOff: 100, maxRedemptions: limit });
  const buyers = await Promise.all(Array.from({ length: runs(25) }, () => market.createUser()));
  const replies = await Promise.all(buyers.map((buyer) => buy(buyer, productId, { discountCode: code })));
  assert.equal(completed(replies), limit);
  assert.equal(await redemptionsOf(id), limit);
});

test("concurrent requests for one product: one redemption", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await createCode({ maxRedemptions: 5 });
  const buyer = await market.createUser();
  const replies = await Promise.all(
    Array.from({ length: runs(20) }, () => buy(buyer, productId, { discountCode: code })),
  );
  assert.ok(completed(replies) > 0);
  for (const reply of replies.filter(({ status }) => status !== 201))
    assertError(reply, 409, "ALREADY_PURCHASED");
  assert.equal(await redemptionsOf(id), 1);
});

test("100 % off: completes at once with a receipt, without payment method and ledger entries", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { code } = await createCode({ percentOff: 100 });
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

test("a declined payment: releases the redemption", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await createCode({ maxRedemptions: 1, maxPerBuyer: 1 });
  const buyer = await market.createUser();
  const declined = { discountCode: code, paymentMethodId: DECLINED };
  assertError(await buy(buyer, productId, declined), 402, "INSUFFICIENT_FUNDS");
  assert.equal(await redemptionsOf(id), 0);
  assert.equal((await buy(buyer, productId, { discountCode: code })).status, 201);
  assert.equal(await redemptionsOf(id), 1);
});

test("an unknown payment method: no order and no redemption", async () => {
  const productId = await createProduct(seller);
  const { id, code } = await createCode();
  const reply = await buy(await market.createUser(), productId, {
    discountCode: code,
    paymentMethodId: "pm_of_nobody",
  });
  assertError(reply, 404, "PAYMENT_METHOD_NOT_FOUND");
  assert.equal(await redemptionsOf(id), 0);
});

test("an order that requires action: keeps its redemption until another order replaces it", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode({ maxRedemptions: 1 });
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  const waiting = await buy(buyer, productId, { discountCode: code, paymentMethodId: WAITS });
  assert.equal(waiting.status, 202, waiting.text);
  assert.equal(await redemptionsOf(id), 1);
  assertRefused(await buy(other, productId, { discountCode: code }), /used up/);
  const same = await buy(buyer, productId, { discountCode: code, paymentMethodId: WAITS });
  assert.equal(same.body.data.orderId, waiting.body.data.orderId, "the same input continues the same order");
  assert.equal(await redemptionsOf(id), 1);
  const byCard = await buy(buyer, productId, { discountCode: code });
  assert.equal(byCard.status, 201, byCard.text);
  assert.equal(byCard.body.data.amount, 5);
  assert.equal(await redemptionsOf(id), 1);
});

test("an unconfirmed payment: releases a limited code after 30 minutes, an unlimited one after a day", async () => {
  const { ctx } = market.service;
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode({ maxRedemptions: 1 });
  const unlimited = await createCode();
  const [buyer, other, patient] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const waiting = await buy(buyer, productId, { discountCode: code, paymentMethodId: WAITS });
  const waitingUnlimited = await buy(patient, productId, {
    discountCode: unlimited.code,
    paymentMethodId: WAITS,
  });
  market.clock.forward(30 * MINUTE_MS);
  await reconcileCharges(ctx, orderTarget);
  assertRefused(await buy(other, productId, { discountCode: code }), /used up/);
  market.clock.forward(MINUTE_MS + 1);
  await reconcileCharges(ctx, orderTarget);
  assert.equal((await orderOf(buyer, waiting.body.data.orderId)).status, "canceled");
  assert.equal((await orderOf(patient, waitingUnlimited.body.data.orderId)).status, "requires_action");
  assert.equal(await redemptionsOf(id), 0);
  assert.equal((await buy(other, productId, { discountCode: code })).status, 201);
});

test("POST /purchases with another code: replaces the open order", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode();
  const buyer = await market.createUser();
  const whole = await buy(buyer, productId, { paymentMethodId: WAITS });
  const half = await buy(buyer, productId, { paymentMethodId: WAITS, discountCode: code });
  const free = await createCode({ percentOff: 100 });
  const nothing = await buy(buyer, productId, { paymentMethodId: WAITS, discountCode: free.code });
  assert.deepEqual([whole.body.data.amount, half.body.data.amount, nothing.body.data.amount], [10, 5, 0]);
  assert.deepEqual([whole.status, half.status, nothing.status], [202, 202, 201]);
  assert.equal(await redemptionsOf(id), 0);
  assert.equal(await redemptionsOf(free.id), 1);
});

test("a canceled order: releases the redemption; a late payment redeems it again", async () => {
  const { ctx } = market.service;
  const productId = await createProduct(seller);
  const { id, code } = await createCode({ maxRedemptions: 1 });
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

test("a full refund: releases the redemption; a partial refund does not", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode({ maxRedemptions: 1 });
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

test("concurrent purchases, failures and refunds: redemptions equal the orders with the code", async () => {
  const products = await Promise.all(Array.from({ length: 4 }, () => createProduct(seller, { price: 10 })));
  const { id, code } = await createCode({ maxRedemptions: runs(12, 3), maxPerBuyer: 2 });
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const buyers = await Promise.all(Array.from({ length: runs(8, 3) }, () => market.createUser()));
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
  assert.ok(rows[0].count > 0 && rows[0].count <= runs(12, 3) && rows[0].most <= 2, JSON.stringify(rows[0]));
});

test("PATCH maxRedemptions below the redemptions: 422; a change applies to the next purchase", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const { id, code } = await createCode();
  for (let at = 0; at < 2; at++)
    assert.equal((await buy(await market.createUser(), productId, { discountCode: code })).status, 201);
  const path = `/v1/discount-codes/${id}`;
  assertError(await seller.patch(path, { maxRedemptions: 1 }), 422, "VALIDATION_ERROR", "maxRedemptions");
  assert.equal((await seller.patch(path, { maxRedemptions: 2, percentOff: 20 })).status, 200);
  assertRefused(await buy(await market.createUser(), productId, { discountCode: code }), /used up/);
});
