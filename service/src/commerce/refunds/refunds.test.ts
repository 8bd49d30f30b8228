import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { buyProduct, createProduct, type ProductInput, sharedProducts } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { lastOf } from "../../../test/notifications.ts";
import { accountsOf, createFakeRefunds, refundedMinorOf, withRefunds } from "../../../test/refunds.ts";
import { run } from "../../../test/runs.ts";
import { uploadFile } from "../../../test/uploads.ts";
import {
  holdEntitlement,
  lockEntitlement,
  resumeEntitlement,
} from "../../catalog/entitlements/entitlements.ts";
import { DAY_MS } from "../../core/dates.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { runRefundBuyersJob } from "./refund-buyers.ts";
import { approveOverdueRefunds, reconcileRefunds, syncRefundFromProvider } from "./refund-submission.ts";

const book = createFakeRefunds();
let provider: FakeProvider;
let market: Market;
let seller: Client;
let adminId: string;
let admin: Client;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  market = await openMarket({ payments: withRefunds(book, createFakePayments({ origin: provider.origin })) });
  seller = await market.createUser({ name: "Seller" });
  adminId = (await market.createUser({ role: "admin" })).userId;
});
beforeEach(async () => {
  book.trouble = "none";
  await forward(0);
});
after(async () => {
  await market.close();
  await provider.close();
});

/** Also renews the administrator's session. */
async function forward(ms: number): Promise<void> {
  market.clock.forward(ms);
  admin = await market.createSession(adminId, { secondFactor: true });
}

const lastSubjectTo = async ({ userId }: Client) => (await emailsToUser(market, userId))[0]?.subject ?? "";

interface Bought {
  buyer: Client;
  productId: string;
  orderId: string;
}

const shareProduct = sharedProducts();

/** Without a buyer, a new one buys a product that other orders may have, too. */
async function createOrder(input: ProductInput = {}, buyer?: Client): Promise<Bought> {
  const who = buyer ?? (await market.createUser({ name: "Buyer" }));
  const productId = await (buyer ? createProduct : shareProduct)(seller, { price: 10, ...input });
  return { buyer: who, productId, orderId: await buyProduct(who, productId) };
}

/** A purchase whose buyer has read the content. */
async function createUsedOrder(input: ProductInput = {}): Promise<Bought> {
  const bought = await createOrder(input);
  await bought.buyer.get(`/v1/products/${bought.productId}`);
  return bought;
}

const requestRefund = (buyer: Client, orderId: string, input: object = { reason: "not_working" }) =>
  buyer.post(`/v1/purchases/${orderId}/refund`, input);
const refundAsAdmin = (orderId: string, input: object = { reason: "not_working" }) =>
  admin.post(`/v1/admin/orders/${orderId}/refund`, input);
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const typesOf = (order: { events: { type: string }[] }) => order.events.map(({ type }) => type);

async function createPendingRefund(): Promise<Bought & { refundId: string }> {
  const bought = await createUsedOrder();
  const { body, text } = await requestRefund(bought.buyer, bought.orderId);
  assert.equal(body.data?.status, "pending", text);
  return { ...bought, refundId: body.data.id };
}

function assertStatus(reply: Reply, status: string) {
  assert.equal(reply.body.data?.status, status, reply.text);
}

