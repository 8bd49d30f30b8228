import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { buyProduct, createProduct, type ProductInput } from "../../../test/factories.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { accountsOf, createFakeRefunds, refundedMinorOf, withRefunds } from "../../../test/refunds.ts";
import { run } from "../../../test/runs.ts";
import { uploadFile } from "../../../test/uploads.ts";
import {
  holdEntitlement,
  lockEntitlement,
  resumeEntitlement,
} from "../../catalog/entitlements/entitlements.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { runRefundBuyersJob } from "./refund-buyers.ts";
import { approveOverdueRefunds, reconcileRefunds, syncRefundFromProvider } from "./refund-submission.ts";

const DAY_MS = 86_400_000;

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

/** Moves the clock; a session of the administrator's lasts no longer than any. */
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

async function hasOrder(input: ProductInput = {}, buyer?: Client): Promise<Bought> {
  const who = buyer ?? (await market.createUser({ name: "Buyer" }));
  const productId = await createProduct(seller, { price: 10, ...input });
  return { buyer: who, productId, orderId: await buyProduct(who, productId) };
}

/** A purchase whose content the buyer has seen. */
async function hasUsed(input: ProductInput = {}): Promise<Bought> {
  const bought = await hasOrder(input);
  await bought.buyer.get(`/v1/products/${bought.productId}`);
  return bought;
}

const ask = (buyer: Client, orderId: string, input: object = { reason: "not_working" }) =>
  buyer.post(`/v1/purchases/${orderId}/refund`, input);
const give = (orderId: string, input: object = { reason: "not_working" }) =>
  admin.post(`/v1/admin/orders/${orderId}/refund`, input);
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const typesOf = (order: { events: { type: string }[] }) => order.events.map(({ type }) => type);

async function hasPending(): Promise<Bought & { refundId: string }> {
  const bought = await hasUsed();
  const { body, text } = await ask(bought.buyer, bought.orderId);
  assert.equal(body.data?.status, "pending", text);
  return { ...bought, refundId: body.data.id };
}

function assertStatus(reply: Reply, status: string) {
  assert.equal(reply.body.data?.status, status, reply.text);
}

