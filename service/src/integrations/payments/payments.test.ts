import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, type TestContext, test } from "node:test";
import { fetch } from "undici";
import {
  type PostedEvent,
  parseEvent,
  startPaymentEventReceiver,
} from "../../../test/payment-event-receiver.ts";
import { until } from "../../../test/until.ts";
import { createFakePayments, memoryStore, signWebhook, startFakeProvider } from "./fake-payments.ts";
import { type ChargeResult, PaymentUnknown, WebhookSignatureError } from "./payments.ts";

const now = () => new Date("2026-08-01T12:00:00.000Z");
const store = memoryStore();
const webhookDelays = { firstMs: 0, againMs: [0, 0] };
const provider = await startFakeProvider({ store, now, webhookDelays });
const { origin, secret } = provider;
const payments = createFakePayments({ origin, secret, now });
after(() => provider.close());

let orders = 0;
const request = (methodId = "pm_test_ok") => ({
  orderId: `ord_${++orders}`,
  amountMinor: 1999n,
  currency: "USD",
  methodId,
  userId: "usr_1",
  description: "Interview <coach>",
  buyer: "present" as const,
  recurs: false,
});

test("charge: a valid method succeeds at once", async () => {
  const outcome = await payments.charge(request());
  assert.equal(outcome.state, "succeeded");
  assert.deepEqual(methodOf(outcome), { brand: "visa", last4: "4242" });
});

test("charge that is declined: has its decline code", async () => {
  assert.equal(declineCodeOf(await payments.charge(request("pm_test_declined"))), "card_declined");
  const poor = await payments.charge(request("pm_test_insufficient_funds"));
  assert.equal(declineCodeOf(poor), "insufficient_funds");
});

test("charge with an unknown method: the order may be charged with another", async () => {
  const order = request("pm_test_nobody");
  assert.deepEqual(await payments.charge(order), { state: "unknown_method" });
  assert.equal(await payments.findCharge(order.orderId), null);
  assert.equal((await payments.charge({ ...order, methodId: "pm_test_ok" })).state, "succeeded");
});

test("repeated charge of an order: charges once", async () => {
  const order = request();
  assert.deepEqual(await payments.charge(order), await payments.charge(order));
});

test("20 concurrent charges of an order: charge once", async () => {
  const order = request();
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => payments.charge(order)));
  assert.equal(new Set(outcomes.map(paymentIdOf)).size, 1);
});

test("charge of an order with another amount: is refused", async () => {
  const order = request();
  await payments.charge(order);
  await assert.rejects(payments.charge({ ...order, amountMinor: 1n }), /idempotency_key_reused/);
});

test("findCharge: finds a charge by its order", async () => {
  const order = request();
  const charged = await payments.charge(order);
  assert.deepEqual(await payments.findCharge(order.orderId), charged);
  assert.equal(await payments.findCharge("ord_unheard_of"), null);
});

test("findCharge: escapes the order's id in the path", async () => {
  const order = { ...request(), orderId: "a&order=b/..?#%" };
  await payments.charge(order);
  assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
});

test("approval on the provider's page: the charge succeeds", async () => {
  const { order, url } = await createWaitingCharge();
  await submitDecision(url, "approve");
  assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
  assert.equal((await payments.charge(order)).state, "succeeded");
});

test("refusal on the provider's page: the charge is declined", async () => {
  const { order, url } = await createWaitingCharge();
  await submitDecision(url, "decline");
  assert.equal(declineCodeOf(await payments.findCharge(order.orderId)), "authentication_failed");
});

test("two decisions on the provider's page: the first one counts", async () => {
  const { order, url } = await createWaitingCharge();
  await submitDecision(url, "decline");
  await submitDecision(url, "approve");
  assert.equal((await payments.cancelCharge(order.orderId))?.state, "declined");
});

test("cancelCharge: cancels a charge that waits for the buyer", async () => {
  const { order, url } = await createWaitingCharge();
  assert.equal((await payments.cancelCharge(order.orderId))?.state, "canceled");
  await submitDecision(url, "approve");
  assert.equal((await payments.findCharge(order.orderId))?.state, "canceled");
});

