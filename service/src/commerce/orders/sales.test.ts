import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket({ config: { taxRates: new Map([["DE", 1_900]]) } });
  seller = await market.createUser({ name: "Seller" });
});
after(() => market.close());

const salesOf = async (who: Client, query = "") => {
  const { status, body, text } = await who.get(`/v1/sales?${query}`);
  assert.equal(status, 200, text);
  return body;
};
const idsOf = ({ data }: { data: { orderId: string }[] }) => data.map(({ orderId }) => orderId);
const declined = (buyer: Client, productId: string) =>
  buyer.post("/v1/purchases", { productId, paymentMethodId: "pm_test_declined" });

/** A sale with tax, fee and commission. */
async function createSharedSale() {
  const referrer = await market.createUser({ name: "Referrer" });
  const buyer = await market.createUser({ name: "Buyer" });
  await (await market.createSession(buyer.userId)).patch("/v1/account", { country: "DE" });
  const { code } = (await referrer.get("/v1/account/referral")).body.data;
  const productId = await createProduct(seller, { price: 20, title: "Sold" });
  const discountCode = `TEN-${productId.slice(-5)}`;
  await seller.post("/v1/discount-codes", { code: discountCode, percentOff: 50 });
  const reply = await buyer.post("/v1/purchases", { productId, discountCode, referralCode: code });
  assert.equal(reply.status, 201, reply.text);
  return { referrer, buyer, productId, discountCode, code, orderId: reply.body.data.orderId as string };
}

suite("sales", () => {
  test("one sale: product, buyer and split", async () => {
    const { buyer, productId, orderId, code } = await createSharedSale();
    const [sale] = (await salesOf(seller)).data;
    const at = market.clock.now.toISOString();
    assert.deepEqual(sale, {
      orderId,
      status: "completed",
      amount: 11.9,
      currency: "USD",
      refundedAmount: 0,
      fee: 1,
      commission: 1,
      tax: 1.9,
      earnings: 8,
      referralCode: code,
      product: { id: productId, title: "Sold", type: "PROMPT", version: "1.0.0" },
      buyer: { id: toUserId(buyer.userId), name: "Buyer" },
      createdAt: at,
      completedAt: at,
    });
  });

  test("GET /sales/:id: the split, the first use, and what a refund would take", async () => {
    const { buyer, productId, orderId, discountCode, code } = await createSharedSale();
    const read = async () => (await seller.get(`/v1/sales/${orderId}`)).body.data;
    const sale = await read();
    assert.partialDeepStrictEqual(sale, {
      ...{ orderId, discountCode, referralCode: code, amount: 11.9, earnings: 8, access: "active" },
      ...{ firstUsedAt: null, refundDays: 14 },
      taxRate: { country: "DE" },
      ifRefunded: { fee: 1, commission: 1, tax: 1.9, earnings: 8 },
    });
    assert.match(sale.receiptNumber, /\d/);
    assert.equal((await buyer.get(`/v1/products/${productId}`)).status, 200);
    assert.equal((await read()).firstUsedAt, market.clock.now.toISOString());
    assertError(await buyer.get(`/v1/sales/${orderId}`), 403, "UNAUTHORIZED");
    const stranger = await market.createUser({ role: "seller" });
    assertError(await stranger.get(`/v1/sales/${orderId}`), 404, "ORDER_NOT_FOUND");
    const reply = await declined(await market.createUser(), productId);
    assertError(await seller.get(`/v1/sales/${reply.body.error.details.orderId}`), 404, "ORDER_NOT_FOUND");
  });

  test("list: the seller's own paid sales, newest first", async () => {
    const owner = await market.createUser();
    const [first, second] = [await createProduct(owner), await createProduct(owner)];
    const [buyer, other] = [await market.createUser(), await market.createUser()];
    const made = [
      await buyProduct(buyer, first),
      await buyProduct(other, first),
      await buyProduct(buyer, second),
    ];
    await declined(other, second);
    const all = await salesOf(owner);
    assert.deepEqual([idsOf(all), all.meta.total], [made.toReversed(), 3]);
    const page = await salesOf(owner, "limit=2&page=2");
    assert.deepEqual([idsOf(page), page.meta.total], [[made[0]], 3]);
    assert.deepEqual(idsOf(await salesOf(owner, `productId=${second}`)), [made[2]]);
    assert.deepEqual(idsOf(await salesOf(owner, "productId=nonsense")), []);
    assert.deepEqual(idsOf(await salesOf(owner, "status=completed")), made.toReversed());
    assert.deepEqual(idsOf(await salesOf(owner, "status=failed")), []);
    market.skipLedgerCheck();
    await market.query("update orders set status = 'refunded', refunded_minor = total_minor where id = $1", [
      toUuid("ord", made[1]!),
    ]);
    const [refunded] = (await salesOf(owner, "status=refunded")).data;
    assert.deepEqual([refunded.orderId, refunded.refundedAmount], [made[1], refunded.amount]);
  });

  test("list of referrals: only sales with a code, and those of one code", async () => {
    const owner = await market.createUser();
    const productId = await createProduct(owner);
    const codes = [];
    for (let at = 0; at < 2; at++) {
      const referrer = await market.createUser();
      codes.push((await referrer.get("/v1/account/referral")).body.data.code);
    }
    const made = [];
    for (const referralCode of [codes[0], undefined, codes[1]]) {
      const buyer = await market.createUser();
      const reply = await buyer.post("/v1/purchases", { productId, ...(referralCode && { referralCode }) });
      made.push(reply.body.data.orderId);
    }
    assert.deepEqual(
      (await salesOf(owner)).data.map(({ referralCode }: { referralCode: string }) => referralCode),
      [codes[1], null, codes[0]],
    );
    const referred = await salesOf(owner, "referred=true");
    assert.deepEqual([idsOf(referred), referred.meta.total], [[made[2], made[0]], 2]);
    assert.deepEqual(idsOf(await salesOf(owner, `referralCode=${codes[0]}`)), [made[0]]);
    assert.deepEqual(idsOf(await salesOf(owner, "referralCode=NOBODY")), []);
  });

  test("list by time: `from` is inclusive, `to` exclusive", async () => {
    const owner = await market.createUser();
    const productId = await createProduct(owner);
    const orders: string[] = [];
    const moments: string[] = [];
    for (let at = 0; at < 3; at++) {
      market.clock.forward(HOUR_MS);
      moments.push(market.clock.now.toISOString());
      orders.push(await buyProduct(await market.createUser(), productId));
    }
    const found = async (query: string) => idsOf(await salesOf(owner, query));
    assert.deepEqual(await found(`from=${moments[1]}`), [orders[2], orders[1]]);
    assert.deepEqual(await found(`to=${moments[1]}`), [orders[0]]);
    assert.deepEqual(await found(`from=${moments[1]}&to=${moments[2]}`), [orders[1]]);
    const inZone = encodeURIComponent(moments[1]!.replace("Z", "+00:00"));
    assert.deepEqual(await found(`from=${inZone}`), [orders[2], orders[1]]);
    assert.deepEqual(await found("from=0000-01-01T00:00:00Z"), orders.toReversed());
    assert.deepEqual(await found("to=1969-12-31T23:59:59Z"), []);
    for (const name of ["from", "to"])
      assertError(await owner.get(`/v1/sales?${name}=today`), 400, "INVALID_REQUEST", name);
  });

  test("without the seller role or purchases:read: refused", async () => {
    const required = async (who: Client) =>
      assertError(await who.get("/v1/sales"), 403, "UNAUTHORIZED").required;
    assert.equal(await required(await market.createUser()), "manage:products");
    const reader = await market.createUser({ role: "seller", permissions: ["products:read"] });
    assert.equal(await required(reader), "purchases:read");
    assertError(await seller.get("/v1/sales?status=lost"), 400, "INVALID_REQUEST", "status");
    assertError(await seller.get("/v1/sales?limit=101"), 400, "INVALID_REQUEST", "limit");
    assertError(await seller.get("/v1/sales?buyer=x"), 400, "INVALID_REQUEST", "buyer");
  });
});

