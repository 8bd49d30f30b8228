import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { askedDuring, costOf } from "../../../test/statements.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { findOrder, insertOrder } from "../orders/queries.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
});
after(() => market.close());

const buy = (buyer: Client, productId: string, input: object = {}, headers = {}) =>
  buyer.post("/v1/purchases", { productId, ...input }, headers);
const orderOf = async (buyer: Client, id: string) => (await buyer.get(`/v1/purchases/${id}`)).body.data;
const ordersOf = async (buyer: Client, query = "") => (await buyer.get(`/v1/purchases?${query}`)).body;

async function events(who: Client, type: string) {
  const { body } = await who.get(`/v1/events?type=${type}&limit=100`);
  return body.data;
}

async function counted(table: string, productId: string): Promise<number> {
  const { rows } = await market.query(`select count(*) from ${table} where product_id = $1`, [
    toUuid("prod", productId),
  ]);
  return rows[0].count;
}

const daysAfter = (at: string, days: number) => new Date(Date.parse(at) + days * 86_400_000).toISOString();

const chargesOf = async (orders: string[]) =>
  (await market.query("select state from fake_provider.charges where order_id = any($1)", [orders])).rows.map(
    ({ state }) => state,
  );

test("POST /purchases: returns the completed order with its links", async () => {
  const productId = await createProduct(seller, { price: 19.99 });
  const buyer = await market.createUser({ name: "Buyer" });
  const reply = await buy(buyer, productId);
  assert.equal(reply.status, 201);
  const { orderId, downloadUrl, receipt, ...rest } = reply.body.data;
  assert.match(orderId, /^ord_[0-9a-z]{26}$/);
  assert.deepEqual(rest, { status: "completed", amount: 19.99, currency: "USD" });
  const path = `${market.origin}/v1/purchases/${orderId}`;
  assert.ok(downloadUrl.startsWith(`${path}/download?`));
  assert.ok(receipt.url.startsWith(`${path}/receipt?`));
  assert.ok(receipt.pdf.startsWith(`${path}/receipt.pdf?`));
});

test("POST /purchases: statements, round trips and transactions", async (t) => {
  // The test provider of the market sends webhooks, whose statements would count.
  const provider = await startFakeProvider({ store: memoryStore(), now: () => own.clock.now });
  t.after(() => provider.close());
  const own = await openMarket({ payments: createFakePayments({ origin: provider.origin }) });
  t.after(() => own.close());
  const productId = await createProduct(await own.createUser(), { title: "Counted" });
  const buyer = await own.createUser();
  // The first request of a key reads it, and records its use.
  await buyer.get("/v1/account");
  await own.waitForNotifications();
  const asked = await askedDuring(() => buyProduct(buyer, productId));
  assert.deepEqual(costOf(asked), { statements: 16, roundTrips: 5, transactions: 2 });
  const settlement = asked.slice(asked.findIndex(({ text }) => text.startsWith("begin")) + 1);
  const LOCKS = /for update|into "entitlements"|update product_stats|"receipt_counters"/i;
  assert.deepEqual(
    settlement.flatMap(({ text }) => LOCKS.exec(text)?.[0] ?? []),
    ["for update", 'into "entitlements"', "update product_stats", '"receipt_counters"'],
    "the order, entitlement, counters and receipt number are locked in this order",
  );
});

test("POST /purchases: the buyer gets the product during the insert: 409, and no order remains", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  const setStatus = "update entitlements set status = $1 where order_id = $2";
  await market.query(setStatus, ["revoked", toUuid("ord", orderId)]);
  const client = await market.service.ctx.pool.connect();
  await client.query("begin");
  await client.query("select from users where id = $1 for no key update", [buyer.userId]);
  await client.query(setStatus, ["active", toUuid("ord", orderId)]);
  const buying = buy(buyer, productId);
  await waitForBlockedStatements(market);
  await client.query("commit");
  client.release();
  assert.equal(assertError(await buying, 409, "ALREADY_PURCHASED").orderId, orderId);
  assert.equal((await ordersOf(buyer)).meta.total, 1);
});