suite("a refund of an unused product", () => {
  test("POST /purchases/{id}/refund: 201, refunded at once and in full", async () => {
    const { buyer, orderId, productId } = await createOrder({ title: "Unseen" });
    const reply = await requestRefund(buyer, orderId, { reason: "accidental", details: "The wrong one." });
    const at = market.clock.now.toISOString();
    assert.equal(reply.status, 201, reply.text);
    assert.match(reply.body.data.id, /^refund_/);
    assert.deepEqual(reply.body.data, {
      id: reply.body.data.id,
      orderId,
      product: { id: productId, title: "Unseen" },
      status: "succeeded",
      amount: 10,
      currency: "USD",
      reason: "accidental",
      reasonCode: "accidental",
      details: "The wrong one.",
      requestedBy: "buyer",
      decideBy: null,
      decidedBy: "rules",
      approvalReason: "unused",
      runs: null,
      decisionNote: null,
      failureCode: null,
      returnedAt: null,
      settledAt: null,
      createdAt: at,
      decidedAt: at,
      completedAt: at,
    });
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
    const order = await orderOf(buyer, orderId);
    assert.partialDeepStrictEqual(order, {
      status: "refunded",
      refundedAmount: 10,
      downloadUrl: null,
      entitlement: { status: "revoked" },
      refundable: { amount: 0, reasonIfNot: "already_refunded" },
      refunds: [{ id: reply.body.data.id }],
    });
    assert.deepEqual(typesOf(order), [
      "purchase.created",
      "purchase.completed",
      "refund.requested",
      "refund.approved",
      "refund.succeeded",
    ]);
  });

  test("all accounts of the order are zero", async () => {
    const { buyer, orderId } = await createOrder({ price: 19.99 });
    assert.deepEqual(await accountsOf(market, orderId), {
      platform_revenue: 200,
      provider_clearing: -1999,
      seller: 1799,
    });
    await requestRefund(buyer, orderId);
    assert.deepEqual(await accountsOf(market, orderId), {});
  });

  test("both sides get event and email, and the audit log has entries", async () => {
    const { buyer, orderId } = await createOrder({ title: "Told" });
    const { id } = (await requestRefund(buyer, orderId, { reason: "My own words" })).body.data;
    for (const side of [buyer, seller]) {
      const [event] = (await side.get("/v1/events?type=purchase.refunded")).body.data;
      assert.deepEqual(event.data, { refund: { id, orderId, amount: 10, reason: "My own words" } });
      assert.equal(await lastSubjectTo(side), "Refunded: Told");
    }
    const { data } = (await admin.get(`/v1/admin/audit?target=${id}`)).body;
    const deeds = data.map(({ action, actor }: { action: string; actor: { id: string } | null }) => [
      action,
      actor?.id ?? null,
    ]);
    assert.deepEqual(deeds, [
      ["refund.succeeded", null],
      ["refund.approved", null],
      ["refund.requested", toId("usr", buyer.userId)],
    ]);
  });

  test("the receipt shows the refund; its links remain valid", async () => {
    const { buyer, orderId } = await createOrder();
    await requestRefund(buyer, orderId);
    const { receipt } = await orderOf(buyer, orderId);
    assert.match(await (await fetch(receipt.url)).text(), /Refunded on 15 June 2026<\/dt><dd>−10\.00 USD/);
    assert.equal((await fetch(receipt.pdf)).status, 200);
  });

  test("the sale and the review no longer count", async () => {
    const { buyer, orderId, productId } = await createOrder({ title: "Counted" });
    const other = await market.createUser();
    await buyProduct(other, productId);
    await other.post(`/v1/products/${productId}/reviews`, { rating: 2 });
    await buyer.post(`/v1/products/${productId}/reviews`, { rating: 5 });
    await requestRefund(buyer, orderId);
    const { stats } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.partialDeepStrictEqual(stats, { purchases: 1, rating: 2, reviews: 1 });
    const { data } = (await seller.get(`/v1/products/${productId}/reviews`)).body;
    assert.deepEqual(
      data.map(({ rating, refunded }: { rating: number; refunded: boolean }) => [rating, refunded]),
      [
        [5, true],
        [2, false],
      ],
    );
  });

  test("the product can be bought again; the old review counts again", async () => {
    const { buyer, orderId, productId } = await createOrder({ title: "Bought again" });
    await buyer.post(`/v1/products/${productId}/reviews`, { rating: 4 });
    await requestRefund(buyer, orderId);
    const again = await buyProduct(buyer, productId);
    assert.notEqual(again, orderId);
    const { stats } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.partialDeepStrictEqual(stats, { purchases: 1, rating: 4, reviews: 1 });
    assert.equal((await orderOf(buyer, again)).entitlement.status, "active");
  });
});

