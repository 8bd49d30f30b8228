import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { until } from "../../../test/until.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { toMinor } from "../../core/money/amount.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import type { ChargeRequest } from "../../integrations/payments/payments.ts";
import type { Settlement } from "../charges/charges.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { listOpenMoney } from "../charges/open-money.ts";
import { orderTarget, settleOrder } from "./order-payment.ts";

const MINUTE_MS = 60_000;
const WAITS = { paymentMethodId: "pm_test_requires_action" };

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
  seller = await market.createUser({ name: "Seller" });
});
beforeEach(() => {
  line.trouble = "none";
});
after(async () => {
  await market.close();
  await provider.close();
});

const buy = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases", { productId, ...input });
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const listed = async (buyer: Client) =>
  (await buyer.get("/v1/purchases")).body.data.map(
    (order: { status: string; amount: number }) => order.status,
  );
const reconcile = () => reconcileCharges(market.service.ctx, orderTarget);
const chargeOf = async (orderId: string) => (await store.findByOrder(orderId))?.state;

/** Submits a form of the provider's page. */
async function press(url: string, decision: "approve" | "decline"): Promise<void> {
  const reply = await fetch(url, {
    method: "POST",
    body: new URLSearchParams({ decision }),
    redirect: "manual",
  });
  assert.equal(reply.status, 303);
}

async function soldEvents(productId: string): Promise<number> {
  const { rows } = await market.query(
    "select count(*) from events where type = 'purchase.completed' and strpos(body, $1) > 0",
    [productId],
  );
  return rows[0].count;
}

interface Waiting {
  buyer: Client;
  productId: string;
  orderId: string;
  url: string;
}

/** An order that requires action by the buyer. */
async function createWaitingOrder(price = 10): Promise<Waiting> {
  const buyer = await market.createUser();
  const productId = await createProduct(seller, { price });
  const { status, body, text } = await buy(buyer, productId, WAITS);
  assert.equal(status, 202, text);
  return { buyer, productId, orderId: body.data.orderId, url: body.data.nextAction.url };
}

/** An order whose charge has no answer. */
async function createPendingOrder(kind: "answers get lost" | "down"): Promise<Omit<Waiting, "url">> {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  line.trouble = kind;
  const { status, body } = await buy(buyer, productId);
  line.trouble = "none";
  assert.deepEqual([status, body.data.status], [202, "pending"]);
  return { buyer, productId, orderId: body.data.orderId };
}

test("a charge that the buyer must confirm: 202 with the URL", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
    status: "requires_action",
    nextAction: { url },
    downloadUrl: null,
    receipt: { url: null, pdf: null },
    entitlement: null,
  });
  assert.match(await (await fetch(url)).text(), /Approve/);
  assert.equal((await buyer.get(`/v1/products/${productId}`)).body.data.content, null);
  assert.equal(await soldEvents(productId), 0);
});

test("a charge that was confirmed at the provider: the next read completes the purchase", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  market.clock.forward(MINUTE_MS);
  await press(url, "approve");
  const order = await orderOf(buyer, orderId);
  assert.partialDeepStrictEqual(order, {
    status: "completed",
    completedAt: market.clock.now.toISOString(),
    paymentMethod: { brand: "mastercard", last4: "3155" },
    entitlement: { status: "active" },
  });
  assert.ok(order.downloadUrl && order.receipt.pdf);
  assert.equal(order.nextAction, undefined);
  assert.equal(await soldEvents(productId), 1);
});

test("a charge that was declined at the provider: the next read shows a failed purchase", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  await press(url, "decline");
  assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
    status: "failed",
    declineCode: "authentication_failed",
    entitlement: null,
  });
  assert.equal(await soldEvents(productId), 0);
});

test("a repeated purchase while the order is open: answers the same order, and its confirmation completes it", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  const again = await buy(buyer, productId, WAITS);
  assert.equal(again.status, 202);
  assert.partialDeepStrictEqual(again.body.data, { orderId, nextAction: { url } });
  await press(url, "approve");
  const completed = await buy(buyer, productId, WAITS);
  assert.partialDeepStrictEqual(completed.body.data, { orderId, status: "completed" });
  assert.deepEqual(await listed(buyer), ["completed"]);
});