test("insertOrder: stores every term, and returns the row that it inserts", async () => {
  const { ctx } = market.service;
  const author = await market.createUser({ name: "Author" });
  const [first, second, referrer] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const productId = await createProduct(author);
  const orderId = await buyProduct(first, productId);
  await author.patch(`/v1/products/${productId}`, { content: "Newer", version: "2.0.0" });
  await market.query("update users set handle = 'terms', avatar = repeat('a', 64) where id = $1", [
    author.userId,
  ]);
  assert.equal((await author.post("/v1/discount-codes", { code: "TERMS", percentOff: 10 })).status, 201);
  const { rows: codes } = await market.query("select id from discount_codes where code = 'TERMS'");
  const bought = (await findOrder(ctx.db, toUuid("ord", orderId)!))!;
  const unusual = {
    ...{ subtotalMinor: 1_000n, discountMinor: 100n, taxMinor: 90n, totalMinor: 900n },
    ...{ feeMinor: 100n, commissionMinor: 46n, sellerMinor: 664n },
    ...{ feeBasisPoints: 1_234, commissionBasisPoints: 567, taxBasisPoints: 1_111 },
    ...{ taxInclusive: true, taxCountry: "DE", discountCodeId: codes[0].id, discountCode: "TERMS" },
    ...{ referrerId: referrer.userId, referralCode: "THEIRS", currency: "EUR", refundDays: 30 },
    ...{ paymentMethodId: "pm_unusual", askedAt: new Date(market.clock.now.getTime() + 1_000) },
  };
  const placed = await insertOrder(ctx.db, {
    ...bought,
    ...unusual,
    id: ctx.newId(),
    buyerId: second.userId,
  });
  assert.ok("order" in placed);
  assert.deepEqual(await findOrder(ctx.db, placed.order.id), placed.order);
  const { sellerHandle, sellerAvatar, productVersion, latestVersion } = placed.order;
  assert.deepEqual(
    [sellerHandle, sellerAvatar, productVersion, latestVersion],
    ["terms", "a".repeat(64), "1.0.0", "2.0.0"],
  );
  const { rows } = await market.query(
    "select fee_basis_points, commission_basis_points, asked_at from orders where id = $1",
    [placed.order.id],
  );
  const { feeBasisPoints, commissionBasisPoints, askedAt } = unusual;
  assert.deepEqual(rows, [
    { fee_basis_points: feeBasisPoints, commission_basis_points: commissionBasisPoints, asked_at: askedAt },
  ]);
  await market.query("update discount_codes set redemptions = 1 where code = 'TERMS'");
});

test("GET /purchases/{id}: lines, card and entitlement", async () => {
  const productId = await createProduct(seller, { title: "Bought", price: 7.5, version: "1.2.0" });
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  await seller.patch(`/v1/products/${productId}`, {
    title: "Renamed",
    content: "Newer {{topic}} in {{language=English}}",
    price: 99,
  });
  await seller.patch(`/v1/products/${productId}`, { content: "Next {{x}}", version: "2.0.0" });
  const { downloadUrl, receipt, ...order } = await orderOf(buyer, orderId);
  assert.ok(downloadUrl && receipt.url && receipt.pdf);
  assert.match(receipt.number, /^R-[0-9A-Z]{5}-2026-0000\d$/);
  const at = market.clock.now.toISOString();
  assert.deepEqual(order, {
    orderId,
    status: "completed",
    amount: 7.5,
    currency: "USD",
    refundedAmount: 0,
    product: {
      id: productId,
      title: "Bought",
      type: "PROMPT",
      version: "1.2.0",
      author: { id: toUserId(seller.userId), name: "Seller", handle: null, avatar: null },
    },
    createdAt: at,
    completedAt: at,
    lines: { subtotal: 7.5, discount: 0, tax: 0, total: 7.5 },
    taxRate: null,
    discountCode: null,
    referralCode: null,
    paymentMethod: { brand: "visa", last4: "4242" },
    declineCode: null,
    entitlement: { status: "active", version: "1.3.0", latestVersion: "2.0.0" },
    refundable: {
      until: daysAfter(at, 14),
      amount: 7.5,
      reasonIfNot: null,
      approval: "instant",
      approvalReason: "unused",
      instantFrom: null,
    },
    refunds: [],
    events: [
      { type: "purchase.created", at, amount: 7.5 },
      { type: "purchase.completed", at, amount: 7.5 },
    ],
  });
});

