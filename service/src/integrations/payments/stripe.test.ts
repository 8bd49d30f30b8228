import assert from "node:assert/strict";
import { after, before, mock, suite, test } from "node:test";
import fc from "fast-check";
import Stripe from "stripe";
import { emailsToUser, unwrapLines } from "../../../test/emails.ts";
import { createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { bookEarnings } from "../../../test/payouts.ts";
import { accountsOf } from "../../../test/refunds.ts";
import { memoryReferences, type StripeServer, startStripeServer } from "../../../test/stripe-server.ts";
import { reconcileCharges } from "../../commerce/charges/charges.ts";
import { detachAtProvider } from "../../commerce/charges/payment-methods.ts";
import { orderTarget } from "../../commerce/checkout/order-payment.ts";
import { verifyLedger } from "../../commerce/ledger/verification.ts";
import { reconcilePayouts, syncPayoutFromProvider } from "../../commerce/payouts/payout-submission.ts";
import { payOutBySchedule } from "../../commerce/payouts/schedule.ts";
import { planPaymentTarget } from "../../commerce/plans/plan-payment.ts";
import { renewSubscriptions } from "../../commerce/plans/renewal.ts";
import { toUuid } from "../../core/ids.ts";
import { currencies } from "../../core/money/amount.ts";
import { listScheduledJobs, noticeHandlers } from "../../jobs.ts";
import { type ChargeRequest, type Payments, PaymentUnknown, WebhookSignatureError } from "./payments.ts";
import { createStripePayments } from "./stripe.ts";
import { fromStripe, toStripe } from "./stripe-amounts.ts";

const secretKey = "sk_test_local";
const webhookSecret = "whsec_local";
const PLAN = "/v1/account/subscription";

let server: StripeServer;
let payments: Payments;
before(async () => {
  // Stripe's client waits half a second before it retries.
  mock.method(
    Stripe.prototype as object as { getInitialNetworkRetryDelay(): number },
    "getInitialNetworkRetryDelay",
    () => 0.01,
  );
  server = await startStripeServer(secretKey);
  payments = clientOf(server);
});
after(() => {
  mock.restoreAll();
  return server.close();
});

const clientOf = ({ url }: { url: string }) =>
  createStripePayments({
    secretKey,
    webhookSecret,
    apiUrl: url,
    references: memoryReferences(),
    returnUrl: () => "https://stoa.example",
  });

let orders = 0;
const request = (methodId = "pm_card_visa", amountMinor = 1999n): ChargeRequest => ({
  orderId: `ord_${++orders}`,
  amountMinor,
  currency: "USD",
  methodId,
  userId: "usr_1",
  description: "Interview coach",
  buyer: "present",
  recurs: false,
});

suite("charge", () => {
  test("succeeded: has the card and Stripe's fee", async () => {
    const outcome = await payments.charge(request());
    assert.partialDeepStrictEqual(outcome, {
      state: "succeeded",
      method: { brand: "visa", last4: "4242" },
      feeMinor: 88n,
    });
  });

  test("repeated: creates one intent and charges once", async () => {
    const order = request();
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => payments.charge(order)));
    assert.deepEqual(new Set(outcomes.map(({ state }) => state)), new Set(["succeeded"]));
    assert.equal(server.intentsOf(order.orderId).length, 1);
  });

  test("declined: has its decline code, and stays declined", async () => {
    const order = request("pm_card_chargeDeclinedInsufficientFunds");
    const declined = { state: "declined", declineCode: "insufficient_funds", method: { last4: "9995" } };
    assert.partialDeepStrictEqual(await payments.charge(order), declined);
    assert.partialDeepStrictEqual(await payments.findCharge(order.orderId), declined);
  });

  test("bank asks for confirmation: waits with its URL and succeeds after the approval", async () => {
    const order = request("pm_card_authenticationRequired");
    const waiting = await payments.charge(order);
    assert.ok(waiting.state === "requires_action");
    assert.match(waiting.url, /^https:\/\/hooks\.stripe\.example\/3ds/);
    const back = new URL(waiting.url).searchParams.get("back");
    assert.equal(back, `https://stoa.example/orders/${order.orderId}`);
    server.approve(waiting.paymentId);
    assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
  });

  test("waiting: can be canceled; a paid one cannot", async () => {
    const waiting = request("pm_card_authenticationRequired");
    await payments.charge(waiting);
    assert.equal((await payments.cancelCharge(waiting.orderId))?.state, "canceled");
    const paid = request();
    await payments.charge(paid);
    assert.equal((await payments.cancelCharge(paid.orderId))?.state, "succeeded");
    assert.equal(await payments.cancelCharge("ord_unheard_of"), null);
  });

  test("unknown method: leaves nothing at Stripe", async () => {
    assert.deepEqual(await payments.charge(request("pm_nobody")), { state: "unknown_method" });
  });

  test("lost response at any step: findCharge returns the real state", async () => {
    for (const step of [/POST .*payment_intents$/, /POST .*\/confirm$/, /GET .*payment_intents\/pi/]) {
      const order = request();
      server.loseAnswer(step);
      const outcome = await payments.charge(order).catch((error) => error);
      // The Stripe client retries under the same key; when it stops, the result is unknown.
      assert.ok(outcome instanceof PaymentUnknown || outcome.state === "succeeded");
      const found = await payments.findCharge(order.orderId);
      assert.equal((found ?? (await payments.charge(order))).state, "succeeded");
      assert.equal(server.intentsOf(order.orderId).length, 1);
    }
  });

  test("buyer absent: declined if the bank asks, unless the method was set up for it", async () => {
    const absent = (methodId: string) => ({ ...request(methodId), buyer: "absent" as const, recurs: true });
    const needs = { state: "declined", declineCode: "authentication_required" };
    const { id } = (await payments.findMethod("usr_1", "pm_card_authenticationRequiredOnSetup"))!;
    const unready = absent(id);
    assert.partialDeepStrictEqual(await payments.charge(unready), needs);
    assert.partialDeepStrictEqual(await payments.findCharge(unready.orderId), needs);
    const first = await payments.charge({ ...request(id), recurs: true });
    assert.ok(first.state === "requires_action");
    server.approve(first.paymentId);
    assert.equal((await payments.charge(absent(id))).state, "succeeded");
    assert.partialDeepStrictEqual(await payments.charge(absent("pm_card_authenticationRequired")), needs);
  });

  test("Stripe unreachable: PaymentUnknown", async () => {
    const stopped = await startStripeServer(secretKey);
    await stopped.close();
    await assert.rejects(clientOf(stopped).charge(request()), PaymentUnknown);
  });
});