test("another method while the order is open: replaces the order, and a late confirmation changes nothing", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  assert.equal((await buy(buyer, productId, { paymentMethodId: "pm_test_ok" })).status, 201);
  assert.deepEqual(await listed(buyer), ["completed", "canceled"]);
  assert.equal(await chargeOf(orderId), "canceled");
  await press(url, "approve");
  assert.equal(await chargeOf(orderId), "canceled");
  assert.equal((await orderOf(buyer, orderId)).status, "canceled");
  assert.equal(await soldEvents(productId), 1);
});

test("another method after the confirmation: charges nothing a second time", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  await press(url, "approve");
  const reply = await buy(buyer, productId, { paymentMethodId: "pm_test_ok" });
  assert.equal(assertError(reply, 409, "ALREADY_PURCHASED").orderId, orderId);
  assert.deepEqual(await listed(buyer), ["completed"]);
});

test("an open order at an old price: replaced by one at the expected price", async () => {
  const { buyer, orderId, productId } = await createWaitingOrder(10);
  await seller.patch(`/v1/products/${productId}`, { price: 5 });
  const reply = await buy(buyer, productId, { ...WAITS, expectedPrice: 5 });
  assert.equal(reply.status, 202);
  assert.partialDeepStrictEqual(reply.body.data, { amount: 5, status: "requires_action" });
  assert.equal(await chargeOf(orderId), "canceled");
});

test("an open order with another refund window: replaced by one with the present window", async () => {
  const { buyer, orderId, productId } = await createWaitingOrder();
  const session = await market.createSession(seller.userId);
  const { refundDays } = (await session.get("/v1/account")).body.data;
  await session.patch("/v1/account", { refundDays: 30 });
  const reply = await buy(buyer, productId, WAITS);
  await session.patch("/v1/account", { refundDays });
  assert.equal(reply.status, 202);
  assert.notEqual(reply.body.data.orderId, orderId);
  assert.equal(await chargeOf(orderId), "canceled");
});

test("a charge without an answer: the order stays pending until the provider answers", async () => {
  const { buyer, productId, orderId } = await createPendingOrder("answers get lost");
  assert.equal(await chargeOf(orderId), "succeeded", "it was charged");
  line.trouble = "down";
  assert.equal((await orderOf(buyer, orderId)).status, "pending");
  line.trouble = "none";
  market.clock.forward(MINUTE_MS - 1);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["pending"], "not before a minute: it may still be under way");
  market.clock.forward(2);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["completed"]);
  await reconcile();
  assert.equal(await soldEvents(productId), 1);
});

test("a charge whose answer was lost: pending, and the job completes it once", async (t) => {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  const patience = new AbortController();
  const impatient = createFakePayments({ origin: provider.origin, deadline: () => patience.signal });
  t.mock.method(market.service.ctx.integrations.payments, "charge", impatient.charge);
  const bought = buy(buyer, productId, { paymentMethodId: "pm_test_timeout_but_charged" });
  await until("the order is listed", async () => (await listed(buyer)).length > 0);
  const { orderId } = (await buyer.get("/v1/purchases")).body.data[0];
  await until("the charge is made", () => chargeOf(orderId));
  patience.abort();
  const { status, body } = await bought;
  assert.equal(status, 202);
  assert.partialDeepStrictEqual(body.data, { orderId, status: "pending", downloadUrl: null });
  assert.deepEqual(body.data.receipt, { url: null, pdf: null });
  market.clock.forward(MINUTE_MS + 1);
  for (const _ of [1, 2]) await reconcile();
  assert.deepEqual(await listed(buyer), ["completed"]);
  assert.equal(await soldEvents(productId), 1);
});

test("a repeated purchase of a pending order: the same charge", async () => {
  const { buyer, productId, orderId } = await createPendingOrder("answers get lost");
  const again = await buy(buyer, productId);
  assert.equal(again.status, 201);
  assert.equal(again.body.data.orderId, orderId);
  assert.deepEqual(await listed(buyer), ["completed"]);
});

test("an order that the provider does not know: canceled after ten minutes", async () => {
  const { buyer, productId, orderId } = await createPendingOrder("down");
  market.clock.forward(10 * MINUTE_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["pending"]);
  market.clock.forward(1);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["canceled"]);
  assert.equal(await chargeOf(orderId), undefined);
  assert.equal((await buy(buyer, productId)).status, 201, "and it can be bought anew");
});

test("a pending order: never charged with another method than its own", async () => {
  const { buyer, productId, orderId } = await createPendingOrder("down");
  const reply = await buy(buyer, productId, { paymentMethodId: "pm_test_declined" });
  assert.equal(reply.status, 202, "it is not known yet how the first try ended");
  assert.partialDeepStrictEqual(reply.body.data, { orderId, status: "pending" });
  assert.equal(await chargeOf(orderId), undefined, "nor charged by the first one, now that another is named");
});