test("cancelCharge after the payment: returns the paid charge", async () => {
  const order = request();
  await payments.charge(order);
  assert.equal((await payments.cancelCharge(order.orderId))?.state, "succeeded");
  assert.equal(await payments.cancelCharge("ord_unheard_of"), null);
});

test("test endpoint: confirms instead of the buyer", async () => {
  const { order, outcome } = await createWaitingCharge();
  await fetch(`${provider.origin}/v1/charges/${paymentIdOf(outcome)}/confirm`, { method: "POST" });
  assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
});

test("provider's page: shows the charge escaped, without scripts", async () => {
  const { url } = await createWaitingCharge();
  const response = await fetch(url);
  const page = await response.text();
  assert.match(page, /19\.99 USD/);
  assert.match(page, /Interview &lt;coach&gt;/);
  assert.match(page, /<form method="post">/);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'/);
});

test("provider's page of an ended charge: has no buttons", async () => {
  const { url } = await createWaitingCharge();
  const page = await submitDecision(url, "approve");
  assert.match(page, /<h1>Payment approved/);
  assert.doesNotMatch(page, /<form/);
});

test("provider's page: 404 for an unknown charge, and unknown decisions change nothing", async () => {
  assert.equal((await fetch(`${provider.origin}/authorize/ch_nobody`)).status, 404);
  assert.equal((await fetch(`${provider.origin}/nowhere`)).status, 404);
  const { order, url } = await createWaitingCharge();
  await submitDecision(url, "steal");
  assert.equal((await payments.findCharge(order.orderId))?.state, "requires_action");
});

test("restart of the provider: keeps the charges", async (t) => {
  const order = request();
  const charged = await payments.charge(order);
  const restarted = await startFakeProvider({ store, now });
  t.after(() => restarted.close());
  assert.deepEqual(await createFakePayments({ origin: restarted.origin }).findCharge(order.orderId), charged);
});

test("test environment: the default method is pm_test_ok", () => {
  assert.equal(payments.sharedMethods[0]?.id, "pm_test_ok");
});

test("provider's fee: 2.9 % rounded half up plus 30 minor units, at most the amount", async () => {
  const feeOf = async (amountMinor: bigint) => {
    const outcome = await payments.charge({ ...request(), amountMinor });
    return outcome.state === "succeeded" && outcome.feeMinor;
  };
  assert.equal(await feeOf(10_000n), 320n);
  assert.equal(await feeOf(500n), 45n, "14.5 is rounded up");
  assert.equal(await feeOf(499n), 44n);
  assert.equal(await feeOf(7n), 7n);
});

test("unreachable provider: PaymentUnknown", async () => {
  const stopped = await startFakeProvider({ store, now });
  await stopped.close();
  await assert.rejects(createFakePayments({ origin: stopped.origin }).charge(request()), PaymentUnknown);
});

test("provider with errors or invalid responses: PaymentUnknown", async (t) => {
  const broken = await startFakeProvider({
    store: { ...store, insertOrGet: () => Promise.reject(new Error("disk full")) },
    now,
  });
  t.after(() => broken.close());
  await assert.rejects(createFakePayments({ origin: broken.origin }).charge(request()), PaymentUnknown);
  const gateway = await startServer(t, (_request, response) => response.end("<h1>It works!</h1>"));
  await assert.rejects(createFakePayments({ origin: gateway }).findCharge("ord_1"), PaymentUnknown);
});

test("provider that does not respond in time: PaymentUnknown", async (t) => {
  const patience = new AbortController();
  const silent = await startServer(t, () => patience.abort());
  const impatient = createFakePayments({ origin: silent, deadline: () => patience.signal });
  await assert.rejects(impatient.charge(request()), PaymentUnknown);
});

/** The payment id of a new charge. */
const createCharge = async (methodId = "pm_test_ok") => paymentIdOf(await payments.charge(request(methodId)));