suite("access to a refunded product", () => {
  test("after the refund: links, files, content, runs and reviews are refused", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller, { price: 10 });
    await uploadFile(seller, productId);
    const orderId = await buyProduct(buyer, productId);
    const { downloadUrl } = await orderOf(buyer, orderId);
    const { files } = (await buyer.get(`/v1/products/${productId}`)).body.data;
    assert.equal((await fetch(downloadUrl)).status, 200);
    assert.equal((await fetch(files[0].url)).status, 200);
    assertStatus(await refundAsAdmin(orderId), "succeeded");
    assertError(await buyer.get(downloadUrl), 403, "UNAUTHORIZED");
    assertError(await buyer.get(files[0].url), 403, "UNAUTHORIZED");
    const { content, access } = (await buyer.get(`/v1/products/${productId}`)).body.data;
    assert.deepEqual([content, access.owned], [null, false]);
    assertError(await run(buyer, { productId }), 403, "UNAUTHORIZED");
    assertError(
      await buyer.post(`/v1/products/${productId}/reviews`, { rating: 1 }),
      422,
      "VALIDATION_ERROR",
    );
  });

  test("while the refund is processing: held; a failed refund restores it", async () => {
    const { buyer, orderId, productId } = await createOrder();
    const { downloadUrl } = await orderOf(buyer, orderId);
    book.trouble = "slow";
    const { id } = (await requestRefund(buyer, orderId)).body.data;
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "completed",
      downloadUrl: null,
      entitlement: { status: "held" },
    });
    assertError(await buyer.get(downloadUrl), 403, "UNAUTHORIZED");
    assert.equal((await buyer.get(`/v1/products/${productId}`)).body.data.content, null);
    assertError(await buyer.post("/v1/purchases", { productId }), 409, "ALREADY_PURCHASED");
    const stored = book.refunds.get(id)!;
    book.refunds.set(id, {
      ...stored,
      outcome: { state: "failed", providerRefundId: "re_1", failureCode: "card_closed" },
    });
    await forward(61_000);
    await reconcileRefunds(market.service.ctx);
    assert.equal((await orderOf(buyer, orderId)).entitlement.status, "active");
    assert.equal((await fetch(downloadUrl)).status, 200);
  });

  test("a read concurrent with the approval: refused or finished before", async () => {
    const { buyer, orderId, productId } = await createOrder();
    const id = toUuid("ord", orderId)!;
    const { ctx } = market.service;
    const look = await ctx.db.transaction().execute(async (tx) => {
      await lockEntitlement(tx, id);
      const reading = buyer.get(`/v1/products/${productId}`);
      await waitForBlockedStatements(market);
      await holdEntitlement(tx, id);
      return [reading];
    });
    assertError(await look[0]!, 403, "UNAUTHORIZED");
    await ctx.db.transaction().execute((tx) => resumeEntitlement(tx, id));
  });

  test("reads concurrent with a refund request: never both", async () => {
    for (let round = 0; round < runs(5); round++) {
      const { buyer, orderId, productId } = await createOrder({}, await market.createUser());
      const looks = Array.from({ length: 20 }, () => buyer.get(`/v1/products/${productId}`));
      const [refund, ...seen] = await Promise.all([requestRefund(buyer, orderId), ...looks]);
      const wasSeen = seen.some(({ body }) => body.data?.content);
      assert.equal(refund!.body.data.status, wasSeen ? "pending" : "succeeded", "money, or content");
    }
  });
});

suite("a refund of a used product", () => {
  for (const [name, use] of Object.entries({
    revealed: ({ buyer, productId }: Bought) => buyer.get(`/v1/products/${productId}`),
    downloaded: async ({ buyer, orderId }: Bought) =>
      buyer.get((await buyer.get(`/v1/purchases/${orderId}`)).body.data.downloadUrl),
  })) {
    test(`${name}: pending for seven days`, async () => {
      const bought = await createOrder({ title: "Looked at" });
      assert.equal((await use(bought)).status, 200);
      const reply = await requestRefund(bought.buyer, bought.orderId, { reason: "not_as_described" });
      assert.equal(reply.status, 201);
      assert.partialDeepStrictEqual(reply.body.data, {
        status: "pending",
        decideBy: new Date(market.clock.now.getTime() + 7 * DAY_MS).toISOString(),
        decidedAt: null,
        decidedBy: null,
      });
      assert.equal(await refundedMinorOf(market, book, bought.orderId), 0n);
      assert.equal((await orderOf(bought.buyer, bought.orderId)).entitlement.status, "active");
      assert.equal(await lastSubjectTo(seller), "Refund requested: Looked at");
    });
  }

  test("approved by the seller: refunded", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    const reply = await seller.post(`/v1/refunds/${refundId}/approve`);
    assert.equal(reply.status, 200);
    assert.partialDeepStrictEqual(reply.body.data, { status: "succeeded", decidedBy: "seller" });
    assert.equal((await orderOf(buyer, orderId)).status, "refunded");
    assert.deepEqual(await accountsOf(market, orderId), {});
  });

  test("rejected by the seller: the buyer keeps the product and gets the reason", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    const reply = await seller.post(`/v1/refunds/${refundId}/reject`, { reason: "It works; see the guide." });
    assert.partialDeepStrictEqual(reply.body.data, {
      status: "rejected",
      decidedBy: "seller",
      decisionNote: "It works; see the guide.",
      completedAt: market.clock.now.toISOString(),
    });
    assert.equal(await refundedMinorOf(market, book, orderId), 0n);
    assert.match(await lastSubjectTo(buyer), /^Refund rejected: /);
    assert.match((await lastOf(buyer, "purchase.refund_rejected")).title, /^Your request for a refund of \$/);
    const order = await orderOf(buyer, orderId);
    assert.deepEqual([order.status, order.refundable.reasonIfNot], ["completed", null]);
    assert.deepEqual(typesOf(order).slice(2), ["refund.requested", "refund.rejected"]);
    assertStatus(await requestRefund(buyer, orderId), "pending");
  });

  test("an administrator can decide", async () => {
    const one = await createPendingRefund();
    const other = await createPendingRefund();
    assert.partialDeepStrictEqual((await admin.post(`/v1/refunds/${one.refundId}/approve`)).body.data, {
      status: "succeeded",
      decidedBy: "admin",
    });
    const rejected = await admin.post(`/v1/refunds/${other.refundId}/reject`, { reason: "Abuse" });
    assert.partialDeepStrictEqual(rejected.body.data, { status: "rejected", decidedBy: "admin" });
  });

  test("canceled by the buyer before a decision: the seller gets an email", async () => {
    const { buyer, refundId } = await createPendingRefund();
    const reply = await buyer.post(`/v1/refunds/${refundId}/cancel`);
    assertStatus(reply, "canceled");
    assert.match(await lastSubjectTo(seller), /^Refund request canceled/);
    assert.match((await lastOf(seller, "sale.refund_canceled")).title, /canceled the request for a refund/);
    for (const [who, deed, body] of [
      [seller, "approve", undefined],
      [seller, "reject", { reason: "Late" }],
      [buyer, "cancel", undefined],
    ] as const) {
      const details = assertError(
        await who.post(`/v1/refunds/${refundId}/${deed}`, body),
        409,
        "INVALID_STATE",
      );
      assert.deepEqual([details.current, details.allowed], ["canceled", ["pending"]]);
    }
  });

  test("no decision for seven days: approved automatically", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    await forward(7 * DAY_MS - 1);
    await approveOverdueRefunds(market.service.ctx);
    assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
    await forward(1);
    const late = await seller.post(`/v1/refunds/${refundId}/reject`, { reason: "Too late" });
    assertError(late, 409, "INVALID_STATE");
    await approveOverdueRefunds(market.service.ctx);
    const { body } = await buyer.get(`/v1/refunds/${refundId}`);
    assert.partialDeepStrictEqual(body.data, { status: "succeeded", decidedBy: "rules" });
    assert.equal((await orderOf(buyer, orderId)).status, "refunded");
  });
});