test("a completed purchase: one event for seller and buyer", async () => {
  const productId = await createProduct(seller, { price: 3, currency: "KWD" });
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  const [event] = await events(buyer, "purchase.completed");
  assert.deepEqual(event.data, {
    order: { id: orderId, productId, buyerId: toUserId(buyer.userId), amount: 3, currency: "KWD" },
  });
  const [sellers] = await events(seller, "purchase.completed");
  assert.deepEqual(sellers, event);
});

test("a sale: counts for popularity", async () => {
  const productId = await createProduct(seller);
  await buyProduct(await market.createUser(), productId);
  await buyProduct(await market.createUser(), productId);
  const { body } = await seller.get(`/v1/products/${productId}`);
  assert.equal(body.data.stats.purchases, 2);
});

test("a sale: counts half as much for trending with each week", async () => {
  const once = async (tag: string) =>
    [await createProduct(seller, { tags: [tag] }), await market.createUser()] as const;
  const trending = async (tag: string) => {
    const { body } = await seller.get(`/v1/products?tag=${tag}&sort=trending`);
    return body.data.map(({ id }: { id: string }) => id);
  };
  const [[old, ann], [fresh, bob]] = [await once("trend"), await once("trend")];
  for (const buyer of [ann, bob, await market.createUser()]) await buyProduct(buyer, old);
  market.clock.forward(7 * 86_400_000);
  await buyProduct(ann, fresh);
  assert.deepEqual(await trending("trend"), [old, fresh], "3 sales a week ago weigh 1.5");
  market.clock.forward(7 * 86_400_000);
  await buyProduct(await market.createUser(), fresh);
  assert.deepEqual(await trending("trend"), [fresh, old], "0.5 + 1 against 0.75");
});

test("an own product: cannot be bought", async () => {
  assertError(await buy(seller, await createProduct(seller)), 422, "VALIDATION_ERROR", "productId");
});

test("a product that the buyer could never see: 404; one that went off sale: unavailable", async () => {
  const buyer = await market.createUser();
  for (const id of [
    await createDraft(seller),
    toId("prod", newUuid(new Date())),
    "nonsense",
    toId("ord", newUuid(new Date())),
  ]) {
    assertError(await buy(buyer, id), 404, "PRODUCT_NOT_FOUND");
  }
  const productId = await createProduct(seller);
  await seller.post(`/v1/products/${productId}/unpublish`);
  assertError(await buy(buyer, productId), 409, "PRODUCT_UNAVAILABLE");
  await seller.delete(`/v1/products/${productId}`);
  assertError(await buy(buyer, productId), 409, "PRODUCT_UNAVAILABLE");
  assert.equal((await ordersOf(buyer)).meta.total, 0);
});

test("an owned product: refused, and the error names the order", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  assert.equal(assertError(await buy(buyer, productId), 409, "ALREADY_PURCHASED").orderId, orderId);
  assert.equal((await ordersOf(buyer)).meta.total, 1);
});

test("another price than expected: refused, and the error names the price", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const buyer = await market.createUser();
  for (const expectedPrice of [9.99, 10.01, 0]) {
    const details = assertError(await buy(buyer, productId, { expectedPrice }), 409, "PRICE_CHANGED");
    assert.deepEqual(details, { price: 10, currency: "USD" });
  }
  assertError(
    await buy(buyer, productId, { expectedPrice: 10.001 }),
    400,
    "INVALID_REQUEST",
    "expectedPrice",
  );
  assert.equal((await buy(buyer, productId, { expectedPrice: 10 })).status, 201);
});

test("an unknown payment method: 404, and no order remains", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const reply = await buy(buyer, productId, { paymentMethodId: "pm_somebody_elses" });
  assertError(reply, 404, "PAYMENT_METHOD_NOT_FOUND");
  assert.equal(await counted("orders", productId), 0);
  assert.equal((await buy(buyer, productId)).status, 201);
});

test("an invalid field: the error names it", async () => {
  const buyer = await market.createUser();
  assertError(await buyer.post("/v1/purchases", {}), 400, "INVALID_REQUEST", "productId");
  assertError(await buy(buyer, "prod_x", { coupon: "FREE" }), 400, "INVALID_REQUEST", "coupon");
  assertError(await buy(buyer, "prod_x", { expectedPrice: "10" }), 400, "INVALID_REQUEST", "expectedPrice");
});