suite("amount", () => {
  const inCurrency = (currency: string, amountMinor: bigint) => ({ ...request(), currency, amountMinor });
  const requestedAmount = (orderId: string) => server.intentsOf(orderId)[0]?.["amount"];

  test("currencies with other units: are converted", async () => {
    for (const [currency, minor, units] of [
      ["USD", 1_999n, 1_999],
      ["JPY", 500n, 500],
      ["KWD", 1_230n, 1_230],
      ["ISK", 500n, 50_000],
      ["UGX", 700n, 70_000],
      ["MGA", 12_300n, 123],
    ] as const) {
      const order = inCurrency(currency, minor);
      assert.equal((await payments.charge(order)).state, "succeeded", currency);
      assert.equal(requestedAmount(order.orderId), units, currency);
    }
  });

  test("amount that Stripe cannot express: is declined without a request", async () => {
    for (const [currency, minor] of [
      ["KWD", 1_234n],
      ["MGA", 12_345n],
    ] as const) {
      const order = inCurrency(currency, minor);
      const declined = { state: "declined", declineCode: "amount_not_supported" };
      assert.partialDeepStrictEqual(await payments.charge(order), declined);
      assert.equal(requestedAmount(order.orderId), undefined);
    }
  });

  test("amounts from Stripe: are converted back", () => {
    const anyMinor = fc.bigInt({ min: 0n, max: 99_999_999n });
    fc.assert(
      fc.property(anyMinor, fc.constantFrom(...currencies), (minor, currency) => {
        const amount = toStripe(minor, currency);
        if (amount !== null) assert.equal(fromStripe(amount, currency.toLowerCase()), minor);
      }),
    );
  });
});

suite("refund", () => {
  const paid = async (methodId?: string) => {
    const outcome = await payments.charge(request(methodId));
    assert.ok(outcome.state === "succeeded");
    return outcome.paymentId;
  };

  test("repeated: refunds once, and is found by our id", async () => {
    const refund = { refundId: "refund_1", paymentId: await paid(), amountMinor: 500n, currency: "USD" };
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => payments.refund(refund)));
    assert.equal(new Set(outcomes.map(({ providerRefundId }) => providerRefundId)).size, 1);
    assert.deepEqual(await payments.findRefund("refund_1"), outcomes[0]);
    assert.equal(await payments.findRefund("refund_unheard_of"), null);
  });

  test("failed or over the charge: is reported as failed", async () => {
    const fails = {
      refundId: "refund_2",
      paymentId: await paid("pm_card_refundFail"),
      amountMinor: 500n,
      currency: "USD",
    };
    assert.partialDeepStrictEqual(await payments.refund(fails), {
      state: "failed",
      failureCode: "expired_or_canceled_card",
    });
    const tooMuch = { refundId: "refund_3", paymentId: await paid(), amountMinor: 2_000n, currency: "USD" };
    assert.deepEqual(await payments.refund(tooMuch), {
      state: "failed",
      providerRefundId: null,
      failureCode: "charge_already_refunded",
    });
  });
});

test("payout: one transfer to the account; to an unknown account it fails", async () => {
  const payout = { payoutId: "payout_1", destination: "acct_seller", amountMinor: 5_000n, currency: "USD" };
  const paid = await payments.payOut(payout);
  assert.equal(paid.state, "completed");
  assert.deepEqual(await payments.payOut(payout), paid);
  assert.deepEqual(await payments.findPayout("payout_1"), paid);
  assert.equal(await payments.findPayout("payout_unheard_of"), null);
  const failed = await payments.payOut({ ...payout, payoutId: "payout_2", destination: "acct_gone" });
  assert.partialDeepStrictEqual(failed, { state: "failed", failureCode: "resource_missing" });
});

test("request in progress under the same key: PaymentUnknown, not a refusal", async () => {
  const order = request();
  const { paymentId } = (await payments.charge(request())) as { paymentId: string };
  const refund = { refundId: "refund_busy", paymentId, amountMinor: 100n, currency: "USD" };
  const payout = { payoutId: "payout_busy", destination: "acct_seller", amountMinor: 100n, currency: "USD" };
  server.isBusy(/^POST/);
  for (const ask of [
    () => payments.charge(order),
    () => payments.refund(refund),
    () => payments.payOut(payout),
    () => payments.findMethod("usr_busy", "pm_card_visa"),
    () => payments.onboard("usr_busy"),
  ])
    await assert.rejects(ask, PaymentUnknown);
  server.isBusy(null);
  assert.equal((await payments.charge(order)).state, "succeeded");
  assert.equal((await payments.refund(refund)).state, "succeeded");
  assert.equal((await payments.payOut(payout)).state, "completed");
});