suite("orders of all users", () => {
  let admin: Client;
  before(async () => {
    const { userId } = await market.createUser({ role: "admin" });
    admin = await market.createSession(userId, { secondFactor: true });
  });

  test("list: for administrators by status, buyer, seller and product, failed ones too", async () => {
    const [owner, buyer] = [
      await market.createUser({ name: "Owner" }),
      await market.createUser({ name: "Buyer" }),
    ];
    const [first, second] = [await createProduct(owner), await createProduct(owner)];
    const bought = await buyProduct(buyer, first);
    const { orderId: failed } = assertError(await declined(buyer, second), 402, "INSUFFICIENT_FUNDS");
    const found = async (query: string) => {
      const { status, body, text } = await admin.get(`/v1/admin/orders?${query}`);
      assert.equal(status, 200, text);
      return idsOf(body);
    };
    const [buyerId, sellerId] = [toUserId(buyer.userId), toUserId(owner.userId)];
    assert.deepEqual(await found(`buyer=${buyerId}`), [failed, bought]);
    assert.deepEqual(await found(`seller=${sellerId}`), [failed, bought]);
    assert.deepEqual(await found(`seller=${sellerId}&status=failed`), [failed]);
    assert.deepEqual(await found(`product=${first}`), [bought]);
    assert.deepEqual(await found(`buyer=${sellerId}`), []);
    for (const name of ["buyer", "seller", "product"]) assert.deepEqual(await found(`${name}=nonsense`), []);
    assert.deepEqual(await found("limit=2"), [failed, bought]);
    const [order] = (await admin.get("/v1/admin/orders?status=failed&limit=1")).body.data;
    assert.deepEqual(order.seller, { id: sellerId, name: "Owner" });
  });

  test("one order: all fields", async () => {
    const { referrer, orderId, discountCode, code } = await createSharedSale();
    const { data } = (await admin.get(`/v1/admin/orders/${orderId}`)).body;
    assert.match(data.receiptNumber, /^R-/);
    assert.partialDeepStrictEqual(data, {
      orderId,
      amount: 11.9,
      lines: { subtotal: 20, discount: 10, tax: 1.9, total: 11.9 },
      taxRate: { percent: 19, inclusive: false, country: "DE" },
      discountCode,
      referralCode: code,
      referrer: { id: toUserId(referrer.userId), name: "Referrer" },
      rates: { fee: 1_000, commission: 1_000 },
      paymentMethod: { brand: "visa", last4: "4242" },
      paymentMethodId: "pm_test_ok",
      declineCode: null,
      refundDays: 14,
    });
    assert.ok(data.paymentId && data.maturesAt);
  });

  test("an unknown id: 404; other users: refused", async () => {
    for (const id of ["nonsense", toId("ord", newUuid(new Date()))])
      assertError(await admin.get(`/v1/admin/orders/${id}`), 404, "ORDER_NOT_FOUND");
    for (const path of ["/v1/admin/orders", "/v1/admin/orders/nonsense"])
      assertError(await seller.get(path), 403, "UNAUTHORIZED");
  });
});