let refunds = 0;
const refundRequest = (paymentId: string, amountMinor: bigint) => ({
  refundId: `refund_${++refunds}`,
  paymentId,
  amountMinor,
  currency: "USD",
});

test("refund: is made once for its id and found by it", async () => {
  const input = refundRequest(await createCharge(), 500n);
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => payments.refund(input)));
  assert.equal(new Set(outcomes.map(({ providerRefundId }) => providerRefundId)).size, 1);
  assert.equal(outcomes[0]!.state, "succeeded");
  assert.deepEqual(await payments.findRefund(input.refundId), outcomes[0]);
  assert.equal(await payments.findRefund("refund_unheard_of"), null);
  await assert.rejects(payments.refund({ ...input, amountMinor: 1n }), /idempotency_key_reused/);
});

test("50 concurrent refunds: refund no more than the charge", async () => {
  const paymentId = await createCharge();
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, () => payments.refund(refundRequest(paymentId, 100n))),
  );
  assert.equal(outcomes.filter(({ state }) => state === "succeeded").length, 19);
  const refused = outcomes.find(({ state }) => state === "failed");
  assert.deepEqual(refused, { state: "failed", providerRefundId: null, failureCode: "amount_too_large" });
  const rest = await payments.refund(refundRequest(paymentId, 99n));
  assert.equal(rest.state, "succeeded");
});

test("refund of an unpaid or unknown charge: fails", async () => {
  const { outcome } = await createWaitingCharge();
  const input = refundRequest(paymentIdOf(outcome), 1n);
  const refused = { state: "failed", providerRefundId: null, failureCode: "charge_not_found" };
  assert.deepEqual(await payments.refund(input), refused);
  assert.deepEqual(await payments.refund({ ...input, paymentId: "ch_nobody" }), refused);
});

test("refund: may fail, or wait for the bank", async () => {
  const failing = refundRequest(await createCharge("pm_test_refund_fails"), 500n);
  assert.partialDeepStrictEqual(await payments.refund(failing), { failureCode: "expired_or_canceled_card" });
  const waiting = refundRequest(await createCharge("pm_test_refund_waits"), 500n);
  const { state, providerRefundId } = await payments.refund(waiting);
  assert.equal(state, "processing");
  await post(`/v1/refunds/${providerRefundId}/end`, { state: "succeeded" });
  assert.equal((await payments.findRefund(waiting.refundId))?.state, "succeeded");
  await post(`/v1/refunds/${providerRefundId}/end`, { state: "failed", failureCode: "late" });
  assert.equal(
    (await payments.findRefund(waiting.refundId))?.state,
    "succeeded",
    "the first result is final",
  );
});

let payouts = 0;
const payoutRequest = (destination: string) => ({
  payoutId: `payout_${++payouts}`,
  destination,
  amountMinor: 5_000n,
  currency: "USD",
});

test("payout: is made once for its id and found by it", async () => {
  const input = payoutRequest(payments.sharedPayoutAccount!);
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => payments.payOut(input)));
  assert.equal(new Set(outcomes.map(({ providerPayoutId }) => providerPayoutId)).size, 1);
  assert.equal(outcomes[0]!.state, "completed");
  assert.deepEqual(await payments.findPayout(input.payoutId), outcomes[0]);
  assert.equal(await payments.findPayout("payout_unheard_of"), null);
  await assert.rejects(payments.payOut({ ...input, amountMinor: 1n }), /idempotency_key_reused/);
});

test("test payout accounts: decide the result of a payout", async () => {
  assert.partialDeepStrictEqual(await payments.payOut(payoutRequest("acct_test_fails")), {
    state: "failed",
    failureCode: "account_closed",
  });
  const nowhere = await payments.payOut(payoutRequest("acct_nobody"));
  assert.deepEqual(nowhere, { state: "failed", providerPayoutId: null, failureCode: "unknown_account" });
  const returning = payoutRequest("acct_test_returns");
  assert.equal((await payments.payOut(returning)).state, "completed");
  assert.equal((await payments.findPayout(returning.payoutId))?.state, "returned");
});