test("a provider that is down: cancels no order", async () => {
  const { buyer } = await createPendingOrder("answers get lost");
  line.trouble = "down";
  market.clock.forward(HOUR_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["pending"]);
  line.trouble = "none";
  await reconcile();
  assert.deepEqual(await listed(buyer), ["completed"]);
});

test("an order that the buyer never confirms: canceled after a day, at the provider too", async () => {
  const { buyer, orderId, url } = await createWaitingOrder();
  market.clock.forward(24 * HOUR_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["requires_action"]);
  market.clock.forward(1);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["canceled"]);
  assert.equal(await chargeOf(orderId), "canceled");
  assert.doesNotMatch(await (await fetch(url)).text(), /Approve<\/button>/);
});

test("many unconfirmed orders: do not delay the settlement of others", async () => {
  const { orderId } = await createWaitingOrder();
  await market.query(
    `with people as (
       insert into users (id, email, name, created_at)
       select gen_random_uuid(), 'waiting-' || n, 'Waiting', $2 from generate_series(1, 150) n returning id)
     insert into orders (id, buyer_id, seller_id, buyer_name, buyer_email, seller_name, product_id, product_title, product_type, product_version, status,
                         subtotal_minor, total_minor, fee_minor, seller_minor, fee_basis_points, currency, refund_days, payment_method_id, created_at)
     select gen_random_uuid(), people.id, seller_id, buyer_name, buyer_email, seller_name, product_id, product_title, product_type, product_version, status,
            subtotal_minor, total_minor, fee_minor, seller_minor, fee_basis_points, currency, refund_days, payment_method_id, created_at
       from people, orders where orders.id = $1`,
    [toUuid("ord", orderId), market.clock.now],
  );
  market.clock.forward(1);
  const { buyer } = await createPendingOrder("answers get lost");
  market.clock.forward(2 * MINUTE_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["completed"]);
});

test("a result that is repeated or late: changes nothing", async () => {
  const { ctx } = market.service;
  const { buyer, productId, orderId, url } = await createWaitingOrder();
  await press(url, "approve");
  const paid = (await ctx.integrations.payments.findCharge(orderId)) as Settlement;
  const id = toUuid("ord", orderId)!;
  const settled = await Promise.all(Array.from({ length: 5 }, () => settleOrder(ctx, id, paid)));
  for (const order of settled) {
    assert.deepEqual(
      [order.status, order.entitlementStatus],
      ["completed", "active"],
      "each call returns the completed order",
    );
  }
  const before = await orderOf(buyer, orderId);
  const { paymentId, method } = paid as Extract<Settlement, { state: "succeeded" }>;
  market.clock.forward(1_000);
  for (const late of [
    paid,
    { state: "declined", declineCode: "late", paymentId, method },
    { state: "canceled", paymentId, method },
    { state: "requires_action", url: "http://late.example", paymentId, method },
  ] as Settlement[]) {
    assert.equal((await settleOrder(ctx, id, late)).status, "completed");
  }
  const { downloadUrl, receipt, ...same } = before;
  assert.partialDeepStrictEqual(await orderOf(buyer, orderId), same);
  assert.equal(await soldEvents(productId), 1);
  assert.equal((await seller.get(`/v1/products/${productId}`)).body.data.stats.purchases, 1);
});

test("a late payment of a canceled order: buys the product, once", async () => {
  const { ctx } = market.service;
  const { buyer, productId, orderId } = await createPendingOrder("down");
  market.clock.forward(11 * MINUTE_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["canceled"]);
  const method = { brand: "visa", last4: "4242" };
  const paid = { state: "succeeded", paymentId: "ch_late", method, feeMinor: null } as const;
  await settleOrder(ctx, toUuid("ord", orderId)!, paid);
  await settleOrder(ctx, toUuid("ord", orderId)!, paid);
  assert.deepEqual(await listed(buyer), ["completed"]);
  assert.equal(await soldEvents(productId), 1);
});

test("a late payment of a second order of an owned product: grants nothing and is refunded", async () => {
  const { ctx } = market.service;
  const { buyer, productId, orderId } = await createPendingOrder("down");
  market.clock.forward(11 * MINUTE_MS);
  await reconcile();
  assert.equal((await buy(buyer, productId)).status, 201);
  const method = { brand: "visa", last4: "4242" };
  await settleOrder(ctx, toUuid("ord", orderId)!, {
    state: "succeeded",
    paymentId: "ch_twice",
    method,
    feeMinor: null,
  });
  assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
    entitlement: null,
    refunds: [{ requestedBy: "service", amount: 4.99 }],
  });
  assert.equal(await soldEvents(productId), 1);
});