test("a decline: 402, listed as failed, without access", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  for (const [method, declineCode, last4] of [
    ["pm_test_declined", "card_declined", "0002"],
    ["pm_test_insufficient_funds", "insufficient_funds", "9995"],
  ]) {
    const details = assertError(
      await buy(buyer, productId, { paymentMethodId: method }),
      402,
      "INSUFFICIENT_FUNDS",
    );
    assert.equal(details.declineCode, declineCode);
    assert.partialDeepStrictEqual(await orderOf(buyer, details.orderId), {
      status: "failed",
      declineCode,
      paymentMethod: { brand: "visa", last4 },
      downloadUrl: null,
      receipt: { url: null, pdf: null },
      completedAt: null,
      entitlement: null,
    });
  }
  assert.equal((await ordersOf(buyer, "status=failed")).meta.total, 2);
  assert.equal((await buyer.get(`/v1/products/${productId}`)).body.data.content, null);
  assert.deepEqual(await events(buyer, "purchase.completed"), []);
});

test("a new attempt after a decline: works", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  assertError(
    await buy(buyer, productId, { paymentMethodId: "pm_test_declined" }),
    402,
    "INSUFFICIENT_FUNDS",
  );
  assert.equal((await buy(buyer, productId, { paymentMethodId: "pm_test_ok" })).status, 201);
  const { data } = await ordersOf(buyer);
  assert.deepEqual(
    data.map(({ status }: { status: string }) => status),
    ["completed", "failed"],
  );
});

test("GET /purchases: newest first, by status and product, only the caller's", async () => {
  const [first, second] = [await createProduct(seller), await createProduct(seller)];
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  await buyProduct(other, first);
  await buy(buyer, first, { paymentMethodId: "pm_test_declined" });
  const bought = [await buyProduct(buyer, first), await buyProduct(buyer, second)];
  const ids = async (query: string) => {
    const { data, meta } = await ordersOf(buyer, query);
    assert.equal(meta.total, data.length);
    return data.map(({ orderId }: { orderId: string }) => orderId);
  };
  assert.deepEqual(await ids("status=completed"), bought.toReversed());
  assert.equal((await ids("")).length, 3);
  assert.deepEqual(await ids(`productId=${second}`), [bought[1]]);
  assert.deepEqual(await ids("productId=nonsense"), []);
  assert.deepEqual(await ids(`productId=${first}&status=failed`), (await ids("status=failed")).slice(0, 1));
  const page = await ordersOf(buyer, "limit=2&page=2");
  assert.deepEqual([page.data.length, page.meta.total], [1, 3]);
  assertError(await buyer.get("/v1/purchases?status=lost"), 400, "INVALID_REQUEST", "status");
});

test("another user's order: 404, for its seller too", async () => {
  const orderId = await buyProduct(await market.createUser(), await createProduct(seller));
  for (const id of [orderId, toId("ord", newUuid(new Date())), "nonsense"]) {
    assertError(await seller.get(`/v1/purchases/${id}`), 404, "ORDER_NOT_FOUND");
  }
});

test("concurrent purchases: one charge, one entitlement, one count, one event", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const replies = await Promise.all(Array.from({ length: runs(50) }, () => buy(buyer, productId)));
  const completed = replies.filter(({ status }) => status === 201);
  assert.ok(completed.length > 0);
  const idsOf = ({ body }: Reply) => body.data?.orderId ?? body.error.details.orderId;
  assert.equal(new Set(replies.map(idsOf)).size, 1, "all speak of one order");
  for (const reply of replies) {
    if (reply.status === 201) assert.ok(reply.body.data.downloadUrl, "what is completed can be downloaded");
    else assertError(reply, 409, "ALREADY_PURCHASED");
  }
  const { data } = await ordersOf(buyer);
  assert.deepEqual(
    data.map(({ status }: { status: string }) => status),
    ["completed"],
  );
  assert.deepEqual(await chargesOf([data[0].orderId]), ["succeeded"]);
  assert.equal(await counted("entitlements", productId), 1);
  assert.equal((await seller.get(`/v1/products/${productId}`)).body.data.stats.purchases, 1);
  const { rows } = await market.query(
    `select r.user_id from events e join event_recipients r on r.event_id = e.id
      where e.type = 'purchase.completed' and strpos(e.body, $1) > 0`,
    [productId],
  );
  assert.deepEqual(
    rows.map((row) => row.user_id).sort(),
    [seller.userId, buyer.userId].sort(),
    "one event, two receivers",
  );
});