suite("what was never used", () => {
  test("comes back at once, whole, and answers 201", async () => {
    const { buyer, orderId, productId } = await hasOrder({ title: "Unseen" });
    const reply = await ask(buyer, orderId, { reason: "accidental", details: "The wrong one." });
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

  test("leaves nothing on any account of the order", async () => {
    const { buyer, orderId } = await hasOrder({ price: 19.99 });
    assert.deepEqual(await accountsOf(market, orderId), {
      platform_revenue: 200,
      provider_clearing: -1999,
      seller: 1799,
    });
    await ask(buyer, orderId);
    assert.deepEqual(await accountsOf(market, orderId), {});
  });

  test("is told to both sides, by event and by email, and written to the audit log", async () => {
    const { buyer, orderId } = await hasOrder({ title: "Told" });
    const { id } = (await ask(buyer, orderId, { reason: "My own words" })).body.data;
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

  test("shows on the receipt, whose links go on working", async () => {
    const { buyer, orderId } = await hasOrder();
    await ask(buyer, orderId);
    const { receipt } = await orderOf(buyer, orderId);
    assert.match(await (await fetch(receipt.url)).text(), /Refunded on 15 June 2026<\/dt><dd>−10\.00 USD/);
    assert.equal((await fetch(receipt.pdf)).status, 200);
  });

  test("is a sale no more, and its review leaves the average", async () => {
    const { buyer, orderId, productId } = await hasOrder();
    const other = await market.createUser();
    await buyProduct(other, productId);
    await other.post(`/v1/products/${productId}/reviews`, { rating: 2 });
    await buyer.post(`/v1/products/${productId}/reviews`, { rating: 5 });
    await ask(buyer, orderId);
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

  test("may be bought again, and then the old review counts again", async () => {
    const { buyer, orderId, productId } = await hasOrder();
    await buyer.post(`/v1/products/${productId}/reviews`, { rating: 4 });
    await ask(buyer, orderId);
    const again = await buyProduct(buyer, productId);
    assert.notEqual(again, orderId);
    const { stats } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.partialDeepStrictEqual(stats, { purchases: 1, rating: 4, reviews: 1 });
    assert.equal((await orderOf(buyer, again)).entitlement.status, "active");
  });
});

suite("the use of what is given back", () => {
  test("stops at once: signed links, files, content, runs and reviews", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller, { price: 10 });
    await uploadFile(seller, productId);
    const orderId = await buyProduct(buyer, productId);
    const { downloadUrl } = await orderOf(buyer, orderId);
    const { files } = (await buyer.get(`/v1/products/${productId}`)).body.data;
    assert.equal((await fetch(downloadUrl)).status, 200);
    assert.equal((await fetch(files[0].url)).status, 200);
    assertStatus(await give(orderId), "succeeded");
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

  test("is held while the money is on its way, and comes back when it does not arrive", async () => {
    const { buyer, orderId, productId } = await hasOrder();
    const { downloadUrl } = await orderOf(buyer, orderId);
    book.trouble = "slow";
    const { id } = (await ask(buyer, orderId)).body.data;
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "completed",
      downloadUrl: null,
      entitlement: { status: "held" },
    });
    assertError(await buyer.get(downloadUrl), 403, "UNAUTHORIZED");
    assert.equal((await buyer.get(`/v1/products/${productId}`)).body.data.content, null);
    assertError(await buyer.post("/v1/purchases", { productId }), 409, "ALREADY_PURCHASED");
    const kept = book.refunds.get(id)!;
    book.refunds.set(id, {
      ...kept,
      outcome: { state: "failed", providerRefundId: "re_1", failureCode: "card_closed" },
    });
    await forward(61_000);
    await reconcileRefunds(market.service.ctx);
    assert.equal((await orderOf(buyer, orderId)).entitlement.status, "active");
    assert.equal((await fetch(downloadUrl)).status, 200);
  });

  test("is refused to whoever began to look before their refund was approved, and is done after it", async () => {
    const { buyer, orderId, productId } = await hasOrder();
    const id = toUuid("ord", orderId)!;
    const { ctx } = market.service;
    const look = await ctx.db.transaction().execute(async (tx) => {
      await lockEntitlement(tx, id);
      const begun = buyer.get(`/v1/products/${productId}`);
      await waitForBlockedStatements(market);
      await holdEntitlement(tx, id);
      return [begun];
    });
    assertError(await look[0]!, 403, "UNAUTHORIZED");
    await ctx.db.transaction().execute((tx) => resumeEntitlement(tx, id));
  });

  test("and its refund never both happen, of twenty looks and a request at once", async () => {
    for (let round = 0; round < 5; round++) {
      const { buyer, orderId, productId } = await hasOrder({}, await market.createUser());
      const looks = Array.from({ length: 20 }, () => buyer.get(`/v1/products/${productId}`));
      const [refund, ...seen] = await Promise.all([ask(buyer, orderId), ...looks]);
      const wasSeen = seen.some(({ body }) => body.data?.content);
      assert.equal(refund!.body.data.status, wasSeen ? "pending" : "succeeded", "money, or content");
    }
  });
});

suite("what was used", () => {
  for (const [name, use] of Object.entries({
    revealed: ({ buyer, productId }: Bought) => buyer.get(`/v1/products/${productId}`),
    downloaded: async ({ buyer, orderId }: Bought) =>
      buyer.get((await buyer.get(`/v1/purchases/${orderId}`)).body.data.downloadUrl),
  })) {
    test(`waits for its seller once it is ${name}, for seven days`, async () => {
      const bought = await hasOrder({ title: "Looked at" });
      assert.equal((await use(bought)).status, 200);
      const reply = await ask(bought.buyer, bought.orderId, { reason: "not_as_described" });
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

  test("comes back when the seller approves", async () => {
    const { buyer, orderId, refundId } = await hasPending();
    const reply = await seller.post(`/v1/refunds/${refundId}/approve`);
    assert.equal(reply.status, 200);
    assert.partialDeepStrictEqual(reply.body.data, { status: "succeeded", decidedBy: "seller" });
    assert.equal((await orderOf(buyer, orderId)).status, "refunded");
    assert.deepEqual(await accountsOf(market, orderId), {});
  });

  test("stays paid when the seller rejects it, and the buyer is told why", async () => {
    const { buyer, orderId, refundId } = await hasPending();
    const reply = await seller.post(`/v1/refunds/${refundId}/reject`, { reason: "It works; see the guide." });
    assert.partialDeepStrictEqual(reply.body.data, {
      status: "rejected",
      decidedBy: "seller",
      decisionNote: "It works; see the guide.",
      completedAt: market.clock.now.toISOString(),
    });
    assert.equal(await refundedMinorOf(market, book, orderId), 0n);
    assert.match(await lastSubjectTo(buyer), /^Refund rejected: /);
    const order = await orderOf(buyer, orderId);
    assert.deepEqual([order.status, order.refundable.reasonIfNot], ["completed", null]);
    assert.deepEqual(typesOf(order).slice(2), ["refund.requested", "refund.rejected"]);
    assertStatus(await ask(buyer, orderId), "pending");
  });

  test("is decided by an administrator as well", async () => {
    const one = await hasPending();
    const other = await hasPending();
    assert.partialDeepStrictEqual((await admin.post(`/v1/refunds/${one.refundId}/approve`)).body.data, {
      status: "succeeded",
      decidedBy: "admin",
    });
    const rejected = await admin.post(`/v1/refunds/${other.refundId}/reject`, { reason: "Abuse" });
    assert.partialDeepStrictEqual(rejected.body.data, { status: "rejected", decidedBy: "admin" });
  });

  test("is taken back by its buyer while nobody has decided, and the seller is told", async () => {
    const { buyer, refundId } = await hasPending();
    const reply = await buyer.post(`/v1/refunds/${refundId}/cancel`);
    assertStatus(reply, "canceled");
    assert.match(await lastSubjectTo(seller), /^Refund request canceled/);
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

  test("is approved by itself after seven days, not a moment before", async () => {
    const { buyer, orderId, refundId } = await hasPending();
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

test("an overdue request of what is on its way by another refund waits for that, without a warning", async () => {
  const { buyer, orderId, refundId } = await hasPending();
  book.trouble = "slow";
  const given = await admin.post(`/v1/admin/orders/${orderId}/refund`, { reason: "other" });
  assertStatus(given, "processing");
  await forward(7 * DAY_MS);
  const before = market.logs.length;
  for (let round = 0; round < 3; round++) await approveOverdueRefunds(market.service.ctx);
  const warned = market.logs.slice(before).filter((line) => line.includes("could not be carried on"));
  assert.deepEqual(warned, []);
  assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
  book.trouble = "none";
  const kept = book.refunds.get(given.body.data.id)!;
  book.refunds.set(given.body.data.id, {
    ...kept,
    outcome: { state: "failed", providerRefundId: "re_late", failureCode: "card_closed" },
  });
  await syncRefundFromProvider(market.service.ctx, given.body.data.id);
  await approveOverdueRefunds(market.service.ctx);
  assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "succeeded");
});

suite("a request is refused", () => {
  test("after the window that was shown at the purchase, whatever the policy is now", async () => {
    const { buyer, orderId } = await hasOrder();
    const until = new Date(market.clock.now.getTime() + 14 * DAY_MS).toISOString();
    assert.deepEqual((await orderOf(buyer, orderId)).refundable, {
      ...{ until, amount: 10, reasonIfNot: null },
      ...{ approval: "instant", approvalReason: "unused", instantFrom: null },
    });
    await (await market.createSession(seller.userId)).patch("/v1/account", { refundDays: 0 });
    await forward(14 * DAY_MS);
    assert.equal((await orderOf(buyer, orderId)).refundable.reasonIfNot, null);
    await forward(1);
    const details = assertError(await ask(buyer, orderId), 422, "VALIDATION_ERROR", "orderId");
    assert.deepEqual([details.reason, details.until], ["refund_window_expired", until]);
    assert.deepEqual((await orderOf(buyer, orderId)).refundable, {
      until,
      amount: 0,
      reasonIfNot: "refund_window_expired",
      ...{ approval: null, approvalReason: null, instantFrom: null },
    });
    await (await market.createSession(seller.userId)).patch("/v1/account", { refundDays: 14 });
  });

  test("while another one is open, naming it", async () => {
    const { buyer, orderId, refundId } = await hasPending();
    const details = assertError(await ask(buyer, orderId), 409, "CONFLICT");
    assert.equal(details.refundId, refundId);
    assert.equal((await orderOf(buyer, orderId)).refundable.reasonIfNot, "refund_open");
  });

  test("of what is refunded whole", async () => {
    const { buyer, orderId } = await hasOrder();
    await give(orderId);
    assertError(await ask(buyer, orderId), 409, "ALREADY_REFUNDED");
  });

  test("of what was not completed", async () => {
    const buyer = await market.createUser();
    const productId = await createProduct(seller);
    const input = { productId, paymentMethodId: "pm_test_requires_action" };
    const { orderId } = (await buyer.post("/v1/purchases", input)).body.data;
    const details = assertError(await ask(buyer, orderId), 409, "INVALID_STATE");
    assert.equal(details.current, "requires_action");
    assert.deepEqual((await orderOf(buyer, orderId)).refundable, {
      until: null,
      amount: 0,
      reasonIfNot: "not_completed",
      ...{ approval: null, approvalReason: null, instantFrom: null },
    });
  });

  test("of a free copy", async () => {
    const buyer = await market.createUser();
    await seller.post("/v1/discount-codes", { code: "FREE", percentOff: 100 });
    const input = { productId: await createProduct(seller), discountCode: "FREE" };
    const { orderId } = (await buyer.post("/v1/purchases", input)).body.data;
    assertError(await ask(buyer, orderId), 422, "VALIDATION_ERROR", "orderId");
    assertError(await give(orderId), 422, "VALIDATION_ERROR", "orderId");
    assert.equal((await orderOf(buyer, orderId)).refundable.reasonIfNot, "free_copy");
  });

  test("of somebody else's order, of none, and of an id of any shape", async () => {
    const { orderId } = await hasOrder();
    const stranger = await market.createUser();
    for (const [who, id] of [
      [stranger, orderId],
      [seller, orderId],
      [stranger, toId("ord", newUuid(new Date()))],
      [stranger, "nonsense"],
    ] as const)
      assertError(await ask(who, id), 404, "ORDER_NOT_FOUND");
  });

  test("without a reason, with too long a one, or with a field that it has not", async () => {
    const { buyer, orderId } = await hasOrder();
    assertError(await ask(buyer, orderId, {}), 400, "INVALID_REQUEST", "reason");
    assertError(await ask(buyer, orderId, { reason: "   " }), 400, "INVALID_REQUEST", "reason");
    assertError(await ask(buyer, orderId, { reason: "x".repeat(201) }), 400, "INVALID_REQUEST", "reason");
    const details = { reason: "x", details: "x".repeat(2_001) };
    assertError(await ask(buyer, orderId, details), 400, "INVALID_REQUEST", "details");
    assertError(await ask(buyer, orderId, { reason: "x", amount: 5 }), 400, "INVALID_REQUEST", "amount");
  });
});

test("a second automatic refund comes after 30 days, a third after 90 more, then 180; sooner the seller decides", async () => {
  const buyer = await market.createUser();
  const askAfter = async (days: number) => {
    await forward(days * DAY_MS - 1);
    const { orderId } = await hasOrder({}, buyer);
    const early = await ask(buyer, orderId);
    await buyer.post(`/v1/refunds/${early.body.data.id}/cancel`);
    await forward(1);
    return [early.body.data.status, (await ask(buyer, orderId)).body.data.status];
  };
  const first = await ask(buyer, (await hasOrder({}, buyer)).orderId);
  assertStatus(first, "succeeded");
  assert.equal(first.body.data.approvalReason, "unused");
  assert.deepEqual(await askAfter(30), ["pending", "succeeded"]);
  assert.deepEqual(await askAfter(90), ["pending", "succeeded"]);
  assert.deepEqual(await askAfter(180), ["pending", "succeeded"]);
  assert.deepEqual(await askAfter(180), ["pending", "succeeded"]);
});

test("refundable and the refund name why it is approved at once, or why the seller decides", async () => {
  const buyer = await market.createUser();
  const refundableOf = async (orderId: string) => {
    const { refundable } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    return [refundable.approval, refundable.approvalReason, refundable.instantFrom];
  };
  const unused = await hasOrder({}, buyer);
  assert.deepEqual(await refundableOf(unused.orderId), ["instant", "unused", null]);
  const used = await hasOrder({}, buyer);
  await buyer.get(`/v1/products/${used.productId}`);
  assert.deepEqual(await refundableOf(used.orderId), ["seller", "used", null]);
  assert.equal((await ask(buyer, used.orderId)).body.data.approvalReason, "used");
  const { data: instant } = (await ask(buyer, unused.orderId)).body;
  assert.deepEqual([instant.status, instant.approvalReason], ["succeeded", "unused"]);
  assert.deepEqual(await refundableOf(unused.orderId), [null, null, null]);
  await forward(20 * DAY_MS);
  const second = await hasOrder({}, buyer);
  const instantFrom = new Date(Date.parse(instant.createdAt) + 30 * DAY_MS).toISOString();
  assert.deepEqual(await refundableOf(second.orderId), ["seller", "recent_instant_refund", instantFrom]);
  const { data } = (await ask(buyer, second.orderId)).body;
  assert.deepEqual([data.status, data.approvalReason], ["pending", "recent_instant_refund"]);
});

test("of many purchases that one buyer gives back at once, one is automatic", async () => {
  const buyer = await market.createUser();
  const orders = [];
  for (let at = 0; at < 10; at++) orders.push((await hasOrder({}, buyer)).orderId);
  const replies = await Promise.all(orders.map((orderId) => ask(buyer, orderId)));
  const statuses = replies.map(({ body }) => body.data.status).toSorted();
  assert.deepEqual(statuses, [...Array(9).fill("pending"), "succeeded"]);
});

suite("who may read and decide", () => {
  test("is its buyer, its seller and administrators; to others it is not there", async () => {
    const { buyer, refundId, orderId } = await hasPending();
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

  test("is not the other side: buyers decide nothing, sellers take nothing back", async () => {
    const { buyer, refundId } = await hasPending();
    const path = `/v1/refunds/${refundId}`;
    assert.equal(assertError(await buyer.post(`${path}/approve`), 403, "UNAUTHORIZED").required, "seller");
    assertError(await buyer.post(`${path}/reject`, { reason: "No" }), 403, "UNAUTHORIZED");
    assert.equal(assertError(await seller.post(`${path}/cancel`), 403, "UNAUTHORIZED").required, "buyer");
    assertError(await admin.post(`${path}/cancel`), 403, "UNAUTHORIZED");
    assertError(await seller.post(`${path}/reject`, {}), 400, "INVALID_REQUEST", "reason");
    assertStatus(await buyer.get(path), "pending");
  });
});

suite("the lists of refunds", () => {
  test("show both sides of the caller, or one of them, newest first", async () => {
    const both = await market.createUser({ name: "Both" });
    const theirs = await createProduct(both, { price: 3 });
    const customer = await market.createUser();
    const sold = await buyProduct(customer, theirs);
    const bought = await hasOrder({}, both);
    const one = (await ask(customer, sold)).body.data.id;
    const two = (await ask(both, bought.orderId)).body.data.id;
    const idsOf = async (query: string) =>
      (await both.get(`/v1/refunds?${query}`)).body.data.map(({ id }: { id: string }) => id);
    assert.deepEqual(await idsOf(""), [two, one]);
    assert.deepEqual(await idsOf("role=buyer"), [two]);
    assert.deepEqual(await idsOf("role=seller"), [one]);
    assert.deepEqual(await idsOf(`orderId=${sold}`), [one]);
    assert.deepEqual(await idsOf("status=succeeded&limit=1&page=2"), [one]);
    assert.deepEqual(await idsOf("status=failed"), []);
    assert.deepEqual(await idsOf("orderId=nonsense"), []);
    assertError(await both.get("/v1/refunds?role=admin"), 400, "INVALID_REQUEST", "role");
    assertError(await both.get("/v1/refunds?status=lost"), 400, "INVALID_REQUEST", "status");
    assertError(await both.get("/v1/refunds?buyer=x"), 400, "INVALID_REQUEST", "buyer");
  });

  test("show administrators everybody's, with both sides", async () => {
    const { buyer, orderId, refundId } = await hasPending();
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
  test("gives a part back at any time, and leaves the product", async () => {
    const { buyer, orderId } = await hasUsed({ price: 10 });
    await forward(400 * DAY_MS);
    const reply = await give(orderId, { amount: 2.5, reason: "not_working" });
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
    assertStatus(await give(orderId), "succeeded");
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), { status: "refunded", refundedAmount: 10 });
    assert.deepEqual(await accountsOf(market, orderId), {});
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
  });

  test("leaves the rest to be asked for, within the window", async () => {
    const { buyer, orderId } = await hasOrder({ price: 10 });
    await give(orderId, { amount: 4, reason: "duplicate" });
    assert.partialDeepStrictEqual((await ask(buyer, orderId)).body.data, { status: "succeeded", amount: 6 });
  });

  test("ends a request that waits, when nothing remains", async () => {
    const { buyer, orderId, refundId } = await hasPending();
    await give(orderId, { amount: 1, reason: "other" });
    assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
    await give(orderId);
    const { data } = (await buyer.get(`/v1/refunds/${refundId}`)).body;
    assert.deepEqual([data.status, data.decisionNote], ["canceled", "All of it is given back already."]);
  });

  test("that is on its way is waited for: nobody approves the same money again", async () => {
    const { buyer, orderId, refundId } = await hasPending();
    book.trouble = "slow";
    assertStatus(await give(orderId), "processing");
    book.trouble = "none";
    assertError(await seller.post(`/v1/refunds/${refundId}/approve`), 409, "CONFLICT");
    assertError(await give(orderId), 409, "CONFLICT");
    await forward(7 * DAY_MS);
    await approveOverdueRefunds(market.service.ctx);
    assertStatus(await buyer.get(`/v1/refunds/${refundId}`), "pending");
    assert.equal((await orderOf(buyer, orderId)).entitlement.status, "held");
  });

  test("approved after a part, a request gives what remains", async () => {
    const { orderId, refundId } = await hasPending();
    await give(orderId, { amount: 1, reason: "other" });
    const { data } = (await seller.post(`/v1/refunds/${refundId}/approve`)).body;
    assert.deepEqual([data.status, data.amount], ["succeeded", 9]);
  });

  test("is refused above what remains, in fractions of the least unit, below one, of none and of nobody", async () => {
    const { orderId } = await hasOrder({ price: 10 });
    const reason = "other";
    assertError(await give(orderId, { amount: 10.01, reason }), 422, "VALIDATION_ERROR", "amount");
    assertError(await give(orderId, { amount: 0.001, reason }), 400, "INVALID_REQUEST", "amount");
    assertError(await give(orderId, { amount: 0, reason }), 400, "INVALID_REQUEST", "amount");
    assertError(await give(orderId, { amount: -1, reason }), 400, "INVALID_REQUEST", "amount");
    assertError(await give(orderId, {}), 400, "INVALID_REQUEST", "reason");
    for (const id of ["nonsense", toId("ord", newUuid(new Date()))])
      assertError(await give(id), 404, "ORDER_NOT_FOUND");
    await give(orderId);
    assertError(await give(orderId), 409, "ALREADY_REFUNDED");
    assertError(await seller.post(`/v1/admin/orders/${orderId}/refund`, { reason }), 403, "UNAUTHORIZED");
  });

  test("is counted in the currency of the order, in JPY and KWD to the last unit", async () => {
    for (const [currency, price, part, left] of [
      ["JPY", 1_001, 333, 668],
      ["KWD", 1.001, 0.333, 0.668],
    ] as const) {
      const { buyer, orderId } = await hasOrder({ currency, price });
      await give(orderId, { amount: part, reason: "other" });
      assert.equal((await orderOf(buyer, orderId)).refundable.amount, left);
      await give(orderId);
      assert.equal((await orderOf(buyer, orderId)).refundedAmount, price);
      assert.deepEqual(await accountsOf(market, orderId), {});
    }
  });
});

suite("what the provider cannot give back", () => {
  test("leaves the product with its buyer, both are told, and it may be asked for again", async () => {
    const { buyer, orderId } = await hasOrder({ title: "Stuck" });
    book.trouble = "fails";
    const reply = await ask(buyer, orderId);
    assert.equal(reply.status, 201);
    assert.partialDeepStrictEqual(reply.body.data, { status: "failed", failureCode: "card_closed" });
    assert.partialDeepStrictEqual(await orderOf(buyer, orderId), {
      status: "completed",
      refundedAmount: 0,
      entitlement: { status: "active" },
      refundable: { amount: 10, reasonIfNot: null },
    });
    for (const who of [buyer, seller]) assert.equal(await lastSubjectTo(who), "Refund failed: Stuck");
    assert.deepEqual((await buyer.get("/v1/events?type=purchase.refunded")).body.data, []);
    book.trouble = "none";
    const again = await ask(buyer, orderId);
    assertStatus(again, "succeeded");
    assert.notEqual(again.body.data.id, reply.body.data.id);
    assert.equal(await refundedMinorOf(market, book, orderId), 1_000n);
  });
});

suite("all buyers of a withdrawn product", () => {
  const path = (productId: string) => `/v1/admin/products/${productId}/refund-buyers`;
  const wishOf = async () => {
    const { rows } = await market.query(
      "select data from pgboss.job where name = 'refund-buyers' order by created_on desc limit 1",
    );
    return rows[0].data;
  };
  const never = new AbortController().signal;

  test("get their money back in one action, those of the last 90 days, and the job goes on where it was interrupted", async () => {
    const productId = await createProduct(seller, { price: 10 });
    const old = await buyProduct(await market.createUser(), productId);
    await forward(DAY_MS);
    const orders = [];
    for (let at = 0; at < 5; at++) orders.push(await buyProduct(await market.createUser(), productId));
    await forward(89 * DAY_MS);
    await give(orders[0]!, { amount: 1, reason: "other" });
    await forward(60_000);
    await admin.post(`/v1/admin/products/${productId}/suspend`, { reasonCode: "malicious" });
    const reply = await admin.post(path(productId));
    assert.equal(reply.status, 200, reply.text);
    const since = new Date(market.clock.now.getTime() - 90 * DAY_MS).toISOString();
    assert.deepEqual(reply.body.data, { productId, orders: 5, since });
    const interrupted = new AbortController();
    const input = await wishOf();
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

  test("is refused while its buyers can still use it, of no product, and to anybody else", async () => {
    const { productId } = await hasOrder();
    assertError(await admin.post(path(productId)), 409, "INVALID_STATE");
    await admin.post(`/v1/admin/products/${productId}/suspend`, { reasonCode: "spam" });
    assertError(await admin.post(path(productId)), 409, "INVALID_STATE");
    for (const id of ["nonsense", toId("prod", newUuid(new Date()))])
      assertError(await admin.post(path(id)), 404, "PRODUCT_NOT_FOUND");
    assertError(await seller.post(path(productId)), 403, "UNAUTHORIZED");
  });
});

test("nobody closes an account while a refund of theirs is open", async () => {
  const { buyer } = await hasPending();
  const session = await market.createSession(buyer.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const reply = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(assertError(reply, 409, "INVALID_STATE").openRefunds, 1);
});