test("a repeated purchase of an unknown charge: the job waits for its answer before it cancels", async () => {
  const { buyer, productId } = await createPendingOrder("down");
  market.clock.forward(10 * MINUTE_MS);
  line.trouble = "down";
  assert.equal((await buy(buyer, productId)).status, 202);
  line.trouble = "none";
  market.clock.forward(MINUTE_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["pending"]);
  market.clock.forward(9 * MINUTE_MS + 1);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["canceled"]);
});

test("a price change between two reads: changes no order", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder(10);
  await seller.patch(`/v1/products/${productId}`, { price: 20 });
  await press(url, "approve");
  assert.partialDeepStrictEqual(await orderOf(buyer, orderId), { status: "completed", amount: 10 });
});

test("a product that went off sale during the payment: its buyer gets it", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  await seller.post(`/v1/products/${productId}/unpublish`);
  await press(url, "approve");
  assert.equal((await orderOf(buyer, orderId)).status, "completed");
  assert.ok((await buyer.get(`/v1/products/${productId}`)).body.data.content);
});

test("a product that moderators withheld during the payment: the payment is refunded", async () => {
  const { buyer, orderId, url, productId } = await createWaitingOrder();
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const suspended = await admin.post(`/v1/admin/products/${productId}/suspend`, { reasonCode: "malicious" });
  assert.equal(suspended.status, 200, suspended.text);
  await press(url, "approve");
  const order = await orderOf(buyer, orderId);
  assert.deepEqual([order.status, order.entitlement], ["refunded", null]);
  assert.equal(await soldEvents(productId), 0);
});

test("a failure inside the settlement: the order stays open, and the next job run settles it", async () => {
  const { buyer, productId } = await createPendingOrder("answers get lost");
  const id = toUuid("prod", productId);
  await market.query(
    `alter table entitlements add constraint broken check (product_id <> '${id}') not valid`,
  );
  market.clock.forward(2 * MINUTE_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["pending"]);
  assert.equal(await soldEvents(productId), 0, "no event without its change");
  await market.query("alter table entitlements drop constraint broken");
  await reconcile();
  assert.deepEqual(await listed(buyer), ["completed"]);
  assert.equal(await soldEvents(productId), 1);
});

test("late payments of orders with a code and free copies by the same code: do not wait for each other", async () => {
  const { ctx } = market.service;
  const owner = await market.createUser();
  const [dear, cheap] = [await createProduct(owner, { price: 10 }), await createProduct(owner, { price: 5 })];
  await owner.post("/v1/discount-codes", { code: "FIVE", amountOff: 5 });
  const buyers = await Promise.all(Array.from({ length: runs(25) }, () => market.createUser()));
  line.trouble = "down";
  const late = await Promise.all(buyers.map((buyer) => buy(buyer, dear, { discountCode: "FIVE" })));
  line.trouble = "none";
  market.clock.forward(11 * MINUTE_MS);
  await reconcile();
  const method = { brand: "visa", last4: "4242" };
  const paid = { state: "succeeded", paymentId: "ch_late", method, feeMinor: null } as const;
  const settleInTurn = async () => {
    for (const { body } of late) await settleOrder(ctx, toUuid("ord", body.data.orderId)!, paid);
  };
  const [free] = await Promise.all([
    Promise.all(buyers.map((buyer) => buy(buyer, cheap, { discountCode: "FIVE" }))),
    settleInTurn(),
  ]);
  assert.deepEqual(new Set(free.map(({ status }) => status)), new Set([201]));
  assert.equal((await owner.get("/v1/discount-codes")).body.data[0].redemptions, 2 * buyers.length);
});

test("two paid orders of one product: the second is refunded", async () => {
  const { ctx } = market.service;
  const { buyer, productId, orderId } = await createPendingOrder("answers get lost");
  // The first order was canceled before its answer was found.
  await market.query("update orders set status = 'canceled' where id = $1", [toUuid("ord", orderId)]);
  const second = (await buy(buyer, productId, WAITS)).body.data;
  const paid = (await ctx.integrations.payments.findCharge(orderId)) as Settlement;
  assert.equal((await settleOrder(ctx, toUuid("ord", orderId)!, paid)).status, "completed");
  await press(second.nextAction.url, "approve");
  assert.partialDeepStrictEqual(await orderOf(buyer, second.orderId), {
    status: "refunded",
    entitlement: null,
    refunds: [{ requestedBy: "service", status: "succeeded" }],
  });
  assert.equal(await soldEvents(productId), 1);
});