test("payout in transit: ends when the bank decides, and may return later", async () => {
  const input = payoutRequest("acct_test_waits");
  const { state, providerPayoutId } = await payments.payOut(input);
  assert.equal(state, "in_transit");
  for (const [move, becomes] of [
    ["returned", "in_transit"],
    ["completed", "completed"],
    ["returned", "returned"],
  ] as const) {
    await post(`/v1/payouts/${providerPayoutId}/end`, { state: move });
    assert.equal((await payments.findPayout(input.payoutId))?.state, becomes);
  }
});

test("disputed test method: opens a dispute after the charge, until the bank decides", async (t) => {
  for (const outcome of ["won", "lost"] as const) {
    const { orderId } = request();
    const receiver = await receiveWebhooks(t);
    const input = { ...request("pm_test_dispute"), orderId };
    const paymentId = paymentIdOf(await payments.charge(input));
    const [notice] = (await receiver.eventsAbout("dp_")).map(parseEvent);
    const dispute = {
      disputeId: notice!["disputeId"]!,
      orderId,
      amountMinor: 1_999n,
      feeMinor: 1_500n,
      reason: "fraudulent",
      evidenceDueBy: null,
      createdAt: now(),
    };
    const found = await payments.findDispute(dispute.disputeId);
    assert.deepEqual(found, { ...dispute, state: "open", evidenceDueBy: null });
    const during = await payments.refund(refundRequest(paymentId, 1n));
    assert.partialDeepStrictEqual(during, { state: "failed", failureCode: "charge_disputed" });
    await post(`/v1/disputes/${dispute.disputeId}/close`, { outcome });
    await post(`/v1/disputes/${dispute.disputeId}/close`, { outcome: outcome === "won" ? "lost" : "won" });
    assert.equal(
      (await payments.findDispute(dispute.disputeId))?.state,
      outcome,
      "the first outcome is final",
    );
    const afterwards = await payments.refund(refundRequest(paymentId, 1n));
    assert.equal(afterwards.state, outcome === "won" ? "succeeded" : "failed");
  }
  assert.equal(await payments.findDispute("dp_unheard_of"), null);
});

test("lost response and webhook: the charge exists and can be found", async (t) => {
  const receiver = await receiveWebhooks(t);
  const patience = new AbortController();
  const impatient = createFakePayments({ origin, deadline: () => patience.signal });
  const input = request("pm_test_timeout_but_charged");
  const refused = assert.rejects(impatient.charge(input), PaymentUnknown);
  await until("it is charged", () => payments.findCharge(input.orderId));
  patience.abort();
  await refused;
  assert.equal(
    (await payments.charge(input)).state,
    "succeeded",
    "a repeated request returns the first charge",
  );
  const reported = request();
  await payments.charge(reported);
  await receiver.eventsAbout(reported.orderId);
  assert.ok(receiver.events.every((notice) => parseEvent(notice)["orderId"] !== input.orderId));
});

test("provider's test page: decides instead of the bank", async (t) => {
  const desk = await startFakeProvider({ store: memoryStore(), now });
  t.after(() => desk.close());
  const there = createFakePayments({ origin: desk.origin });
  const paid = async (methodId: string) => paymentIdOf(await there.charge(request(methodId)));
  const disputed = request("pm_test_dispute");
  await there.charge(disputed);
  const refund = refundRequest(await paid("pm_test_refund_waits"), 123n);
  await there.refund(refund);
  const payout = payoutRequest("acct_test_waits");
  await there.payOut(payout);
  const readPage = async () => (await fetch(desk.origin)).text();
  const page = await readPage();
  for (const ours of [disputed.orderId, refund.refundId, payout.payoutId])
    assert.ok(page.includes(ours), ours);
  const paths = [...page.matchAll(/action="(\/(\w+)\/[^"]+)"/g)];
  assert.deepEqual(
    paths.map(([, , noun]) => noun),
    ["disputes", "refunds", "payouts"],
  );
  const decide = (path: string, decision: string) =>
    fetch(desk.origin + path, {
      method: "POST",
      body: new URLSearchParams({ decision }),
      redirect: "manual",
    });
  const buttons: Record<string, string> = { disputes: "won", refunds: "failed", payouts: "completed" };
  for (const [, path, noun] of paths) {
    assert.equal((await decide(path!, "steal")).status, 400);
    assert.equal((await decide(`/${noun}/nobody`, buttons[noun!]!)).status, 404);
    assert.equal((await decide(path!, buttons[noun!]!)).headers.get("location"), "/");
  }
  assert.doesNotMatch(await readPage(), /<form/);
  assert.equal((await there.findRefund(refund.refundId))?.state, "failed");
  assert.equal((await there.findPayout(payout.payoutId))?.state, "completed");
  assert.equal((await there.findDispute(paths[0]![1]!.split("/")[2]!))?.state, "won");
});