test("an overdue request while another refund takes the rest: waits without a warning", async () => {
  const { buyer, orderId, refundId } = await createPendingRefund();
  book.trouble = "slow";
  const adminRefund = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other" });
  assertStatus(adminRefund, "processing");
  await forward(7 * DAY_MS);
  const before = market.logs.length;
  for (let round = 0; round < 3; round++) await approveOverdueRefunds(market.service.ctx);
  const warned = market.logs.slice(before).filter((line) => line.includes("could not be carried on"));
  assert.deepEqual(warned, []);
  assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
  book.trouble = "none";
  const stored = book.refunds.get(adminRefund.body.data.id)!;
  book.refunds.set(adminRefund.body.data.id, {
    ...stored,
    outcome: { state: "failed", providerRefundId: "re_late", failureCode: "card_closed" },
  });
  await syncRefundFromProvider(market.service.ctx, adminRefund.body.data.id);
  await approveOverdueRefunds(market.service.ctx);
  assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "succeeded");
});

suite("POST /purchases/{id}/refund is refused", () => {
  test("after the refund window at the time of the purchase", async () => {
    const { buyer, orderId } = await createOrder();
    const until = new Date(market.clock.now.getTime() + 14 * DAY_MS).toISOString();
    assert.deepEqual((await orderOf(buyer, orderId)).refundable, {
      ...{ until, amount: 10, reasonIfNot: null },
      ...{ approval: "instant", approvalReason: "unused", instantFrom: null },
    });
    await (await market.createSession(seller.userId)).patch("/v1/account", { refundDays: 0 });
    await forward(14 * DAY_MS);
    assert.equal((await orderOf(buyer, orderId)).refundable.reasonIfNot, null);
    await forward(1);
    const details = assertError(await requestRefund(buyer, orderId), 422, "VALIDATION_ERROR", "orderId");
    assert.deepEqual([details.reason, details.until], ["refund_window_expired", until]);
    assert.deepEqual((await orderOf(buyer, orderId)).refundable, {
      until,
      amount: 0,
      reasonIfNot: "refund_window_expired",
      ...{ approval: null, approvalReason: null, instantFrom: null },
    });
    await (await market.createSession(seller.userId)).patch("/v1/account", { refundDays: 14 });
  });

  test("while another refund is open, with its id", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    const details = assertError(await requestRefund(buyer, orderId), 409, "CONFLICT");
    assert.equal(details.refundId, refundId);
    assert.equal((await orderOf(buyer, orderId)).refundable.reasonIfNot, "refund_open");
  });

  test("for a fully refunded order", async () => {
    const { buyer, orderId } = await createOrder();
    await refundAsAdmin(orderId);
    assertError(await requestRefund(buyer, orderId), 409, "ALREADY_REFUNDED");
  });

  test("for an order that is not completed", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller);
    const input = { productId, paymentMethodId: "pm_test_requires_action" };
    const { orderId } = (await buyer.post("/v1/purchases", input)).body.data;
    const details = assertError(await requestRefund(buyer, orderId), 409, "INVALID_STATE");
    assert.equal(details.current, "requires_action");
    assert.deepEqual((await orderOf(buyer, orderId)).refundable, {
      until: null,
      amount: 0,
      reasonIfNot: "not_completed",
      ...{ approval: null, approvalReason: null, instantFrom: null },
    });
  });

  test("for a free copy", async () => {
    const buyer = await market.createUser();
    await seller.post("/v1/discount-codes", { code: "FREE", percentOff: 100 });
    const input = { productId: await createProduct(seller), discountCode: "FREE" };
    const { orderId } = (await buyer.post("/v1/purchases", input)).body.data;
    assertError(await requestRefund(buyer, orderId), 422, "VALIDATION_ERROR", "orderId");
    assertError(await refundAsAdmin(orderId), 422, "VALIDATION_ERROR", "orderId");
    assert.equal((await orderOf(buyer, orderId)).refundable.reasonIfNot, "free_copy");
  });

  test("for a foreign, unknown or malformed order id", async () => {
    const { orderId } = await createOrder();
    const stranger = await market.createUser();
    for (const [who, id] of [
      [stranger, orderId],
      [seller, orderId],
      [stranger, toId("ord", newUuid(new Date()))],
      [stranger, "nonsense"],
    ] as const)
      assertError(await requestRefund(who, id), 404, "ORDER_NOT_FOUND");
  });

  test("without a reason, with a too long one, or with an unknown field", async () => {
    const { buyer, orderId } = await createOrder();
    assertError(await requestRefund(buyer, orderId, {}), 400, "INVALID_REQUEST", "reason");
    assertError(await requestRefund(buyer, orderId, { reason: "   " }), 400, "INVALID_REQUEST", "reason");
    assertError(
      await requestRefund(buyer, orderId, { reason: "x".repeat(201) }),
      400,
      "INVALID_REQUEST",
      "reason",
    );
    const details = { reason: "x", details: "x".repeat(2_001) };
    assertError(await requestRefund(buyer, orderId, details), 400, "INVALID_REQUEST", "details");
    assertError(
      await requestRefund(buyer, orderId, { reason: "x", amount: 5 }),
      400,
      "INVALID_REQUEST",
      "amount",
    );
  });
});