suite("payout over our balance", () => {
  const payout = (payoutId: string) => ({
    ...{ payoutId, destination: "acct_seller", amountMinor: 5_000n, currency: "USD" },
  });
  const waits = { state: "waits", providerPayoutId: null, waitsFor: "balance_insufficient" };
  const transfersOf = async (payoutId: string) =>
    server.asked.filter((one) => one === "POST /v1/transfers").length && payments.findPayout(payoutId);
  after(() => server.hasFunds(Number.POSITIVE_INFINITY));

  test("waits, and is paid once when the balance suffices, whatever the number of attempts", async () => {
    const payoutFields = payout("payout_poor");
    server.hasFunds(4_999);
    for (let round = 0; round < 3; round++)
      assert.deepEqual(
        await Promise.all(Array.from({ length: 5 }, () => payments.payOut(payoutFields))),
        Array.from({ length: 5 }, () => waits),
      );
    assert.equal(await transfersOf("payout_poor"), null);
    server.hasFunds(10_000);
    const paid = await Promise.all(Array.from({ length: 20 }, () => payments.payOut(payoutFields)));
    assert.deepEqual(
      new Set(paid.map((one) => JSON.stringify(one))),
      new Set([JSON.stringify(await payments.findPayout("payout_poor"))]),
    );
    assert.equal(paid[0]!.state, "completed");
    const late = { ...payout("payout_rest") };
    assert.equal((await payments.payOut(late)).state, "completed", "5,000 are left after one payout");
    assert.deepEqual(await payments.payOut(payout("payout_more")), waits);
  });

  test("lost response: the next attempt uses the same key", async () => {
    const payoutFields = payout("payout_lost");
    server.hasFunds(10_000);
    server.loseAnswer(/POST .*transfers$/);
    const outcome = await payments.payOut(payoutFields).catch((error) => error);
    assert.ok(outcome instanceof PaymentUnknown || outcome.state === "completed");
    assert.equal((await payments.payOut(payoutFields)).state, "completed");
    assert.equal(
      (await payments.payOut(payout("payout_other"))).state,
      "completed",
      "the first payout was paid once",
    );
  });
});

test("payout reversed in part or whole: reports the reversed amount or `returned`", async () => {
  const payout = { payoutId: "payout_r", destination: "acct_seller", amountMinor: 5_000n, currency: "USD" };
  const { providerPayoutId } = (await payments.payOut(payout)) as { providerPayoutId: string };
  server.change(providerPayoutId, { amount_reversed: 1_200 });
  assert.deepEqual(await payments.findPayout("payout_r"), {
    ...{ state: "completed", providerPayoutId, reversedMinor: 1_200n },
  });
  server.change(providerPayoutId, { amount_reversed: 5_000, reversed: true });
  assert.deepEqual(await payments.findPayout("payout_r"), { state: "returned", providerPayoutId });
});

test("payout account: one for each user, without payouts before its setup", async () => {
  const made = await Promise.all(Array.from({ length: 5 }, () => payments.onboard("usr_seller")));
  const { accountId } = made[0]!;
  assert.deepEqual(new Set(made.map((one) => one.accountId)), new Set([accountId]));
  assert.equal(new Set(made.map(({ url }) => url)).size, 5, "each link is new");
  assert.match(made[0]!.url, /^https:\/\/connect\.stripe\.example\/setup/);
  assert.notEqual((await payments.onboard("usr_other")).accountId, accountId);
  assert.deepEqual(await payments.findPayoutAccount(accountId), {
    payoutsEnabled: false,
    disabledReason: "requirements.past_due",
    requirements: [
      { name: "external_account", status: "past_due", problem: null },
      { name: "individual.verification.document", status: "due", problem: "The document is expired." },
      { name: "individual.address.city", status: "in_review", problem: null },
    ],
    dueBy: new Date("2030-01-01T00:00:00Z"),
  });
  const payout = { payoutId: "payout_early", destination: accountId, amountMinor: 1_000n, currency: "USD" };
  assert.partialDeepStrictEqual(await payments.payOut(payout), {
    ...{ state: "failed", failureCode: "insufficient_capabilities_for_transfer" },
  });
  server.finishOnboarding(accountId);
  const healthy = { payoutsEnabled: true, disabledReason: null, requirements: [], dueBy: null };
  assert.deepEqual(await payments.findPayoutAccount(accountId), healthy);
  server.change(accountId, { capabilities: { transfers: "pending" } });
  assert.deepEqual(await payments.findPayoutAccount(accountId), {
    ...healthy,
    ...{ payoutsEnabled: false, disabledReason: "transfers.pending" },
  });
  assert.equal(await payments.findPayoutAccount("acct_of_nobody"), null);
});

test("dispute: has its order, fee and state", async () => {
  const order = request();
  const { paymentId } = (await payments.charge(order)) as { paymentId: string };
  const disputeId = server.openDispute(paymentId);
  assert.deepEqual(await payments.findDispute(disputeId), {
    disputeId,
    orderId: order.orderId,
    state: "open",
    amountMinor: 1999n,
    feeMinor: 1500n,
    reason: "fraudulent",
    evidenceDueBy: new Date("2026-07-01T23:59:59Z"),
    createdAt: new Date(server.objectOf(disputeId)["created"] * 1000),
  });
  server.closeDispute(disputeId, "lost");
  assert.equal((await payments.findDispute(disputeId))?.state, "lost");
  assert.equal(await payments.findDispute("dp_unheard_of"), null);
});

test("inquiry: is reported as such, and when it closes or becomes a dispute", async () => {
  const { paymentId } = (await payments.charge(request())) as { paymentId: string };
  const disputeId = server.openDispute(paymentId, { status: "warning_needs_response" });
  const states = [];
  for (const status of [
    "warning_needs_response",
    "warning_under_review",
    "warning_closed",
    "needs_response",
  ]) {
    server.closeDispute(disputeId, status);
    states.push((await payments.findDispute(disputeId))!.state);
  }
  assert.deepEqual(states, ["inquiry", "inquiry", "inquiry_closed", "open"]);
});

