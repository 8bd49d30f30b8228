import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { after, before, beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { dumpDatabase } from "../../../test/dump.ts";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import {
  type PaymentEventReceiver,
  type PostedEvent,
  startPaymentEventReceiver,
} from "../../../test/payment-event-receiver.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import { becomes, until } from "../../../test/until.ts";
import { toId, toUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  signWebhook,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { orderTarget } from "../checkout/order-payment.ts";
import { reconcileCharges } from "./charges.ts";

const PATH = "/payments/webhooks/fake";
const line: PaymentConnection = { trouble: "none" };

let provider: FakeProvider;
let receiver: PaymentEventReceiver;
let market: Market;
let seller: Client;
before(async () => {
  const now = () => market.clock.now;
  provider = await startFakeProvider({
    store: memoryStore(),
    now,
    webhookDelays: { firstMs: 0, againMs: [] },
  });
  const { origin, secret } = provider;
  market = await openMarket({
    payments: withConnectionTrouble(line, createFakePayments({ origin, secret, now })),
  });
  receiver = await startPaymentEventReceiver();
  seller = await market.createUser({ name: "Seller" });
});
beforeEach(() => {
  line.trouble = "none";
  provider.sendWebhooksTo(receiver.url);
});
after(async () => {
  await market.close();
  await provider.close();
  await receiver.close();
});

/** Without credentials, as the provider sends it. */
const deliver = ({ body, headers }: PostedEvent, path = PATH): Promise<Reply> =>
  market.as(null).request("POST", path, {
    body: new Uint8Array(body),
    headers: { "content-type": "application/json", "fake-signature": headers["fake-signature"] ?? "" },
  });

const signed = (text: string): PostedEvent => ({
  body: Buffer.from(text),
  headers: { "fake-signature": signWebhook(provider.secret, text, market.clock.now) },
});
const webhookOf = (webhook: object) => signed(JSON.stringify(webhook));

async function assertAccepted(reply: Reply): Promise<void> {
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(reply.body, { received: true });
}

interface Bought {
  buyer: Client;
  productId: string;
  orderId: string;
  reply: Reply;
}

async function createPurchase(paymentMethodId = "pm_test_ok"): Promise<Bought> {
  const buyer = await market.createUser();
  const productId = await createProduct(seller);
  const reply = await buyer.post("/v1/purchases", { productId, paymentMethodId });
  return { buyer, productId, orderId: reply.body.data?.orderId, reply };
}

/** A purchase whose charge lost its answer. */
async function createPendingPurchase(paymentMethodId?: string): Promise<Bought> {
  line.trouble = "answers get lost";
  const bought = await createPurchase(paymentMethodId);
  line.trouble = "none";
  assert.equal(bought.reply.status, 202, bought.reply.text);
  return bought;
}

/** Reads a list, which does not ask the provider. */
const statusOf = async ({ buyer }: Bought) => (await buyer.get("/v1/purchases")).body.data[0].status;

async function soldOnce({ productId }: Bought): Promise<void> {
  const { rows } = await market.query(
    `select (select count(*) from events where type = 'purchase.completed' and strpos(body, $2) > 0) as events,
            (select count(*) from ledger_transactions where kind = 'sale' and source_id in
              (select id from orders where product_id = $1)) as booked,
            (select count(*) from entitlements where product_id = $1) as entitlements`,
    [toUuid("prod", productId), productId],
  );
  assert.deepEqual(rows, [{ events: 1, booked: 1, entitlements: 1 }]);
}

/** All rows except the last use of keys, the request log and pg-boss's own timestamps. */
const dump = async () =>
  (await dumpDatabase(market, ["api_keys", "request_logs", "version"])).split("\n").sort().join("\n");

suite("a webhook of the payment provider", () => {
  test("after a lost response: settles the purchase", async () => {
    const bought = await createPendingPurchase();
    assert.equal(await statusOf(bought), "pending");
    await assertAccepted(await deliver(webhookOf({ about: "payment", orderId: bought.orderId })));
    assert.equal(await statusOf(bought), "completed");
  });

  test("with false contents: only its topic counts; the state comes from the provider", async () => {
    const bought = await createPurchase("pm_test_requires_action");
    const lie = { about: "payment", orderId: bought.orderId, state: "succeeded", amountMinor: 1 };
    await assertAccepted(await deliver(webhookOf(lie)));
    assert.equal(await statusOf(bought), "requires_action");
  });

  test("after a confirmation: completes the purchase without its buyer", async () => {
    const bought = await createPurchase("pm_test_requires_action");
    const body = new URLSearchParams({ decision: "approve" });
    await fetch(bought.reply.body.data.nextAction.url, { method: "POST", body });
    await assertAccepted(await deliver(webhookOf({ about: "payment", orderId: bought.orderId })));
    assert.equal(await statusOf(bought), "completed");
  });

  test("of a plan payment: settles it", async () => {
    const session = await market.createSession((await market.createUser()).userId);
    line.trouble = "answers get lost";
    const reply = await session.put("/v1/account/subscription", { plan: "pro" });
    line.trouble = "none";
    assert.equal(reply.status, 202, reply.text);
    for (const webhook of await receiver.eventsAbout("pay_")) await assertAccepted(await deliver(webhook));
    const { rows: users } = await market.query("select plan from users where id = $1", [session.userId]);
    assert.equal(users[0].plan, "pro");
  });

  test("of a plan payment, repeated and concurrent: one ledger transaction, one receipt number, one event", async () => {
    const session = await market.createSession((await market.createUser()).userId);
    line.trouble = "answers get lost";
    await session.put("/v1/account/subscription", { plan: "pro" });
    line.trouble = "none";
    const { rows } = await market.query("select id from subscription_payments where user_id = $1", [
      session.userId,
    ]);
    const webhook = () => deliver(webhookOf({ about: "payment", orderId: toId("pay", rows[0].id) }));
    for (const reply of await Promise.all(Array.from({ length: 10 }, webhook))) await assertAccepted(reply);
    const settled = await dump();
    for (let times = 2; times > 0; times--) await assertAccepted(await webhook());
    assert.equal(await dump(), settled);
    const counts = await market.query(
      `select (select count(*) from ledger_transactions where source_id = $1) as booked,
              (select count(*) from subscription_payments where id = $1 and receipt_number is not null) as numbered,
              (select count(*) from events where type = 'user.subscription.updated' and strpos(body, $2) > 0) as announced`,
      [rows[0].id, toId("usr", session.userId)],
    );
    assert.deepEqual(counts.rows, [{ booked: 1, numbered: 1, announced: 1 }]);
  });

  test("of a late payment: completes a canceled purchase", async () => {
    line.trouble = "down";
    const bought = await createPurchase();
    market.clock.forward(11 * 60_000);
    line.trouble = "none";
    await reconcileCharges(market.service.ctx, orderTarget);
    assert.equal(await statusOf(bought), "canceled");
    await market.service.ctx.integrations.payments.charge({
      orderId: bought.orderId,
      amountMinor: 499n,
      currency: "USD",
      methodId: "pm_test_ok",
      userId: "usr_late",
      description: "came late",
      buyer: "present",
      recurs: false,
    });
    await assertAccepted(await deliver(webhookOf({ about: "payment", orderId: bought.orderId })));
    assert.equal(await statusOf(bought), "completed");
  });

  test("without the provider's answer: refused, so that the provider repeats it", async () => {
    const bought = await createPendingPurchase();
    const webhook = webhookOf({ about: "payment", orderId: bought.orderId });
    line.trouble = "down";
    const refused = await deliver(webhook);
    assertError(refused, 503, "SERVICE_UNAVAILABLE");
    assert.equal(refused.headers.get("retry-after"), "1");
    line.trouble = "none";
    await assertAccepted(await deliver(webhook));
    assert.equal(await statusOf(bought), "completed");
  });

  test("about an unknown object: accepted, changes nothing", async () => {
    const before = await dump();
    for (const webhook of [
      { about: "payment", orderId: "ord_01kf5v8q3xe8hb1d6c1m2k3n4p" },
      { about: "payment", orderId: "pay_01kf5v8q3xe8hb1d6c1m2k3n4p" },
      { about: "payment", orderId: "somebody else's" },
      { about: "refund", refundId: "refund_01kf5v8q3xe8hb1d6c1m2k3n4p" },
      { about: "payout", payoutId: "payout_01kf5v8q3xe8hb1d6c1m2k3n4p" },
      { about: "dispute", disputeId: "dp_unheard_of" },
      { about: "weather" },
    ])
      await assertAccepted(await deliver(webhookOf(webhook)));
    await assertAccepted(await deliver(signed("no JSON at all")));
    assert.equal(await dump(), before);
  });

  test("without a signature, with a wrong one or an old one: refused in the envelope", async () => {
    const bought = await createPendingPurchase();
    const webhook = webhookOf({ about: "payment", orderId: bought.orderId });
    const other = Buffer.from(webhook.body.toString().replace("payment", "refund_"));
    assertError(await deliver({ ...webhook, headers: {} }), 400, "INVALID_REQUEST", "signature");
    assertError(await deliver({ ...webhook, body: other }), 400, "INVALID_REQUEST", "signature");
    assertError(await deliver({ ...webhook, body: Buffer.alloc(0) }), 400, "INVALID_REQUEST", "signature");
    market.clock.forward(300_000);
    await assertAccepted(await deliver({ body: Buffer.from("{}"), headers: signed("{}").headers }));
    market.clock.forward(1_000);
    assertError(await deliver(webhook), 400, "INVALID_REQUEST", "signature");
    assert.equal(await statusOf(bought), "pending");
  });

  test("of a provider that is not in use: 404, and so is a path below it", async () => {
    const webhook = webhookOf({ about: "weather" });
    for (const path of ["/payments/webhooks/stripe", "/payments/webhooks/", "/v1/payments/webhooks/fake"])
      assert.ok([401, 404].includes((await deliver(webhook, path)).status), path);
    assertError(await deliver(webhook, "/payments/webhooks/stripe"), 404, "NOT_FOUND");
  });

  test("over 256 KiB: not read", async () => {
    const text = JSON.stringify({ about: "weather", forecast: "x".repeat(256 * 1024) });
    assertError(await deliver(signed(text)), 413, "PAYLOAD_TOO_LARGE");
    const fits = text.slice(0, 256 * 1024);
    await assertAccepted(await deliver(signed(fits)));
  });
});

suite("webhooks", () => {
  /** The final state of a purchase for each payment method. */
  const endings: Record<string, string> = {
    pm_test_ok: "completed",
    pm_test_declined: "failed",
    pm_test_requires_action: "requires_action",
    pm_test_duplicate_webhook: "completed",
    pm_test_webhook_before_response: "completed",
  };

  test("in any order, doubled and concurrent: the same final state; replayed twice and in reverse they change nothing", async () => {
    const methods = fc.array(fc.constantFrom(...Object.keys(endings)), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(methods, fc.gen(), async (named, choose) => {
        const bought: Bought[] = [];
        for (const method of named) bought.push(await createPendingPurchase(method));
        const posted = (await Promise.all(bought.map(({ orderId }) => receiver.eventsAbout(orderId)))).flat();
        const doubled = [...posted, ...posted];
        const order = choose(
          fc.shuffledSubarray,
          doubled.map((_, at) => at),
          { minLength: doubled.length },
        );
        for (const reply of await Promise.all(order.map((at) => deliver(doubled[at]!))))
          await assertAccepted(reply);
        const expected = named.map((method) => endings[method]);
        assert.deepEqual(await Promise.all(bought.map(statusOf)), expected);
        const settled = await dump();
        for (const webhook of [...doubled, ...doubled.toReversed()])
          await assertAccepted(await deliver(webhook));
        assert.equal(await dump(), settled);
      }),
      { numRuns: runs(8, 8) },
    );
  });

  test("repeated, or before the response of the charge: one sale", async () => {
    const acceptedWebhooks = () =>
      market.logs.filter((text) => /"route":"\/payments\/webhooks\/:provider","status":200/.test(text));
    const before = acceptedWebhooks().length;
    provider.sendWebhooksTo(market.origin + PATH);
    const early = await createPurchase("pm_test_webhook_before_response");
    const doubled = await createPurchase("pm_test_duplicate_webhook");
    for (const { reply } of [early, doubled]) assert.equal(reply.status, 201, reply.text);
    await until("three notices are taken", () => acceptedWebhooks().length >= before + 3);
    for (const bought of [early, doubled]) await soldOnce(bought);
  });
});

suite("the pages of the test payment provider", () => {
  const form = { "content-type": "application/x-www-form-urlencoded" };
  let own: Market;
  let buyer: Client;
  let productId: string;
  before(async () => {
    own = await openMarket();
    buyer = await own.createUser();
    productId = await createProduct(await own.createUser());
  });
  after(() => own.close());
  const buyAt = async (paymentMethodId: string, by = buyer) => {
    const product = await createProduct(await own.createUser());
    return (await by.post("/v1/purchases", { productId: product, paymentMethodId })).body.data;
  };
  const submit = (url: string, decision: string, headers = {}) =>
    own.as(null).request("POST", url, { body: `decision=${decision}`, headers: { ...form, ...headers } });
  /** A browser on another machine, behind a proxy. */
  const elsewhere = { "x-forwarded-for": "203.0.113.7" };
  const waitForStatus = async (orderId: string, status: string) => {
    const now = async () => (await buyer.get(`/v1/purchases/${orderId}`)).body.data.status;
    await becomes(now, (current) => current === status);
  };

  test("nextAction.url: a buyer on another machine confirms at the service's own origin", async () => {
    const input = { productId, paymentMethodId: "pm_test_requires_action" };
    const { orderId, nextAction } = (await buyer.post("/v1/purchases", input)).body.data;
    assert.ok(nextAction.url.startsWith(`${own.origin}/dev/payments/authorize/ch_`), nextAction.url);
    const page = await own.as(null).get(nextAction.url, elsewhere);
    assert.equal(page.status, 200);
    assert.match(page.text, /Approve this payment/);
    assert.match(page.headers.get("content-security-policy")!, /^default-src 'none'; style-src 'sha256-/);
    assert.deepEqual(
      ["cache-control", "x-frame-options", "referrer-policy"].map((name) => page.headers.get(name)),
      ["no-store", "DENY", "same-origin"],
    );
    const sameOrigin = { ...elsewhere, origin: own.origin };
    const reply = await submit(nextAction.url, "approve", sameOrigin);
    assert.deepEqual(
      [reply.status, reply.headers.get("location")],
      [303, new URL(nextAction.url).pathname],
      "back to the page",
    );
    assert.match((await own.as(null).get(nextAction.url, elsewhere)).text, /<h1>Payment approved/);
    await waitForStatus(orderId, "completed");
  });

  test("a form from another site: refused, changes nothing", async () => {
    const { orderId, nextAction } = await buyAt("pm_test_requires_action");
    const foreign: object[] = [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { origin: "https://evil.example" },
      { origin: "null" },
    ];
    for (const headers of foreign) {
      const reply = await submit(nextAction.url, "approve", headers);
      assert.equal(assertError(reply, 403, "UNAUTHORIZED").required, "same-origin");
    }
    assert.equal((await buyer.get(`/v1/purchases/${orderId}`)).body.data.status, "requires_action");
  });

  test("/dev/payments: only the operator decides, at the service's own origin", async () => {
    const { orderId } = await buyAt("pm_test_dispute");
    const page = await own.as(null).get("/dev/payments");
    assert.equal(page.status, 200);
    assert.match(page.text, /Test bank: pending decisions/);
    const [, action = ""] = new RegExp(`action="([^"]*)">\\n[^\\n]*${orderId}`).exec(page.text) ?? [];
    assert.match(action, /^\/dev\/payments\/disputes\/dp_/);
    assertError(await own.as(null).get("/dev/payments", elsewhere), 404, "NOT_FOUND");
    assertError(await submit(action, "lost", elsewhere), 404, "NOT_FOUND");
    assertError(await submit(action, "lost", { origin: "https://evil.example" }), 403, "UNAUTHORIZED");
    const reply = await submit(action, "lost", { "sec-fetch-site": "same-origin" });
    assert.deepEqual([reply.status, reply.headers.get("location")], [303, "/dev/payments"]);
    await waitForStatus(orderId, "refunded");
  });

  test("an unknown id, or one that leaves its path: 404", async () => {
    const { port } = new URL(own.origin);
    for (const id of [
      "ch_nobody",
      "..",
      "%2e%2e",
      "..%2f..%2fv1%2fcharges",
      "%2e%2e%2fdisputes",
      "a%00",
      "a%3fb",
    ]) {
      for (const noun of ["authorize", "onboarding", "cards"]) {
        // fetch itself resolves `..`.
        const asking = request({ host: "127.0.0.1", port, path: `/dev/payments/${noun}/${id}` }).end();
        const [reply] = await once(asking, "response");
        reply.resume();
        assert.equal(reply.statusCode, 404, `${noun}/${id}`);
      }
    }
    for (const path of ["v1/charges", "v1/lists/charges", "authorize", "authorize/ch_a/confirm"])
      assertError(await own.as(null).get(`/dev/payments/${path}`), 404, "NOT_FOUND");
  });

  test("the onboarding page: below the same path, under an unguessable id", async () => {
    const seller = await own.createUser({ role: "seller" });
    const session = await own.createSession(seller.userId);
    const { url } = (await session.post("/v1/account/payout-account/onboarding")).body.data;
    assert.match(url, new RegExp(`^${own.origin}/dev/payments/onboarding/acct_test_[0-9a-f]{32}$`));
    assert.match((await own.as(null).get(url, elsewhere)).text, /Finish/);
    const reply = await submit(url, "", { ...elsewhere, origin: own.origin });
    assert.deepEqual([reply.status, reply.headers.get("location")], [303, new URL(url).pathname]);
    assert.equal((await session.get("/v1/account/payout-account")).body.data.payoutsEnabled, true);
  });

  test("the page for cards: below the same path, leads back with a card that the buyer can store", async () => {
    const buyer = await own.createUser();
    const asked = { returnTo: "/checkout/prod_1?code=SUMMER" };
    const { url } = (await buyer.post("/v1/payment-methods/setup", asked)).body.data;
    assert.match((await own.as(null).get(url, elsewhere)).text, /pm_test_declined/);
    const headers = { ...form, ...elsewhere, origin: own.origin };
    const choose = (card: string) => own.as(null).request("POST", url, { body: `card=${card}`, headers });
    const back = new URL((await choose("pm_test_declined")).headers.get("location")!, own.origin);
    assert.equal(back.href, `${own.origin}/checkout/prod_1?code=SUMMER&card=pm_test_declined`);
    const stored = await buyer.post("/v1/payment-methods", { token: back.searchParams.get("card") });
    assert.equal(stored.status, 201, stored.text);
    assert.equal((await choose("pm_test_other")).status, 404);
    const foreign = Buffer.from("//evil.example").toString("base64url");
    assert.equal((await own.as(null).get(`/dev/payments/cards/${foreign}`)).status, 404);
    for (const returnTo of [
      "//evil.example",
      "https://evil.example",
      "/\\evil.example",
      "account",
      "/a\tb",
      "",
    ]) {
      const reply = await buyer.post("/v1/payment-methods/setup", { returnTo });
      assertError(reply, 400, "INVALID_REQUEST", "returnTo");
    }
  });

  test("another payment provider: has no pages", async () => {
    assertError(await market.as(null).get("/dev/payments"), 404, "NOT_FOUND");
    assertError(await market.as(null).get("/dev/payments/authorize/ch_a"), 404, "NOT_FOUND");
  });
});

test("the test provider's own webhooks: arrive without configuration", async () => {
  const own = await openMarket();
  try {
    const [maker, buyer] = [await own.createUser(), await own.createUser()];
    const productId = await createProduct(maker);
    const input = { productId, paymentMethodId: "pm_test_requires_action" };
    const { url } = (await buyer.post("/v1/purchases", input)).body.data.nextAction;
    await fetch(url, { method: "POST", body: new URLSearchParams({ decision: "approve" }) });
    const status = async () => (await buyer.get("/v1/purchases")).body.data[0].status;
    await becomes(status, (current) => current === "completed");
  } finally {
    await own.close();
  }
});