test("instant refunds: after 30, 90 and 180 days; earlier requests need the seller", async () => {
  const buyer = await market.createUser();
  const askAfter = async (days: number) => {
    await forward(days * DAY_MS - 1);
    const { orderId } = await createOrder({}, buyer);
    const early = await requestRefund(buyer, orderId);
    await buyer.post(`/v1/refunds/${early.body.data.id}/cancel`);
    await forward(1);
    return [early.body.data.status, (await requestRefund(buyer, orderId)).body.data.status];
  };
  const first = await requestRefund(buyer, (await createOrder({}, buyer)).orderId);
  assertStatus(first, "succeeded");
  assert.equal(first.body.data.approvalReason, "unused");
  assert.deepEqual(await askAfter(30), ["pending", "succeeded"]);
  assert.deepEqual(await askAfter(90), ["pending", "succeeded"]);
  assert.deepEqual(await askAfter(180), ["pending", "succeeded"]);
  assert.deepEqual(await askAfter(180), ["pending", "succeeded"]);
});

test("refundable and the refund: name the reason for instant or seller approval", async () => {
  const buyer = await market.createUser();
  const refundableOf = async (orderId: string) => {
    const { refundable } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    return [refundable.approval, refundable.approvalReason, refundable.instantFrom];
  };
  const unused = await createOrder({}, buyer);
  assert.deepEqual(await refundableOf(unused.orderId), ["instant", "unused", null]);
  const used = await createOrder({}, buyer);
  await buyer.get(`/v1/products/${used.productId}`);
  assert.deepEqual(await refundableOf(used.orderId), ["seller", "used", null]);
  assert.equal((await requestRefund(buyer, used.orderId)).body.data.approvalReason, "used");
  const { data: instant } = (await requestRefund(buyer, unused.orderId)).body;
  assert.deepEqual([instant.status, instant.approvalReason], ["succeeded", "unused"]);
  assert.deepEqual(await refundableOf(unused.orderId), [null, null, null]);
  await forward(20 * DAY_MS);
  const second = await createOrder({}, buyer);
  const instantFrom = new Date(Date.parse(instant.createdAt) + 30 * DAY_MS).toISOString();
  assert.deepEqual(await refundableOf(second.orderId), ["seller", "recent_instant_refund", instantFrom]);
  const { data } = (await requestRefund(buyer, second.orderId)).body;
  assert.deepEqual([data.status, data.approvalReason], ["pending", "recent_instant_refund"]);
});