suite("lists", () => {
  let clock = new Date("2026-06-15T12:00:00Z");
  let own: StripeServer;
  let listed: Payments;
  before(async () => {
    own = await startStripeServer(secretKey, () => clock);
    listed = clientOf(own);
  });
  after(() => own.close());

  const idsOf = async <T>(items: AsyncIterable<T>, idOf: (item: T) => string) => {
    const ids: string[] = [];
    for await (const item of items) ids.push(idOf(item));
    return ids.toSorted();
  };

  test("objects since a time: all pages, without those of other services", async () => {
    const made: { at: Date; ids: Record<string, string> }[] = [];
    for (let hour = 0; hour < 7; hour++) {
      clock = new Date(clock.getTime() + 3_600_000);
      const order = request();
      const { paymentId } = (await listed.charge(order)) as { paymentId: string };
      const refundId = `refund_list_${hour}`;
      await listed.refund({ refundId, paymentId, amountMinor: 100n, currency: "USD" });
      const byHand = own.refundByHand(paymentId, 200);
      const dispute = own.openDispute(paymentId);
      const payoutId = `payout_list_${hour}`;
      const destination = "acct_seller";
      await listed.payOut({ payoutId, destination, amountMinor: 100n, currency: "USD" });
      made.push({ at: clock, ids: { charge: order.orderId, refundId, byHand, dispute, payoutId } });
    }
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 7 }), async (from) => {
        const since = made[from]?.at ?? new Date(clock.getTime() + 1_000);
        const due = (name: string) => made.slice(from).map(({ ids }) => ids[name]!);
        assert.deepEqual(await idsOf(listed.listCharges(since), ({ orderId }) => orderId), due("charge"));
        assert.deepEqual(
          await idsOf(listed.listRefunds(since), (one) => one.refundId ?? one.providerRefundId),
          [...due("refundId"), ...due("byHand")].toSorted(),
        );
        assert.deepEqual(
          await idsOf(listed.listDisputes(since), ({ disputeId }) => disputeId),
          due("dispute").toSorted(),
        );
        assert.deepEqual(await idsOf(listed.listPayouts(since), ({ payoutId }) => payoutId), due("payoutId"));
      }),
      { numRuns: runs(8) },
    );
  });

  test("page without a response: PaymentUnknown", async () => {
    own.loseAnswer(/GET .*disputes/);
    const read = async () => {
      for await (const _ of listed.listDisputes(new Date(0))) break;
    };
    await read().catch((error) => assert.ok(error instanceof PaymentUnknown));
  });
});

test("method: is attached to its user; an unknown one is null", async () => {
  const method = (await payments.findMethod("usr_1", "pm_card_visa"))!;
  assert.partialDeepStrictEqual(method, { brand: "visa", last4: "4242" });
  assert.deepEqual(await payments.findMethod("usr_1", method.id), method, "the same method again");
  assert.equal(await payments.findMethod("usr_2", method.id), null, "the method belongs to another user");
  for (const token of ["pm_nobody", "..", ".", "pm_card_visa/../../customers", "pm_card_visa?a", " "])
    assert.equal(await payments.findMethod("usr_1", token), null);
  assert.equal(
    await payments.findMethod("usr_1", "pm_card_chargeDeclinedAttach"),
    null,
    "the bank declined the card",
  );
});

suite("parseWebhook", () => {
  const event = (type: string, object: object) =>
    Buffer.from(JSON.stringify({ id: "evt_1", object: "event", type, data: { object } }));
  const signed = (body: Buffer, secret = webhookSecret, timestamp?: number) => ({
    "stripe-signature": Stripe.webhooks.generateTestHeaderString({
      payload: body.toString(),
      secret,
      ...(timestamp && { timestamp }),
    }),
  });
  const read = (body: Buffer) => payments.parseWebhook(body, signed(body));

  test("events: name the row or dispute to read", async () => {
    const about = async (type: string, object: object) => read(event(type, object));
    const intent = { object: "payment_intent", metadata: { order_id: "ord_7" } };
    assert.deepEqual(await about("payment_intent.succeeded", intent), { about: "payment", orderId: "ord_7" });
    const charge = { object: "charge", metadata: { order_id: "ord_7" } };
    assert.deepEqual(await about("charge.refunded", charge), {
      about: "refunds of a payment",
      orderId: "ord_7",
    });
    assert.equal(await about("charge.succeeded", charge), null);
    const refund = { object: "refund", metadata: { refund_id: "refund_7" } };
    assert.deepEqual(await about("refund.failed", refund), { about: "refund", refundId: "refund_7" });
    const transfer = { object: "transfer", metadata: { payout_id: "payout_7" } };
    assert.deepEqual(await about("transfer.reversed", transfer), { about: "payout", payoutId: "payout_7" });
    assert.deepEqual(await about("charge.dispute.created", { id: "dp_7" }), {
      about: "dispute",
      disputeId: "dp_7",
    });
    assert.equal(await about("customer.created", { object: "customer" }), null);
    assert.equal(await about("payment_intent.succeeded", { object: "payment_intent", metadata: {} }), null);
  });

  test("unsigned, old or altered: throws", async () => {
    const body = event("payment_intent.succeeded", { metadata: { order_id: "ord_7" } });
    const long = Math.floor(Date.now() / 1000) - 301;
    await assert.rejects(payments.parseWebhook(body, {}), WebhookSignatureError);
    await assert.rejects(payments.parseWebhook(body, signed(body, "whsec_other")), WebhookSignatureError);
    await assert.rejects(
      payments.parseWebhook(body, signed(body, webhookSecret, long)),
      WebhookSignatureError,
    );
    await assert.rejects(
      payments.parseWebhook(Buffer.concat([body, Buffer.from(" ")]), signed(body)),
      WebhookSignatureError,
    );
  });
});