test("webhook: may come twice", async (t) => {
  const receiver = await receiveWebhooks(t);
  const input = request("pm_test_duplicate_webhook");
  await payments.charge(input);
  assert.equal((await receiver.eventsAbout(input.orderId, 2)).length, 2);
});

test("webhook: may come before the response to its request", async (t) => {
  let isAnswered = false;
  const answeredAtNotice: boolean[] = [];
  await receiveWebhooks(t, () => {
    answeredAtNotice.push(isAnswered);
    return 200;
  });
  const { state } = await payments.charge(request("pm_test_webhook_before_response"));
  isAnswered = true;
  assert.equal(state, "succeeded");
  assert.deepEqual(answeredAtNotice, [false]);
});

test("webhook without a 2xx response: is repeated a few times", async (t) => {
  const stubborn = await receiveWebhooks(t, (nth) => (nth < 3 ? 503 : 200));
  const early = request("pm_test_webhook_before_response");
  await payments.charge(early);
  const [first, ...more] = (await stubborn.eventsAbout(early.orderId, 3)).map(({ body }) => body.toString());
  assert.deepEqual(more, [first, first]);
  const deaf = await receiveWebhooks(t, () => 500);
  const unheard = request("pm_test_webhook_before_response");
  assert.equal((await payments.charge(unheard)).state, "succeeded");
  assert.equal((await deaf.eventsAbout(unheard.orderId, 3)).length, 3);
});

test("unreachable webhook endpoint: does not affect responses", async () => {
  provider.sendWebhooksTo("http://127.0.0.1:9/nobody");
  assert.equal((await payments.charge(request("pm_test_webhook_before_response"))).state, "succeeded");
  provider.sendWebhooksTo(null);
  assert.equal((await payments.charge(request("pm_test_webhook_before_response"))).state, "succeeded");
});

test("webhooks: report every change of charges, refunds, payouts and disputes", async (t) => {
  const receiver = await receiveWebhooks(t);
  const { order, url } = await createWaitingCharge();
  await submitDecision(url, "approve");
  const refund = refundRequest(await createCharge("pm_test_refund_waits"), 1n);
  const { providerRefundId } = await payments.refund(refund);
  await post(`/v1/refunds/${providerRefundId}/end`, { state: "succeeded" });
  const payout = payoutRequest("acct_test_waits");
  const { providerPayoutId } = await payments.payOut(payout);
  await post(`/v1/payouts/${providerPayoutId}/end`, { state: "completed" });
  for (const id of [order.orderId, refund.refundId, payout.payoutId])
    assert.equal((await receiver.eventsAbout(id, 2)).length, 2);
});