test("concurrent requests for many orders of a buyer: one instant refund", async () => {
  const buyer = await market.createUser();
  const orders = [];
  for (let at = 0; at < runs(10, 3); at++) orders.push((await createOrder({}, buyer)).orderId);
  const replies = await Promise.all(orders.map((orderId) => requestRefund(buyer, orderId)));
  const statuses = replies.map(({ body }) => body.data.status).toSorted();
  assert.deepEqual(statuses, [...Array(orders.length - 1).fill("pending"), "succeeded"]);
});

suite("access to refunds", () => {
  test("buyer, seller and administrators can read; others get 404", async () => {
    const { buyer, refundId, orderId } = await createPendingRefund();
    for (const who of [buyer, seller, admin])
      assert.equal((await who.get(`/v1/refunds/${refundId}`)).body.data.id, refundId);
    const stranger = await market.createUser();
    for (const id of [refundId, toId("refund", newUuid(new Date())), orderId, "nonsense"]) {
      const path = `/v1/refunds/${id}`;
      assertError(await stranger.get(path), 404, "REFUND_NOT_FOUND");
      assertError(await stranger.post(`${path}/approve`), 404, "REFUND_NOT_FOUND");
      assertError(await stranger.post(`${path}/reject`, { reason: "No" }), 404, "REFUND_NOT_FOUND");
      assertError(await stranger.post(`${path}/cancel`), 404, "REFUND_NOT_FOUND");
    }
  });

  test("the other side can neither decide nor cancel", async () => {
    const { buyer, refundId } = await createPendingRefund();
    const path = `/v1/refunds/${refundId}`;
    assert.equal(assertError(await buyer.post(`${path}/approve`), 403, "UNAUTHORIZED").required, "seller");
    assertError(await buyer.post(`${path}/reject`, { reason: "No" }), 403, "UNAUTHORIZED");
    assert.equal(assertError(await seller.post(`${path}/cancel`), 403, "UNAUTHORIZED").required, "buyer");
    assertError(await admin.post(`${path}/cancel`), 403, "UNAUTHORIZED");
    assertError(await seller.post(`${path}/reject`, {}), 400, "INVALID_REQUEST", "reason");
    assertStatus(await buyer.get(path), "pending");
  });
});

suite("lists of refunds", () => {
  test("GET /refunds: both roles or one of them, newest first", async () => {
    const both = await market.createUser({ name: "Both" });
    const theirs = await createProduct(both, { price: 3 });
    const customer = await market.createUser();
    const sold = await buyProduct(customer, theirs);
    const bought = await createOrder({}, both);
    const one = (await requestRefund(customer, sold)).body.data.id;
    const two = (await requestRefund(both, bought.orderId)).body.data.id;
    const idsOf = async (query: string) =>
      (await both.get(`/v1/refunds?${query}`)).body.data.map(({ id }: { id: string }) => id);
    assert.deepEqual(await idsOf(""), [two, one]);
    assert.deepEqual(await idsOf("role=buyer"), [two]);
    assert.deepEqual(await idsOf("role=seller"), [one]);
    assert.deepEqual(await idsOf(`orderId=${sold}`), [one]);
    assert.deepEqual(await idsOf("status=succeeded&limit=1&page=2"), [one]);
    assert.deepEqual(await idsOf("status=failed"), []);
    assert.deepEqual(await idsOf("orderId=nonsense"), []);
    assert.deepEqual(await idsOf(`productId=${theirs}`), [one]);
    assert.deepEqual(await idsOf("productId=nonsense"), []);
    assertError(await both.get("/v1/refunds?role=admin"), 400, "INVALID_REQUEST", "role");
    assertError(await both.get("/v1/refunds?status=lost"), 400, "INVALID_REQUEST", "status");
    assertError(await both.get("/v1/refunds?buyer=x"), 400, "INVALID_REQUEST", "buyer");
  });

  test("GET /admin/refunds: all refunds with buyer and seller", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    const { data, meta } = (await admin.get(`/v1/admin/refunds?orderId=${orderId}`)).body;
    assert.equal(meta.total, 1);
    assert.partialDeepStrictEqual(data[0], {
      id: refundId,
      buyer: { id: toId("usr", buyer.userId), name: "Buyer" },
      seller: { id: toId("usr", seller.userId), name: "Seller" },
    });
    assert.ok((await admin.get("/v1/admin/refunds?status=pending")).body.meta.total >= 1);
    assertError(await seller.get("/v1/admin/refunds"), 403, "UNAUTHORIZED");
  });
});