suite("marketplace with Stripe", () => {
  let market: Market;
  before(async () => {
    market = await openMarket({ payments });
  });
  after(() => market.close());

  test("purchase: succeeds, and reconciliation finds a lost charge", async () => {
    const productId = await createProduct(await market.createUser());
    const buyer = await market.createUser();
    const buy = (paymentMethodId?: string) => buyer.post("/v1/purchases", { productId, paymentMethodId });
    const addCard = async (token: string): Promise<string> => {
      const stored = await buyer.post("/v1/payment-methods", { token });
      assert.equal(stored.status, 201, stored.text);
      return stored.body.data.id;
    };
    assertError(await buy(), 422, "VALIDATION_ERROR", "paymentMethodId");
    assertError(await buy("pm_nobody"), 404, "PAYMENT_METHOD_NOT_FOUND");
    const { reason } = assertError(
      await buy("pm_test_ok"),
      404,
      "PAYMENT_METHOD_NOT_FOUND",
      "paymentMethodId",
    );
    assert.match(reason, /pm_card_visa/);
    const unknown = await buyer.post("/v1/payment-methods", { token: "pm_test_ok" });
    assertError(unknown, 404, "PAYMENT_METHOD_NOT_FOUND", "token");
    await addCard("pm_card_chargeDeclinedInsufficientFunds");
    assertError(await buy(), 402, "INSUFFICIENT_FUNDS");
    const card = await addCard("pm_card_visa");
    server.loseAnswer(/POST .*\/confirm$/);
    const reply = await buy(card);
    assert.ok(reply.status === 201 || reply.status === 202, reply.text);
    market.clock.forward(61_000);
    await reconcileCharges(market.service.ctx, orderTarget);
    const { data } = (await buyer.get(`/v1/purchases/${reply.body.data.orderId}`)).body;
    assert.partialDeepStrictEqual(data, { status: "completed", paymentMethod: { last4: "4242" } });
    assert.equal(server.intentsOf(reply.body.data.orderId).length, 1);
  });

  test("refund in Stripe's dashboard: is booked once", async () => {
    const seller = await market.createUser();
    const buyer = await market.createUser();
    await buyer.post("/v1/payment-methods", { token: "pm_card_visa" });
    const productId = await createProduct(seller, { price: 10 });
    const { orderId } = (await buyer.post("/v1/purchases", { productId })).body.data;
    const intentId: string = server.intentsOf(orderId)[0]!["id"];
    const sendEvent = () =>
      noticeHandlers["refunds of a payment"](market.service.ctx, { about: "refunds of a payment", orderId });
    const readStates = async () => {
      const { status, refundedAmount, entitlement, refunds } = (await buyer.get(`/v1/purchases/${orderId}`))
        .body.data;
      return [status, refundedAmount, entitlement.status, refunds.length];
    };
    server.refundByHand(intentId, 400);
    await Promise.all([sendEvent(), sendEvent()]);
    assert.deepEqual(await readStates(), ["partially_refunded", 4, "active", 1]);
    server.refundByHand(intentId, 600);
    for (let times = 0; times < 2; times++) await sendEvent();
    assert.deepEqual(await readStates(), ["refunded", 10, "revoked", 2]);
    const [refund] = (await buyer.get("/v1/refunds")).body.data;
    assert.partialDeepStrictEqual(refund, { requestedBy: "provider", amount: 6, status: "succeeded" });
    assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
  });

  suite("refund in Stripe's dashboard", () => {
    /** Posts Stripe's webhook, which names the refund and its intent and no row of ours. */
    const posts = async (type: string, refundId: string): Promise<void> => {
      const object = { ...server.objectOf(refundId) };
      const payload = JSON.stringify({ id: "evt_1", object: "event", type, data: { object } });
      const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret: webhookSecret });
      const reply = await market.as(null).request("POST", "/payments/webhooks/stripe", {
        body: new TextEncoder().encode(payload),
        headers: { "content-type": "application/json", "stripe-signature": signature },
      });
      assert.equal(reply.status, 200, reply.text);
    };

    /** A purchase for 10.00 that is refunded in full in the dashboard. */
    async function createDashboardRefund(status: "pending" | "succeeded") {
      const buyer = await market.createUser();
      await buyer.post("/v1/payment-methods", { token: "pm_card_visa" });
      const productId = await createProduct(await market.createUser(), { price: 10 });
      const { orderId } = (await buyer.post("/v1/purchases", { productId })).body.data;
      const refundId = server.refundByHand(server.intentsOf(orderId)[0]!["id"], 1000, status);
      await posts("refund.created", refundId);
      const readStates = async () => {
        const purchase = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
        const states = purchase.refunds.map((refund: { status: string }) => refund.status);
        return [purchase.status, purchase.refundedAmount, purchase.entitlement.status, ...states];
      };
      return { orderId, refundId, readStates };
    }

    const accounts = (orderId: string) => accountsOf(market, orderId);
    const PAID = { processor_fees: -59, provider_clearing: -941, platform_revenue: 100, seller: 900 };
    const REFUNDED = { processor_fees: -59, provider_clearing: 59 };

    test("pending, then succeeded", async () => {
      const { orderId, refundId, readStates } = await createDashboardRefund("pending");
      assert.deepEqual(await readStates(), ["completed", 0, "held", "processing"]);
      assert.deepEqual(await accounts(orderId), PAID);
      server.change(refundId, { status: "succeeded" });
      for (let times = 0; times < 2; times++) await posts("refund.updated", refundId);
      assert.deepEqual(await readStates(), ["refunded", 10, "revoked", "succeeded"]);
      assert.deepEqual(await accounts(orderId), REFUNDED);
    });

    test("pending, then failed", async () => {
      const { orderId, refundId, readStates } = await createDashboardRefund("pending");
      server.change(refundId, { status: "failed", failure_reason: "lost_or_stolen_card" });
      for (let times = 0; times < 2; times++) await posts("refund.failed", refundId);
      assert.deepEqual(await readStates(), ["completed", 0, "active", "failed"]);
      assert.deepEqual(await accounts(orderId), PAID);
    });

    test("succeeded, then failed: the buyer gets a credit", async () => {
      const { orderId, refundId, readStates } = await createDashboardRefund("succeeded");
      assert.deepEqual(await accounts(orderId), REFUNDED);
      server.change(refundId, { status: "failed", failure_reason: "lost_or_stolen_card" });
      for (let times = 0; times < 2; times++) await posts("refund.failed", refundId);
      assert.deepEqual(await readStates(), ["refunded", 10, "revoked", "succeeded"]);
      assert.deepEqual(await accounts(orderId), {
        processor_fees: -59,
        provider_clearing: -941,
        buyer_credit: 1_000,
      });
      const { rows } = await market.query(
        "select failure_code, returned_at is not null as returned from refunds where provider_refund_id = $1",
        [refundId],
      );
      assert.deepEqual(rows, [{ failure_code: "lost_or_stolen_card", returned: true }]);
    });

    test("pending, then succeeded with a lost webhook: the job finds it and refunds nothing again", async () => {
      const { refundId, readStates } = await createDashboardRefund("pending");
      market.clock.forward(61_000);
      const countRefundRequests = () => server.asked.filter((line) => line === "POST /v1/refunds").length;
      const before = countRefundRequests();
      await reconcile("reconcile-refunds");
      assert.deepEqual(await readStates(), ["completed", 0, "held", "processing"]);
      server.change(refundId, { status: "succeeded" });
      await reconcile("reconcile-refunds");
      assert.deepEqual(await readStates(), ["refunded", 10, "revoked", "succeeded"]);
      assert.equal(countRefundRequests(), before);
    });

    test("of another service's payment: is ignored", async () => {
      await posts("refund.created", server.refundByHand(server.payElsewhere(1000), 1000));
    });
  });

  /** Runs a job of the worker. */
  const reconcile = (name: string): Promise<void> =>
    listScheduledJobs(market.service.ctx)
      .find((job) => job.name === name)!
      .run();

  /** A user with a plan, whose card payment is confirmed if the bank asks. */
  async function createPlan(token: string): Promise<Client> {
    const person = await market.createSession((await market.createUser()).userId);
    await person.post("/v1/payment-methods", { token });
    const chosen = await person.put(PLAN, { plan: "pro" });
    if (chosen.status === 202) server.approve(await openIntentOf(person.userId));
    assert.equal((await person.get(PLAN)).body.data.plan, "pro");
    return person;
  }

  async function openIntentOf(userId: string): Promise<string> {
    const { rows } = await market.query(
      "select payment_id from subscription_payments where user_id = $1 and status = 'requires_action'",
      [userId],
    );
    return rows[0].payment_id;
  }

  /** One month later; the user must sign in again. */
  async function renewLater({ userId }: Client): Promise<Client> {
    market.clock.forward(31 * 86_400_000);
    await renewSubscriptions(market.service.ctx);
    return market.createSession(userId);
  }

  test("renewal with a card that was set up for it: succeeds without the bank's question", async () => {
    const person = await renewLater(await createPlan("pm_card_authenticationRequiredOnSetup"));
    const { data } = (await person.get(PLAN)).body;
    assert.deepEqual([data.plan, data.pastDue, data.payment], ["pro", null, null]);
    assert.deepEqual(await emailsToUser(market, person.userId), []);
  });

  test("renewal that the bank questions: the owner gets an email and confirms by choosing the plan again", async () => {
    const person = await renewLater(await createPlan("pm_card_authenticationRequired"));
    assert.equal((await person.get(PLAN)).body.data.pastDue.tries, 1);
    const [message] = await emailsToUser(market, person.userId);
    assert.equal(message!.subject, "Renewal of your plan pro failed");
    assert.match(unwrapLines(message!.text), /Your bank requires you to confirm .* Choose the plan again/);
    const reply = await person.put(PLAN, { plan: "pro" });
    assert.equal(reply.status, 202, reply.text);
    assert.match(reply.body.data.payment.nextAction.url, /3ds/);
    server.approve(await openIntentOf(person.userId));
    assert.equal((await person.get(PLAN)).body.data.pastDue, null);
  });

  test("card entered on Stripe's page: is stored for the buyer who opened it, and pays", async () => {
    const [buyer, other] = [await market.createUser(), await market.createUser()];
    const asked = { returnTo: "/checkout/prod_1?code=SUMMER" };
    const { url } = (await buyer.post("/v1/payment-methods/setup", asked)).body.data;
    const sessionId = new URL(url).pathname.split("/").at(-1)!;
    const add = (who: Client, token = sessionId) => who.post("/v1/payment-methods", { token });
    assertError(await add(buyer), 404, "PAYMENT_METHOD_NOT_FOUND");
    const back = server.enterCard(sessionId, "pm_card_visa");
    assert.equal(back, `https://stoa.example/checkout/prod_1?code=SUMMER&card=${sessionId}`);
    assertError(await add(other), 404, "PAYMENT_METHOD_NOT_FOUND");
    const [first, again] = [await add(buyer), await add(buyer)];
    assert.equal(first.status, 201, first.text);
    assert.partialDeepStrictEqual(first.body.data, { last4: "4242", isDefault: true });
    assert.equal(again.body.data.id, first.body.data.id, "a reload stores no second card");
    const productId = await createProduct(await market.createUser());
    assert.equal((await buyer.post("/v1/purchases", { productId })).status, 201);
    for (const token of ["cs_unknown", "cs_../customers"])
      assertError(await add(buyer, token), 404, "PAYMENT_METHOD_NOT_FOUND");
  });

  test("removed card or closed account: the card is detached at Stripe", async () => {
    const [remover, leaver] = [await market.createUser(), await market.createUser()];
    const addCard = async (who: Client): Promise<string> =>
      (await who.post("/v1/payment-methods", { token: "pm_card_visa" })).body.data.id;
    const [removed, left] = [await addCard(remover), await addCard(leaver)];
    const session = await market.createSession(leaver.userId);
    const { email } = (await session.get("/v1/account")).body.data;
    assert.equal((await remover.delete(`/v1/payment-methods/${removed}`)).status, 200);
    assert.equal((await session.request("DELETE", "/v1/account", { json: { confirm: email } })).status, 200);
    const { rows } = await market.query("select data from pgboss.job where name = 'detach-payment-method'");
    assert.deepEqual(rows.map(({ data }) => data.methodId).sort(), [left, removed].sort());
    const stored = await addCard(remover);
    await detachAtProvider(market.service.ctx, { methodId: stored });
    assert.notEqual(server.objectOf(stored)["customer"], null, "a used card is kept");
    server.loseAnswer(/POST .*\/detach$/);
    for (const methodId of [removed, left, removed]) {
      await detachAtProvider(market.service.ctx, { methodId });
      assert.equal(server.objectOf(methodId)["customer"], null);
    }
    assert.equal(await payments.findMethod("usr_1", removed), null, "a removed card cannot be added again");
  });

  suite("payment at Stripe", () => {
    interface Waiting {
      intentId: string;
      /** The state that the payer sees. */
      readStates(): Promise<{ status: string; waits: boolean }>;
      settledElsewhere(): Promise<void>;
      mismatch(): Promise<string | null>;
    }

    const mismatchOf = async (table: string, intentId: string) =>
      (await market.query(`select mismatch from ${table} where payment_id = $1`, [intentId])).rows[0]
        .mismatch;

    /** A purchase that the buyer's bank must confirm. */
    async function waitingOrder(): Promise<Waiting> {
      const productId = await createProduct(await market.createUser());
      const buyer = await market.createUser();
      await buyer.post("/v1/payment-methods", { token: "pm_card_authenticationRequired" });
      const { orderId } = (await buyer.post("/v1/purchases", { productId })).body.data;
      const intentId: string = server.intentsOf(orderId)[0]!["id"];
      return {
        intentId,
        async readStates() {
          const { status, nextAction } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
          return { status, waits: nextAction !== undefined };
        },
        settledElsewhere: () => reconcileCharges(market.service.ctx, orderTarget),
        mismatch: () => mismatchOf("orders", intentId),
      };
    }

    /** The same for a plan. */
    async function waitingPlan(): Promise<Waiting> {
      const person = await market.createSession((await market.createUser()).userId);
      await person.post("/v1/payment-methods", { token: "pm_card_authenticationRequired" });
      assert.equal((await person.put(PLAN, { plan: "pro" })).status, 202);
      const intentId = await openIntentOf(person.userId);
      return {
        intentId,
        async readStates() {
          const { plan, payment } = (await person.get(PLAN)).body.data;
          if (!payment) return { status: plan === "pro" ? "completed" : "none", waits: false };
          return { status: payment.status, waits: payment.nextAction !== undefined };
        },
        settledElsewhere: () => reconcileCharges(market.service.ctx, planPaymentTarget),
        mismatch: () => mismatchOf("subscription_payments", intentId),
      };
    }

    for (const [of, begin] of [
      ["an order", waitingOrder],
      ["a plan", waitingPlan],
    ] as const) {
      test(`of ${of}, processing at Stripe: needs no action, and is paid when Stripe succeeds`, async () => {
        const { intentId, readStates } = await begin();
        assert.deepEqual(await readStates(), { status: "requires_action", waits: true });
        server.change(intentId, { status: "processing", next_action: null });
        assert.deepEqual(await readStates(), { status: "pending", waits: false });
        server.approve(intentId);
        assert.deepEqual(await readStates(), { status: "completed", waits: false });
      });

      test(`of ${of}, with another amount or currency: is not settled and is logged for the operator`, async () => {
        const { intentId, readStates, settledElsewhere, mismatch } = await begin();
        const requestedAmount = server.objectOf(intentId)["amount"];
        const countLogs = () => market.logs.filter((line) => line.includes("captured another amount")).length;
        for (const [wrong, stored] of [
          [{ amount_received: requestedAmount - 1, currency: "usd" }, `${requestedAmount - 1} USD`],
          [{ amount_received: requestedAmount, currency: "eur" }, `${requestedAmount} EUR`],
        ] as const) {
          const before = countLogs();
          server.change(intentId, { status: "succeeded", ...wrong });
          assert.equal((await readStates()).status, "requires_action");
          market.clock.forward(61_000);
          await settledElsewhere();
          assert.equal((await readStates()).status, "requires_action");
          assert.equal(await mismatch(), stored);
          assert.equal(countLogs(), before + 1, "logged once");
        }
        server.change(intentId, { amount_received: requestedAmount, currency: "usd" });
        assert.equal((await readStates()).status, "completed");
      });

      test(`of ${of}, with another amount and refunded at Stripe: is canceled`, async () => {
        const { intentId, readStates, mismatch } = await begin();
        const wrong = { status: "succeeded", amount_received: 1, fee: 30 };
        server.change(intentId, wrong);
        assert.equal((await readStates()).status, "requires_action");
        server.change(intentId, { ...wrong, refunded: true });
        assert.match((await readStates()).status, /^(canceled|none)$/);
        assert.equal(await mismatch(), null);
      });
    }
  });
});

