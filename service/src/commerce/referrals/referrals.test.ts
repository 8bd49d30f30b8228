import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { payOutBySchedule } from "../payouts/schedule.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
});
after(() => market.close());

const referralOf = async (who: Client) => {
  const { status, body, text } = await who.get("/v1/account/referral");
  assert.equal(status, 200, text);
  return body.data;
};
const buy = (buyer: Client, productId: string, input: object = {}) =>
  buyer.post("/v1/purchases", { productId, ...input });

async function partsOf(orderId: string) {
  const { rows } = await market.query(
    `select subtotal_minor, total_minor, fee_minor, commission_minor, seller_minor, tax_minor, fee_basis_points,
            commission_basis_points, referrer_id, referral_code from orders where id = $1`,
    [toUuid("ord", orderId)],
  );
  return rows[0];
}

test("GET /account/referral: concurrent first requests create one code", async () => {
  const referrer = await market.createUser();
  const responses = await Promise.all(Array.from({ length: runs(20) }, () => referralOf(referrer)));
  const codes = new Set(responses.map(({ code }) => code));
  assert.equal(codes.size, 1);
  const { code, url, ...rest } = await referralOf(referrer);
  assert.ok(codes.has(code));
  assert.match(code, /^[CDFGHJKMNPQRTVWX34679]{9}$/, "no vowel, and no two letters that look alike");
  assert.equal(url, `${market.origin}/?ref=${code}`);
  assert.deepEqual(rest, { commissionBasisPoints: 1_000, sales: 0, earnings: [] });
});

suite("a referral link", () => {
  const follow = async (code: string) => {
    const reply = await market.as(null).get(`/?ref=${code}`);
    assert.equal(reply.status, 200);
    return reply.headers.getSetCookie().find((line) => line.startsWith("__Host-ref="));
  };
  const buyInBrowser = async (buyer: Client, cookie: string, input: object = {}) => {
    const { key } = await market.createSession(buyer.userId);
    const headers = {
      cookie: `__Host-session=${key}; ${cookie.split(";")[0]}`,
      "sec-fetch-site": "same-origin",
    };
    const reply = await market
      .as(null)
      .post("/v1/purchases", { productId: await createProduct(seller), ...input }, headers);
    assert.equal(reply.status, 201, reply.text);
    return reply;
  };

  test("sets a cookie for 30 days; a purchase in that browser consumes it", async () => {
    const { code } = await referralOf(await market.createUser());
    const cookie = (await follow(code.toLowerCase()))!;
    assert.match(cookie, new RegExp(`^__Host-ref=${code}; Max-Age=2592000; .*HttpOnly`));
    const reply = await buyInBrowser(await market.createUser(), cookie);
    assert.equal((await partsOf(reply.body.data.orderId)).referral_code, code);
    assert.match(reply.headers.getSetCookie().join(), /__Host-ref=; Max-Age=0/);
  });

  test("a code in the request, the buyer's own code, an unknown code or an API key: the cookie is ignored", async () => {
    const referrer = await market.createUser();
    const { code } = await referralOf(referrer);
    const { code: other } = await referralOf(await market.createUser());
    const cookie = (await follow(code))!;
    const chosen = await buyInBrowser(await market.createUser(), cookie, { referralCode: other });
    assert.equal((await partsOf(chosen.body.data.orderId)).referral_code, other);
    for (const [buyer, given] of [
      [referrer, cookie],
      [await market.createUser(), "__Host-ref=UNKNOWN99"],
    ] as const) {
      const reply = await buyInBrowser(buyer, given);
      assert.equal((await partsOf(reply.body.data.orderId)).referral_code, null);
    }
    const byKey = await (await market.createUser()).post(
      "/v1/purchases",
      { productId: await createProduct(seller) },
      { cookie: cookie.split(";")[0]! },
    );
    assert.equal((await partsOf(byKey.body.data.orderId)).referral_code, null);
    assert.equal(await follow("%0d%0aSet-Cookie:x"), undefined);
  });
});