suite("an administrator's refund", () => {
  test("a partial refund at any time: the buyer keeps the product", async () => {
    const { buyer, orderId } = await createUsedOrder({ price: 10 });
    await forward(400 * DAY_MS);
    const reply = await refundAsAdmin(orderId, { amount: 2.5, reason: "not_working" });
    assert.equal(reply.status, 201, reply.text);
    assert.partialDeepStrictEqual(reply.body.data, {
      status: "succeeded",
      amount: 2.5,
      requestedBy: "admin",
      decidedBy: "admin",
    });
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "partially_refunded",
      refundedAmount: 2.5,
      entitlement: { status: "active" },
    });
    assert.deepEqual(await accountsOf(market, orderId), {
      platform_revenue: 75,
      provider_clearing: -750,
      seller: 675,
    });
    assertStatus(await refundAsAdmin(orderId), "succeeded");
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), { status: "refunded", refundedAmount: 10 });
    assert.deepEqual(await accountsOf(market, orderId), {});
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
  });

  test("after a partial refund: the rest can be requested", async () => {
    const { buyer, orderId } = await createOrder({ price: 10 });
    await refundAsAdmin(orderId, { amount: 4, reason: "duplicate" });
    assert.partialDeepStrictEqual((await requestRefund(buyer, orderId)).body.data, {
      status: "succeeded",
      amount: 6,
    });
  });

  test("of the whole rest: cancels a pending request", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    await refundAsAdmin(orderId, { amount: 1, reason: "other" });
    assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
    await refundAsAdmin(orderId);
    const { data } = (await buyer.get(`/v1/refunds/${refundId}`)).body;
    assert.deepEqual(
      [data.status, data.decisionNote],
      ["canceled", "The purchase is already fully refunded."],
    );
  });

  test("while it is processing: the same amount cannot be approved", async () => {
    const { buyer, orderId, refundId } = await createPendingRefund();
    book.trouble = "slow";
    assertStatus(await refundAsAdmin(orderId), "processing");
    book.trouble = "none";
    assertError(await seller.post(`/v1/refunds/${refundId}/approve`), 409, "CONFLICT");
    assertError(await refundAsAdmin(orderId), 409, "CONFLICT");
    await forward(7 * DAY_MS);
    await approveOverdueRefunds(market.service.ctx);
    assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
    assert.equal((await orderOf(buyer, orderId)).entitlement.status, "held");
  });

  test("before an approval: the request refunds the rest", async () => {
    const { orderId, refundId } = await createPendingRefund();
    await refundAsAdmin(orderId, { amount: 1, reason: "other" });
    const { data } = (await seller.post(`/v1/refunds/${refundId}/approve`)).body;
    assert.deepEqual([data.status, data.amount], ["succeeded", 9]);
  });

  test("an invalid amount, a missing reason, an unknown order or a missing role: refused", async () => {
    const { orderId } = await createOrder({ price: 10 });
    const reason = "other";
    assertError(await refundAsAdmin(orderId, { amount: 10.01, reason }), 422, "VALIDATION_ERROR", "amount");
    assertError(await refundAsAdmin(orderId, { amount: 0.001, reason }), 400, "INVALID_REQUEST", "amount");
    assertError(await refundAsAdmin(orderId, { amount: 0, reason }), 400, "INVALID_REQUEST", "amount");
    assertError(await refundAsAdmin(orderId, { amount: -1, reason }), 400, "INVALID_REQUEST", "amount");
    assertError(await refundAsAdmin(orderId, {}), 400, "INVALID_REQUEST", "reason");
    for (const id of ["nonsense", toId("ord", newUuid(new Date()))])
      assertError(await refundAsAdmin(id), 404, "ORDER_NOT_FOUND");
    await refundAsAdmin(orderId);
    assertError(await refundAsAdmin(orderId), 409, "ALREADY_REFUNDED");
    assertError(await seller.post(`/v1/admin/orders/${orderId}/refund`, { reason }), 403, "UNAUTHORIZED");
  });

  test("JPY and KWD: refunded to the last minor unit", async () => {
    for (const [currency, price, part, left] of [
      ["JPY", 1_001, 333, 668],
      ["KWD", 1.001, 0.333, 0.668],
    ] as const) {
      const { buyer, orderId } = await createOrder({ currency, price });
      await refundAsAdmin(orderId, { amount: part, reason: "other" });
      assert.equal((await orderOf(buyer, orderId)).refundable.amount, left);
      await refundAsAdmin(orderId);
      assert.equal((await orderOf(buyer, orderId)).refundedAmount, price);
      assert.deepEqual(await accountsOf(market, orderId), {});
    }
  });
});