suite("marketplace with amounts that Stripe cannot charge", () => {
  let market: Market;
  let seller: Client;
  let session: Client;
  before(async () => {
    market = await openMarket({ payments, config: { currencies: ["USD", "KWD", "JPY"] } });
    seller = await market.createUser({ role: "seller" });
    session = await market.createSession(seller.userId);
    await session.put("/v1/account/payout-account", { account: "acct_seller" });
  });
  after(() => market.close());

  test("POST and PATCH /products: a price that cannot be charged, 422 at price", async () => {
    for (const [currency, price, reason] of [
      ["KWD", 1.234, /multiple of 0\.010 KWD/],
      ["USD", 0.49, /must be at least 0\.50 USD/],
      ["JPY", 49, /at least 50 JPY/],
    ] as const) {
      const refused = await seller.post("/v1/products", { ...haiku, price, currency });
      assert.match(assertError(refused, 400, "INVALID_REQUEST", "price").reason, reason);
    }
    for (const [currency, price] of [
      ["KWD", 1.23],
      ["USD", 0.5],
    ] as const) {
      const id = await createProduct(seller, { price, currency });
      const patched = await seller.patch(`/v1/products/${id}`, { price: currency === "KWD" ? 2.345 : 0.01 });
      assertError(patched, 400, "INVALID_REQUEST", "price");
      assert.equal((await seller.patch(`/v1/products/${id}`, { tags: ["new"] })).status, 200);
    }
  });

  test("POST /products/{id}/publish: a price from before Stripe, 422 at price", async () => {
    const id = await createDraft(seller, { price: 5 });
    await market.query("update products set price_minor = 10 where id = $1", [toUuid("prod", id)]);
    assertError(await seller.post(`/v1/products/${id}/publish`), 422, "VALIDATION_ERROR", "price");
  });

  test("POST /purchases: a discount that leaves too little, 422 at discountCode", async () => {
    const buyer = await market.createUser();
    await buyer.post("/v1/payment-methods", { token: "pm_card_visa" });
    await seller.post("/v1/discount-codes", { code: "MOST", percentOff: 95 });
    const productId = await createProduct(seller, { price: 5 });
    const reply = await buyer.post("/v1/purchases", { productId, discountCode: "MOST" });
    const { reason } = assertError(reply, 422, "VALIDATION_ERROR", "discountCode");
    assert.match(reason, /leaves 0\.25 USD to pay, which must be at least 0\.50 USD/);
    assert.deepEqual((await buyer.get("/v1/purchases")).body.data, []);
    assert.equal((await buyer.post("/v1/purchases", { productId })).status, 201);
  });

  test("payouts in KWD: the amount that Stripe can pay is paid, also by the schedule, and the rest stays", async () => {
    const available = async () =>
      (await seller.get("/v1/balance")).body.data.find(
        ({ currency }: { currency: string }) => currency === "KWD",
      ).available;
    await bookEarnings(market, seller, { amountMinor: 12_345n, currency: "KWD" });
    assertError(
      await session.post("/v1/payouts", { amount: 10.001, currency: "KWD" }),
      400,
      "INVALID_REQUEST",
      "amount",
    );
    const reply = await session.post("/v1/payouts", { currency: "KWD" });
    assert.equal(reply.status, 201, reply.text);
    const paid = reply.body.data;
    assert.deepEqual([paid.status, paid.amount], ["completed", 12.34]);
    assert.equal(await available(), 0.005);
    await bookEarnings(market, seller, { amountMinor: 15_008n, currency: "KWD" });
    await payOutBySchedule(market.service.ctx, "daily");
    market.clock.forward(86_400_000);
    await payOutBySchedule(market.service.ctx, "daily");
    const [scheduled] = (await seller.get("/v1/payouts?currency=KWD")).body.data;
    assert.deepEqual([scheduled.status, scheduled.amount], ["completed", 15.01]);
    assert.equal(await available(), 0.003);
  });

  test("upgrade under Stripe's minimum charge: costs nothing", async () => {
    const buyer = await market.createSession((await market.createUser()).userId);
    await buyer.post("/v1/payment-methods", { token: "pm_card_visa" });
    assert.equal((await buyer.put(PLAN, { plan: "pro" })).status, 200);
    await market.query("update subscriptions set price_minor = 9880 where user_id = $1", [buyer.userId]);
    assert.equal((await buyer.put(PLAN, { plan: "business" })).status, 200);
    assert.equal((await buyer.get(PLAN)).body.data.plan, "business");
  });
});