/** The provider charges late, without a webhook. */
async function chargeLate({ buyer, orderId }: Pick<Waiting, "buyer" | "orderId">, methodId = "pm_test_ok") {
  const { amount, currency } = await orderOf(buyer, orderId);
  await createFakePayments({ origin: provider.origin }).charge({
    ...{ orderId, amountMinor: toMinor(amount, currency)!, currency, methodId, userId: buyer.userId },
    ...{ description: "Haiku", buyer: "present", recurs: false },
  });
}

/** Canceled after ten minutes without a charge at the provider. */
async function createCanceledOrder(): Promise<Omit<Waiting, "url">> {
  const order = await createPendingOrder("down");
  market.clock.forward(11 * MINUTE_MS);
  await reconcile();
  assert.equal((await orderOf(order.buyer, order.orderId)).status, "canceled");
  return order;
}

test("a payment at the moment of the cancellation, webhook lost: the job finds it", async () => {
  const order = await createCanceledOrder();
  await chargeLate(order);
  line.trouble = "down";
  market.clock.forward(HOUR_MS);
  await reconcile();
  line.trouble = "none";
  await reconcile();
  assert.partialDeepStrictEqual(await orderOf(order.buyer, order.orderId), {
    status: "completed",
    entitlement: { status: "active" },
  });
});

test("a late payment after another order bought the product: refunded", async () => {
  const order = await createCanceledOrder();
  assert.equal((await buy(order.buyer, order.productId)).status, 201);
  await chargeLate(order);
  market.clock.forward(HOUR_MS);
  await reconcile();
  assert.partialDeepStrictEqual(await orderOf(order.buyer, order.orderId), {
    status: "refunded",
    refunds: [{ requestedBy: "service", status: "succeeded" }],
  });
});

test("a canceled order whose charge could still be confirmed: the job cancels the charge", async () => {
  const order = await createCanceledOrder();
  await chargeLate(order, "pm_test_requires_action");
  market.clock.forward(HOUR_MS);
  await reconcile();
  assert.equal(await chargeOf(order.orderId), "canceled");
  assert.equal((await orderOf(order.buyer, order.orderId)).status, "canceled");
});

test("a canceled order: checked for a week, at growing intervals", async (t) => {
  const { orderId } = await createCanceledOrder();
  const find = t.mock.method(market.service.ctx.integrations.payments, "findCharge");
  const requests: number[] = [];
  const hours = isFullSize ? 240 : 40;
  for (let hour = 1; hour <= hours; hour++) {
    market.clock.forward(HOUR_MS);
    find.mock.resetCalls();
    await reconcile();
    if (find.mock.calls.some(({ arguments: [id] }) => id === orderId)) requests.push(hour);
  }
  const expected = [1, 3, 7, 15, 31, 55, 79, 103, 127, 151, 175];
  assert.deepEqual(
    requests,
    expected.filter((hour) => hour <= hours),
  );
});

test("an unexpected error of the provider: leaves the order to the job", async (t) => {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  const charge = t.mock.method(market.service.ctx.integrations.payments, "charge", async () => {
    throw new TypeError("the secret key is no key");
  });
  const reply = await buy(buyer, productId);
  assert.deepEqual([reply.status, reply.body.data.status], [202, "pending"]);
  charge.mock.restore();
  assert.equal((await buy(buyer, productId)).body.data.orderId, reply.body.data.orderId, "the same order");
  assert.deepEqual(await listed(buyer), ["completed"]);
});

test("a refusal by the provider: counts as a decline", async (t) => {
  const buyer = await market.createUser();
  const { payments } = market.service.ctx.integrations;
  const { charge } = payments;
  t.mock.method(payments, "charge", (request: ChargeRequest) => charge({ ...request, currency: "nothing" }));
  const productId = await createProduct(seller);
  assert.equal(
    assertError(await buy(buyer, productId), 402, "INSUFFICIENT_FUNDS").declineCode,
    "invalid_request",
  );
  assert.deepEqual(await listed(buyer), ["failed"]);
});