suite("a refund that the provider refuses", () => {
  test("the buyer keeps the product, both sides get an email, and a new request is possible", async () => {
    const { buyer, orderId } = await createOrder({ title: "Stuck" });
    book.trouble = "fails";
    const reply = await requestRefund(buyer, orderId);
    assert.equal(reply.status, 201);
    assert.partialDeepStrictEqual(reply.body.data, { status: "failed", failureCode: "card_closed" });
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "completed",
      refundedAmount: 0,
      entitlement: { status: "active" },
      refundable: { amount: 10, reasonIfNot: null },
    });
    for (const who of [buyer, seller]) assert.equal(await lastSubjectTo(who), "Refund failed: Stuck");
    assert.match(
      (await lastOf(buyer, "purchase.refund_failed")).title,
      /^The refund of \$.* for Stuck failed$/,
    );
    assert.match((await lastOf(seller, "sale.refund_failed")).title, /^A refund of \$.* for Stuck failed$/);
    assert.deepEqual((await buyer.get("/v1/events?type=purchase.refunded")).body.data, []);
    book.trouble = "none";
    const again = await requestRefund(buyer, orderId);
    assertStatus(again, "succeeded");
    assert.notEqual(again.body.data.id, reply.body.data.id);
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
  });
});

suite("POST /admin/products/{id}/refund-buyers", () => {
  const path = (productId: string) => `/v1/admin/products/${productId}/refund-buyers`;
  const requestFor = async () => {
    const { rows } = await market.query(
      "select data from pgboss.job where name = 'refund-buyers' order by created_on desc limit 1",
    );
    return rows[0].data;
  };
  const never = new AbortController().signal;

  test("refunds the buyers of the last 90 days; an interrupted job continues", async () => {
    const productId = await createProduct(seller, { price: 10 });
    const old = await buyProduct(await market.createUser(), productId);
    await forward(DAY_MS);
    const orders = [];
    for (let at = 0; at < 5; at++) orders.push(await buyProduct(await market.createUser(), productId));
    await forward(89 * DAY_MS);
    await refundAsAdmin(orders[0]!, { amount: 1, reason: "other" });
    await forward(60_000);
    await admin.post(`/v1/admin/products/${productId}/suspend`, { reasonCode: "malicious" });
    const reply = await admin.post(path(productId));
    assert.equal(reply.status, 200, reply.text);
    const since = new Date(market.clock.now.getTime() - 90 * DAY_MS).toISOString();
    assert.deepEqual(reply.body.data, { productId, orders: 5, since });
    const interrupted = new AbortController();
    const input = await requestFor();
    book.asked = 0;
    const refund = market.service.ctx.integrations.payments.refund;
    market.service.ctx.integrations.payments.refund = async (request) => {
      if (book.asked === 2) interrupted.abort();
      return refund(request);
    };
    await assert.rejects(runRefundBuyersJob(market.service.ctx, input, interrupted.signal));
    market.service.ctx.integrations.payments.refund = refund;
    assert.equal(book.asked, 3);
    await runRefundBuyersJob(market.service.ctx, input, never);
    await runRefundBuyersJob(market.service.ctx, input, never);
    const { rows } = await market.query(
      "select id, status, refunded_minor from orders where product_id = $1",
      [toUuid("prod", productId)],
    );
    const stands = new Map(
      rows.map(({ id, status, refunded_minor }) => [toId("ord", id), [status, refunded_minor]]),
    );
    assert.deepEqual(stands.get(old), ["completed", 0]);
    for (const orderId of orders) {
      assert.deepEqual(stands.get(orderId), ["refunded", 1_000]);
      assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
    }
  });

  test("a usable product, an unknown product or a missing role: refused", async () => {
    const { productId } = await createOrder({ title: "Suspended" });
    assertError(await admin.post(path(productId)), 409, "INVALID_STATE");
    await admin.post(`/v1/admin/products/${productId}/suspend`, { reasonCode: "spam" });
    assertError(await admin.post(path(productId)), 409, "INVALID_STATE");
    for (const id of ["nonsense", toId("prod", newUuid(new Date()))])
      assertError(await admin.post(path(id)), 404, "PRODUCT_NOT_FOUND");
    assertError(await seller.post(path(productId)), 403, "UNAUTHORIZED");
  });
});

test("DELETE /account with an open refund: refused", async () => {
  const { buyer } = await createPendingRefund();
  const session = await market.createSession(buyer.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const reply = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(assertError(reply, 409, "INVALID_STATE").openRefunds, 1);
});