test("a purchase with a code: the commission comes from the seller's part and is copied to the order", async () => {
  const referrer = await market.createUser();
  const { code } = await referralOf(referrer);
  const buyer = await market.createUser();
  const productId = await createProduct(seller, { price: 19.99 });
  const reply = await buy(buyer, productId, { referralCode: ` ${code.toLowerCase()} ` });
  assert.equal(reply.status, 201, reply.text);
  const { orderId } = reply.body.data;
  assert.equal((await buyer.get(`/v1/purchases/${orderId}`)).body.data.referralCode, code);
  assert.deepEqual(await partsOf(orderId), {
    subtotal_minor: 1_999,
    total_minor: 1_999,
    fee_minor: 200,
    commission_minor: 200,
    seller_minor: 1_599,
    tax_minor: 0,
    fee_basis_points: 1_000,
    commission_basis_points: 1_000,
    referrer_id: referrer.userId,
    referral_code: code,
  });
  const pending = { currency: "USD", total: 2, pending: 2, available: 0, reserved: 0, paid: 0 };
  assert.partialDeepStrictEqual(await referralOf(referrer), { sales: 1, earnings: [pending] });
  market.clock.forward(14 * DAY_MS);
  assert.deepEqual((await referralOf(referrer)).earnings, [{ ...pending, pending: 0, available: 2 }]);
});

suite("a referrer without the seller role", () => {
  const weekly = () => payOutBySchedule(market.service.ctx, "weekly");

  /** A sale of 200.00 with a commission of 20.00. */
  async function createReferredSale(): Promise<{ referrer: Client; buyer: Client; orderId: string }> {
    const [referrer, buyer] = [await market.createUser(), await market.createUser()];
    const { code } = await referralOf(referrer);
    const productId = await createProduct(seller, { price: 200 });
    const reply = await buy(buyer, productId, { referralCode: code });
    assert.equal(reply.status, 201, reply.text);
    // A used product needs the approval of the seller.
    await buyer.get(`/v1/products/${productId}`);
    return { referrer, buyer, orderId: reply.body.data.orderId };
  }

  test("the payout schedule: pays the earnings, and GET /account/referral shows them as paid", async () => {
    await weekly();
    const { referrer } = await createReferredSale();
    assertError(await referrer.get("/v1/balance"), 403, "UNAUTHORIZED");
    market.clock.forward(21 * DAY_MS);
    const earned = { currency: "USD", total: 20, pending: 0, reserved: 0 };
    assert.deepEqual((await referralOf(referrer)).earnings, [{ ...earned, available: 20, paid: 0 }]);
    await weekly();
    assert.deepEqual((await referralOf(referrer)).earnings, [{ ...earned, available: 0, paid: 20 }]);
  });

  test("an open refund: reserves the commission; an approved one removes it", async () => {
    const { referrer, buyer, orderId } = await createReferredSale();
    market.clock.forward(14 * DAY_MS);
    const requested = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "other" });
    assert.equal(requested.body.data.status, "pending", requested.text);
    const earned = { currency: "USD", pending: 0, available: 0, paid: 0 };
    assert.deepEqual((await referralOf(referrer)).earnings, [{ ...earned, total: 20, reserved: 20 }]);
    const session = await market.createSession(seller.userId);
    await session.post(`/v1/refunds/${requested.body.data.id}/approve`);
    assert.deepEqual((await referralOf(referrer)).earnings, []);
  });
});

test("a purchase without a code: no commission", async () => {
  const { orderId } = (await buy(await market.createUser(), await createProduct(seller, { price: 10 }))).body
    .data;
  assert.partialDeepStrictEqual(await partsOf(orderId), {
    commission_minor: 0,
    commission_basis_points: 0,
    seller_minor: 900,
    referrer_id: null,
  });
});

test("earnings: by currency; a refunded sale does not count", async () => {
  const referrer = await market.createUser();
  const { code } = await referralOf(referrer);
  for (const [price, currency] of [
    [500, "JPY"],
    [1.234, "KWD"],
    [10, "USD"],
  ])
    await buy(await market.createUser(), await createProduct(seller, { price, currency }), {
      referralCode: code,
    });
  const { earnings, sales } = await referralOf(referrer);
  assert.equal(sales, 3);
  assert.deepEqual(
    earnings.map(({ currency, total }: { currency: string; total: number }) => [currency, total]),
    [
      ["JPY", 50],
      ["KWD", 0.123],
      ["USD", 1],
    ],
  );
  market.skipLedgerCheck();
  await market.query(
    "update orders set status = 'refunded', refunded_minor = total_minor where referrer_id = $1 and currency = 'USD'",
    [referrer.userId],
  );
  assert.equal((await referralOf(referrer)).sales, 2);
});