test("a late payment of a closed account: refunded", async () => {
  const { ctx } = market.service;
  const { buyer, orderId } = await createPendingOrder("answers get lost");
  await market.query("update orders set status = 'canceled' where id = $1", [toUuid("ord", orderId)]);
  await market.query("update users set closed_at = $2 where id = $1", [buyer.userId, market.clock.now]);
  const paid = (await ctx.integrations.payments.findCharge(orderId)) as Settlement;
  assert.equal((await settleOrder(ctx, toUuid("ord", orderId)!, paid)).status, "refunded");
});

test("a late payment to a seller whose account is closed: refunded", async () => {
  const { ctx } = market.service;
  const buyer = await market.createUser();
  const owner = await market.createUser();
  const productId = await createProduct(owner, { price: 10 });
  line.trouble = "answers get lost";
  const { orderId } = (await buy(buyer, productId)).body.data;
  line.trouble = "none";
  await market.query("update orders set status = 'canceled' where id = $1", [toUuid("ord", orderId)]);
  await market.query("update users set closed_at = $2 where id = $1", [owner.userId, market.clock.now]);
  const paid = (await ctx.integrations.payments.findCharge(orderId)) as Settlement;
  assert.equal((await settleOrder(ctx, toUuid("ord", orderId)!, paid)).status, "refunded");
});

test("repeated purchases of an unconfirmed order: do not extend its deadline", async () => {
  const { buyer, productId, orderId } = await createWaitingOrder();
  for (let round = 0; round < 3; round++) {
    market.clock.forward(10 * HOUR_MS);
    assert.equal((await buy(buyer, productId, WAITS)).body.data.orderId, orderId);
  }
  market.clock.forward(2 * MINUTE_MS);
  await reconcile();
  assert.deepEqual(await listed(buyer), ["canceled"]);
});

/** Simulates a late capture of half the amount, or its refund. */
async function capturePartially(order: Omit<Waiting, "url">, { isRefunded }: { isRefunded: boolean }) {
  const method = { brand: "visa", last4: "4242" };
  const outcome = { state: "succeeded", paymentId: "ch_half", method, feeMinor: null } as const;
  const { payments } = market.service.ctx.integrations;
  const { findCharge: find } = payments;
  payments.findCharge = async (id) =>
    id === order.orderId ? { ...outcome, amountMinor: 500n, currency: "USD", isRefunded } : find(id);
  await reconcile();
  payments.findCharge = find;
}

const mismatched = async () =>
  (await listOpenMoney(market.service.ctx.db, market.clock.now)).find(
    ({ kind, state }) => kind === "order" && state === "mismatched",
  )!.count;

test("another amount captured for a canceled order: reported until it is refunded, however late", async () => {
  const order = await createCanceledOrder();
  market.clock.forward(HOUR_MS);
  await capturePartially(order, { isRefunded: false });
  assert.equal(await mismatched(), 1);
  market.clock.forward(30 * 24 * HOUR_MS);
  await capturePartially(order, { isRefunded: true });
  assert.equal(await mismatched(), 0);
  assert.equal((await orderOf(order.buyer, order.orderId)).status, "canceled");
});

test("the connection of a settlement is lost between its statements: nothing of it stays, and the order completes once", async () => {
  const owner = await market.createUser({ name: "Other seller" });
  const buyer = await market.createUser();
  await buy(buyer, await createProduct(owner, { title: "First" }));
  const productId = await createProduct(owner, { title: "Second" });
  const client = await market.service.ctx.pool.connect();
  await client.query("begin");
  await client.query("select from receipt_counters for update");
  const buying = buy(buyer, productId);
  await waitForBlockedStatements(market);
  await market.query(`select pg_terminate_backend(pid) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'`);
  await client.query("commit");
  client.release();
  assertError(await buying, 503, "SERVICE_UNAVAILABLE");
  assert.deepEqual(await listed(buyer), ["pending", "completed"]);
  const { rows } = await market.query(
    "select (select count(*)::int from entitlements where product_id = $1) as rights, (select last from receipt_counters c join products p on p.author_id = c.seller_id where p.id = $1) as number",
    [toUuid("prod", productId)],
  );
  assert.deepEqual(rows, [{ rights: 0, number: 1 }]);
  const { orderId } = (await buyer.get("/v1/purchases")).body.data[0];
  const order = await orderOf(buyer, orderId);
  assert.equal(order.status, "completed");
  assert.match(order.receipt.number, /-00002$/);
  const events = await buyer.get("/v1/events?type=purchase.completed");
  assert.equal(events.body.data.length, 2);
});