suite("marketplace that pays its sellers through Stripe", () => {
  let market: Market;
  before(async () => {
    market = await openMarket({ payments });
  });
  after(() => market.close());

  test("payouts over its balance: wait without a failure until the balance suffices", async () => {
    const seller = await market.createUser({ role: "seller" });
    const session = await market.createSession(seller.userId);
    await session.put("/v1/account/payout-account", { account: "acct_seller" });
    await bookEarnings(market, seller, { amountMinor: 5_000n });
    server.hasFunds(0);
    const { id, status } = (await session.post("/v1/payouts", {})).body.data;
    assert.equal(status, "pending");
    const readStates = async () =>
      (
        await market.query("select status, waits_for, failure_code from payouts where seller_id = $1", [
          seller.userId,
        ])
      ).rows[0];
    const waiting = { status: "pending", waits_for: "balance_insufficient", failure_code: null };
    assert.deepEqual(await readStates(), waiting);
    server.hasFunds(5_000);
    const reconcile = () => reconcilePayouts(market.service.ctx);
    market.clock.forward(59 * 60_000);
    await reconcile();
    assert.deepEqual(await readStates(), waiting, "unchanged before an hour");
    market.clock.forward(60_001);
    await Promise.all([reconcile(), reconcile()]);
    assert.deepEqual(await readStates(), { status: "completed", waits_for: null, failure_code: null });
    assert.deepEqual(
      (await emailsToUser(market, seller.userId)).map(({ subject }) => subject.split(":")[0]),
      ["Paid out", "Your payout account changed"],
    );
    server.hasFunds(Number.POSITIVE_INFINITY);
    const transferId: string = (await market.query("select provider_payout_id as id from payouts")).rows[0]
      .id;
    server.change(transferId, { amount_reversed: 2_000 });
    for (let times = 0; times < 2; times++) await syncPayoutFromProvider(market.service.ctx, id);
    const { rows } = await market.query("select status, reversed_minor from payouts");
    assert.deepEqual(rows, [{ status: "completed", reversed_minor: 2_000 }]);
    assert.equal(market.logs.filter((line) => line.includes("reversed a part")).length, 1);
    server.change(transferId, { amount_reversed: 5_000, reversed: true });
    await syncPayoutFromProvider(market.service.ctx, id);
    const again = await market.createSession(seller.userId);
    assert.equal((await again.get("/v1/balance")).body.data[0].available, 50);
  });

  test("sellers: must set up their account first", async () => {
    const seller = await market.createUser({ role: "seller" });
    const session = await market.createSession(seller.userId);
    const path = "/v1/account/payout-account";
    await bookEarnings(market, seller, { amountMinor: 5_000n });
    assert.deepEqual((await session.get(path)).body.data, {
      ...{ account: null, payoutsEnabled: false, disabledReason: null, requirements: [], dueBy: null },
    });
    assertError(await session.post("/v1/payouts", {}), 422, "VALIDATION_ERROR", "account");
    const { account, url } = (await session.post(`${path}/onboarding`)).body.data;
    assert.match(url, new RegExp(account));
    assert.partialDeepStrictEqual((await session.get(path)).body.data, {
      ...{ account, payoutsEnabled: false, dueBy: "2030-01-01T00:00:00.000Z" },
    });
    const { reason } = assertError(await session.post("/v1/payouts", {}), 422, "VALIDATION_ERROR", "account");
    assert.match(reason, /not set up .* POST \/account\/payout-account\/onboarding/);
    assert.deepEqual((await session.get("/v1/payouts")).body.data, [], "no payout");
    server.finishOnboarding(account);
    assert.equal((await session.get(path)).body.data.payoutsEnabled, true);
    assert.equal((await session.post("/v1/payouts", {})).body.data.status, "completed");
  });
});