test("parseWebhook: accepts only recent, signed webhooks", async (t) => {
  const receiver = await receiveWebhooks(t);
  const input = request();
  await payments.charge(input);
  const [notice] = await receiver.eventsAbout(input.orderId);
  const { body, headers } = notice!;
  assert.deepEqual(await read(notice!), { about: "payment", orderId: input.orderId });
  const signature = headers["fake-signature"]!;
  const at = (seconds: number) => new Date(now().getTime() + seconds * 1000);
  const signed = (text: string, when = now(), by = secret) => ({
    body: Buffer.from(text),
    headers: { "fake-signature": signWebhook(by, text, when) },
  });
  const text = body.toString();
  const refused: Record<string, PostedEvent> = {
    "no signature": { body, headers: {} },
    "half a signature": { body, headers: { "fake-signature": signature.slice(0, -1) } },
    "another body": { body: Buffer.from(text.replace("payment", "refund")), headers },
    "another time": { body, headers: { "fake-signature": signature.replace(/t=\d+/, "t=1785585601") } },
    "another secret": signed(text, now(), Buffer.alloc(32)),
    "too old": signed(text, at(-301)),
    "of the future": signed(text, at(301)),
  };
  for (const [why, wrong] of Object.entries(refused))
    await assert.rejects(read(wrong), WebhookSignatureError, why);
  for (const seconds of [-300, 300]) assert.ok(await read(signed(text, at(seconds))));
  await assert.rejects(createFakePayments({ origin }).parseWebhook(body, headers), WebhookSignatureError);
});

test("signed webhook of an unknown kind: null", async () => {
  for (const text of [
    "",
    "nonsense",
    "[]",
    '{"about":"weather"}',
    '{"about":"payment"}',
    '{"about":"refund","orderId":"x"}',
  ])
    assert.equal(
      await read({
        body: Buffer.from(text),
        headers: { "fake-signature": signWebhook(secret, text, now()) },
      }),
      null,
    );
});

test("test method: gets an id of its user, with which no other user can pay", async () => {
  const own = await payments.findMethod("usr_1", "pm_test_declined");
  assert.ok(own && own.id !== "pm_test_declined");
  assert.deepEqual(await payments.findMethod("usr_1", own.id), own, "the same method by its id");
  assert.equal(await payments.findMethod("usr_2", own.id), null);
  assert.equal(await payments.findMethod("usr_1", "pm_test_nobody"), null);
  assert.equal(declineCodeOf(await payments.charge(request(own.id))), "card_declined");
  const theirs = { ...request(own.id), userId: "usr_2" };
  assert.deepEqual(await payments.charge(theirs), { state: "unknown_method" });
});

test("sharedMethods: are found by their names", async () => {
  for (const { id, brand, last4 } of payments.sharedMethods) {
    const found = await payments.findMethod("usr_1", id);
    assert.deepEqual({ brand: found?.brand, last4: found?.last4 }, { brand, last4 });
  }
});

const read = ({ body, headers }: PostedEvent) => payments.parseWebhook(body, headers);

/** Receives the webhooks from now on. */
async function receiveWebhooks(t: TestContext, answer?: (nth: number) => number) {
  const receiver = await startPaymentEventReceiver(answer);
  provider.sendWebhooksTo(receiver.url);
  t.after(() => receiver.close());
  return receiver;
}

async function post(path: string, body: object) {
  const headers = { "content-type": "application/json" };
  return fetch(`${provider.origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function createWaitingCharge() {
  const order = request("pm_test_requires_action");
  const outcome = await payments.charge(order);
  assert.ok(outcome.state === "requires_action");
  return { order, outcome, url: outcome.url };
}

async function submitDecision(url: string, decision: string): Promise<string> {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams({ decision }) });
  return response.text();
}

async function startServer(t: TestContext, handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function paymentIdOf(outcome: ChargeResult): string {
  assert.ok(outcome.state !== "unknown_method");
  return outcome.paymentId;
}

function methodOf(outcome: ChargeResult) {
  assert.ok(outcome.state !== "unknown_method");
  return outcome.method;
}

function declineCodeOf(outcome: ChargeResult | null): string {
  assert.ok(outcome?.state === "declined");
  return outcome.declineCode;
}

test("fake payment provider, STOA_ENVIRONMENT=production: does not start", async () => {
  await assert.rejects(
    startFakeProvider({ environment: "production", store: memoryStore(), now: () => new Date() }),
    /does not start in production/,
  );
});