test("concurrent purchases with different methods: one completed order", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const methods = ["pm_test_ok", "pm_test_declined", "pm_test_requires_action"];
  await Promise.all(
    Array.from({ length: runs(18, 3) }, (_, at) =>
      buy(buyer, productId, { paymentMethodId: methods[at % methods.length] }),
    ),
  );
  await buy(buyer, productId, { paymentMethodId: "pm_test_ok" });
  const { data } = await ordersOf(buyer, "limit=100");
  const completed = data.filter(({ status }: { status: string }) => status === "completed");
  assert.equal(completed.length, 1);
  const charges = await chargesOf(data.map(({ orderId }: { orderId: string }) => orderId));
  assert.equal(charges.filter((state) => state === "succeeded").length, 1);
  assert.equal(await counted("entitlements", productId), 1);
});

test("a repeat under the Idempotency-Key: the same response, one charge", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const again = () => buy(buyer, productId, {}, { "idempotency-key": "buy once" });
  const [first, second] = [await again(), await again()];
  assert.deepEqual([second.status, second.text], [201, first.text]);
  assert.equal(second.headers.get("idempotent-replayed"), "true");
  assertError(
    await buy(buyer, productId, { expectedPrice: 1 }, { "idempotency-key": "buy once" }),
    422,
    "IDEMPOTENCY_KEY_REUSED",
  );
});

test("concurrent repeats under one Idempotency-Key: one purchase, one response", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const again = () => buy(buyer, productId, {}, { "idempotency-key": "buy at once" });
  const replies = await Promise.all(Array.from({ length: runs(20) }, again));
  const made = replies.filter(({ status }) => status === 201);
  assert.ok(made.length > 0);
  assert.equal(new Set(made.map(({ text }) => text)).size, 1, "one answer, byte for byte");
  for (const reply of replies.filter(({ status }) => status !== 201))
    assertError(reply, 409, "IDEMPOTENCY_IN_PROGRESS");
  const { data } = await ordersOf(buyer);
  assert.deepEqual(await chargesOf(data.map(({ orderId }: { orderId: string }) => orderId)), ["succeeded"]);
});

test("the marketplace's fee: the price times its basis points, rounded half up", async () => {
  const { config } = market.service.ctx;
  const usual = config.feeBasisPoints;
  const cases = fc.tuple(fc.integer({ min: 1, max: 99_999_999 }), fc.integer({ min: 0, max: 10_000 }));
  const buyer = await market.createUser();
  const productId = await createProduct(seller, { currency: "JPY", price: 1 });
  const edges: [number, number][] = [
    [1, 5_000],
    [1, 4_999],
    [5, 1_000],
    [99_999_999, 10_000],
    [99_999_999, 9_999],
    [15, 1_000],
    [25, 1_000],
  ];
  const feeAt = async (price: number, basisPoints: number): Promise<number> => {
    config.feeBasisPoints = basisPoints;
    await seller.patch(`/v1/products/${productId}`, { price });
    const { orderId } = assertError(
      await buy(buyer, productId, { paymentMethodId: "pm_test_declined" }),
      402,
      "INSUFFICIENT_FUNDS",
    );
    const { rows } = await market.query("select fee_minor from orders where id = $1", [
      toUuid("ord", orderId),
    ]);
    return rows[0].fee_minor;
  };
  await fc.assert(
    fc.asyncProperty(cases, async ([price, basisPoints]) => {
      const exact = BigInt(price) * BigInt(basisPoints);
      const rounded = exact / 10_000n + (exact % 10_000n >= 5_000n ? 1n : 0n);
      assert.equal(await feeAt(price, basisPoints), Number(rounded));
    }),
    { numRuns: runs(40, 10), examples: edges.map((edge) => [edge]) },
  );
  config.feeBasisPoints = usual;
});