test("commission rate: the product's, else the seller's; 0 is allowed", async () => {
  const owner = await market.createUser();
  const session = await market.createSession(owner.userId);
  const { code } = await referralOf(await market.createUser());
  const productId = await createProduct(owner, { price: 10, commissionBasisPoints: 2_500 });
  const readCommission = async () =>
    (await owner.get(`/v1/products/${productId}`)).body.data.commissionBasisPoints as number;
  const commissionNow = async () => {
    const reply = await buy(await market.createUser(), productId, { referralCode: code });
    assert.equal(reply.status, 201, reply.text);
    const order = await partsOf(reply.body.data.orderId);
    assert.equal(order.commission_basis_points, await readCommission());
    return order.commission_minor;
  };
  assert.equal(await commissionNow(), 250);
  await owner.patch(`/v1/products/${productId}`, { commissionBasisPoints: 0 });
  assert.equal(await commissionNow(), 0);
  await owner.patch(`/v1/products/${productId}`, { commissionBasisPoints: null });
  assert.equal(await commissionNow(), 100);
  await session.patch("/v1/account", { commissionBasisPoints: 300 });
  assert.equal(await commissionNow(), 30);
  await session.patch("/v1/account", { commissionBasisPoints: 0 });
  assert.equal(await commissionNow(), 0);
});

test("commission: at most what the fee leaves to the seller", async () => {
  const { code } = await referralOf(await market.createUser());
  const productId = await createProduct(seller, { price: 10, commissionBasisPoints: 10_000 });
  const { orderId } = (await buy(await market.createUser(), productId, { referralCode: code })).body.data;
  assert.partialDeepStrictEqual(await partsOf(orderId), {
    fee_minor: 100,
    commission_minor: 900,
    seller_minor: 0,
  });
});

for (const commissionBasisPoints of [-1, 10_001, 1.5, "10"])
  test(`PATCH /products with commissionBasisPoints ${commissionBasisPoints}: 400 INVALID_REQUEST`, async () => {
    const productId = await createProduct(seller);
    const reply = await seller.patch(`/v1/products/${productId}`, { commissionBasisPoints });
    assertError(reply, 400, "INVALID_REQUEST", "commissionBasisPoints");
  });

test("POST /purchases with an unknown, own, seller's or closed account's code: 422 with the reason", async () => {
  const productId = await createProduct(seller);
  const [buyer, leaver, banned] = [
    await market.createUser(),
    await market.createUser(),
    await market.createUser(),
  ];
  const codes = {
    nobody: "CCCCCCCCC",
    own: (await referralOf(buyer)).code,
    sellers: (await referralOf(seller)).code,
    leavers: (await referralOf(leaver)).code,
    banned: (await referralOf(banned)).code,
  };
  const session = await market.createSession(leaver.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(closed.status, 200, closed.text);
  await market.query("update users set banned_at = $2 where id = $1", [banned.userId, market.clock.now]);
  const reasonOf = async (referralCode: string) =>
    assertError(await buy(buyer, productId, { referralCode }), 422, "VALIDATION_ERROR", "referralCode")
      .reason;
  assert.match(await reasonOf(codes.nobody), /is unknown/);
  assert.match(await reasonOf(codes.own), /your own/);
  assert.match(await reasonOf(codes.sellers), /seller/);
  assert.match(await reasonOf(codes.leavers), /expired/);
  assert.match(await reasonOf(codes.banned), /expired/);
  assert.equal((await buyer.get("/v1/purchases")).body.meta.total, 0);
});

test("POST /purchases with another code: replaces the open order", async () => {
  const productId = await createProduct(seller, { price: 10 });
  const buyer = await market.createUser();
  const input = { paymentMethodId: "pm_test_requires_action" };
  const [first, second] = [
    await referralOf(await market.createUser()),
    await referralOf(await market.createUser()),
  ];
  const orders = [];
  for (const referralCode of [first.code, first.code, second.code, undefined])
    orders.push((await buy(buyer, productId, { ...input, referralCode })).body.data.orderId);
  assert.equal(orders[0], orders[1]);
  assert.equal(new Set(orders).size, 3);
});

test("GET /account/referral without purchases:read: 403 UNAUTHORIZED", async () => {
  const client = await market.createUser({ permissions: ["products:read"] });
  const details = assertError(await client.get("/v1/account/referral"), 403, "UNAUTHORIZED");
  assert.equal(details.required, "purchases:read");
});
