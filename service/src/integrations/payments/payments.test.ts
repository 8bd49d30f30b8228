import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
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

test("a good method is charged at once", async () => {
  const outcome = await payments.charge(request());
  assert.equal(outcome.state, "succeeded");
  assert.deepEqual(methodOf(outcome), { brand: "visa", last4: "4242" });
});

test("a declined charge tells why", async () => {
  assert.equal(declineCodeOf(await payments.charge(request("pm_test_declined"))), "card_declined");
  const poor = await payments.charge(request("pm_test_insufficient_funds"));
  assert.equal(declineCodeOf(poor), "insufficient_funds");
});

test("a method that does not exist leaves the order free for another", async () => {
  const order = request("pm_test_nobody");
  assert.deepEqual(await payments.charge(order), { state: "unknown_method" });
  assert.equal(await payments.findCharge(order.orderId), null);
  assert.equal((await payments.charge({ ...order, methodId: "pm_test_ok" })).state, "succeeded");
});

test("asking twice for one order charges once", async () => {
  const order = request();
  assert.deepEqual(await payments.charge(order), await payments.charge(order));
});

test("asking twenty times at once charges once", async () => {
  const order = request();
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => payments.charge(order)));
  assert.equal(new Set(outcomes.map(paymentIdOf)).size, 1);
});

test("one order cannot be charged with two amounts", async () => {
  const order = request();
  await payments.charge(order);
  await assert.rejects(payments.charge({ ...order, amountMinor: 1n }), /idempotency_key_reused/);
});

test("a charge is found by its order", async () => {
  const order = request();
  const charged = await payments.charge(order);
  assert.deepEqual(await payments.findCharge(order.orderId), charged);
  assert.equal(await payments.findCharge("ord_unheard_of"), null);
});

test("an order's id is no part of the address, whatever it holds", async () => {
  const order = { ...request(), orderId: "a&order=b/..?#%" };
  await payments.charge(order);
  assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
});

test("a buyer who approves on the provider's page has paid", async () => {
  const { order, url } = await waitingCharge();
  await press(url, "approve");
  assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
  assert.equal((await payments.charge(order)).state, "succeeded");
});

test("a buyer who declines on the provider's page has not paid", async () => {
  const { order, url } = await waitingCharge();
  await press(url, "decline");
  assert.equal(declineCodeOf(await payments.findCharge(order.orderId)), "authentication_failed");
});

test("the first decision stands", async () => {
  const { order, url } = await waitingCharge();
  await press(url, "decline");
  await press(url, "approve");
  assert.equal((await payments.cancelCharge(order.orderId))?.state, "declined");
});

test("a charge that waits for the buyer can be canceled", async () => {
  const { order, url } = await waitingCharge();
  assert.equal((await payments.cancelCharge(order.orderId))?.state, "canceled");
  await press(url, "approve");
  assert.equal((await payments.findCharge(order.orderId))?.state, "canceled");
});

test("cancelling too late answers with what was paid", async () => {
  const order = request();
  await payments.charge(order);
  assert.equal((await payments.cancelCharge(order.orderId))?.state, "succeeded");
  assert.equal(await payments.cancelCharge("ord_unheard_of"), null);
});

test("a program can confirm in the buyer's place", async () => {
  const { order, outcome } = await waitingCharge();
  await fetch(`${provider.origin}/v1/charges/${paymentIdOf(outcome)}/confirm`, { method: "POST" });
  assert.equal((await payments.findCharge(order.orderId))?.state, "succeeded");
});

test("the provider's page shows what is paid, escaped, and allows no script", async () => {
  const { url } = await waitingCharge();
  const response = await fetch(url);
  const page = await response.text();
  assert.match(page, /19\.99 USD/);
  assert.match(page, /Interview &lt;coach&gt;/);
  assert.match(page, /<form method="post">/);
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'/);
});

test("an ended charge's page has no buttons", async () => {
  const { url } = await waitingCharge();
  const page = await press(url, "approve");
  assert.match(page, /<h1>Payment approved/);
  assert.doesNotMatch(page, /<form/);
});

test("a page of no charge is 404, and an unknown button changes nothing", async () => {
  assert.equal((await fetch(`${provider.origin}/authorize/ch_nobody`)).status, 404);
  assert.equal((await fetch(`${provider.origin}/nowhere`)).status, 404);
  const { order, url } = await waitingCharge();
  await press(url, "steal");
  assert.equal((await payments.findCharge(order.orderId))?.state, "requires_action");
});

test("charges outlive a restart of the provider", async () => {
  const order = request();
  const charged = await payments.charge(order);
  const restarted = await startFakeProvider({ store, now });
  after(() => restarted.close());
  assert.deepEqual(await createFakePayments({ origin: restarted.origin }).findCharge(order.orderId), charged);
});

test("a test account pays with pm_test_ok unless told otherwise", () => {
  assert.equal(payments.sharedMethods[0]?.id, "pm_test_ok");
});

test("what it keeps for itself is 2.9 %, a half up, and 30 minor units, never more than there is", async () => {
  const feeOf = async (amountMinor: bigint) => {
    const outcome = await payments.charge({ ...request(), amountMinor });
    return outcome.state === "succeeded" && outcome.feeMinor;
  };
  assert.equal(await feeOf(10_000n), 320n);
  assert.equal(await feeOf(500n), 45n, "14.5 is rounded up");
  assert.equal(await feeOf(499n), 44n);
  assert.equal(await feeOf(7n), 7n);
});

test("a provider that cannot be reached leaves the payment unknown", async () => {
  const gone = await startFakeProvider({ store, now });
  await gone.close();
  await assert.rejects(createFakePayments({ origin: gone.origin }).charge(request()), PaymentUnknown);
});

test("a provider that breaks or answers nonsense leaves the payment unknown", async () => {
  const broken = await startFakeProvider({
    store: { ...store, insertOrGet: () => Promise.reject(new Error("disk full")) },
    now,
  });
  after(() => broken.close());
  await assert.rejects(createFakePayments({ origin: broken.origin }).charge(request()), PaymentUnknown);
  const gateway = await listening((_request, response) => response.end("<h1>It works!</h1>"));
  await assert.rejects(createFakePayments({ origin: gateway }).findCharge("ord_1"), PaymentUnknown);
});

test("a provider that does not answer in time leaves the payment unknown", async () => {
  const patience = new AbortController();
  const silent = await listening(() => patience.abort());
  const impatient = createFakePayments({ origin: silent, deadline: () => patience.signal });
  await assert.rejects(impatient.charge(request()), PaymentUnknown);
});

/** A charge that was paid, as its refund names it. */
const hasCharge = async (methodId = "pm_test_ok") => paymentIdOf(await payments.charge(request(methodId)));

let refunds = 0;
const refundRequest = (paymentId: string, amountMinor: bigint) => ({
  refundId: `refund_${++refunds}`,
  paymentId,
  amountMinor,
  currency: "USD",
});

test("a refund is made once for its id, and found by it", async () => {
  const asked = refundRequest(await hasCharge(), 500n);
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => payments.refund(asked)));
  assert.equal(new Set(outcomes.map(({ providerRefundId }) => providerRefundId)).size, 1);
  assert.equal(outcomes[0]!.state, "succeeded");
  assert.deepEqual(await payments.findRefund(asked.refundId), outcomes[0]);
  assert.equal(await payments.findRefund("refund_unheard_of"), null);
  await assert.rejects(payments.refund({ ...asked, amountMinor: 1n }), /idempotency_key_reused/);
});

test("fifty parallel refunds give back no more than was charged", async () => {
  const paymentId = await hasCharge();
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, () => payments.refund(refundRequest(paymentId, 100n))),
  );
  assert.equal(outcomes.filter(({ state }) => state === "succeeded").length, 19);
  const refused = outcomes.find(({ state }) => state === "failed");
  assert.deepEqual(refused, { state: "failed", providerRefundId: null, failureCode: "amount_too_large" });
  const rest = await payments.refund(refundRequest(paymentId, 99n));
  assert.equal(rest.state, "succeeded");
});

test("nothing is given back of what was not charged", async () => {
  const { outcome } = await waitingCharge();
  const asked = refundRequest(paymentIdOf(outcome), 1n);
  const refused = { state: "failed", providerRefundId: null, failureCode: "charge_not_found" };
  assert.deepEqual(await payments.refund(asked), refused);
  assert.deepEqual(await payments.refund({ ...asked, paymentId: "ch_nobody" }), refused);
});

test("a refund may fail, or wait for the bank", async () => {
  const failing = refundRequest(await hasCharge("pm_test_refund_fails"), 500n);
  assert.partialDeepStrictEqual(await payments.refund(failing), { failureCode: "expired_or_canceled_card" });
  const waiting = refundRequest(await hasCharge("pm_test_refund_waits"), 500n);
  const { state, providerRefundId } = await payments.refund(waiting);
  assert.equal(state, "processing");
  await post(`/v1/refunds/${providerRefundId}/end`, { state: "succeeded" });
  assert.equal((await payments.findRefund(waiting.refundId))?.state, "succeeded");
  await post(`/v1/refunds/${providerRefundId}/end`, { state: "failed", failureCode: "late" });
  assert.equal((await payments.findRefund(waiting.refundId))?.state, "succeeded", "the first end stands");
});

let payouts = 0;
const payoutRequest = (destination: string) => ({
  payoutId: `payout_${++payouts}`,
  destination,
  amountMinor: 5_000n,
  currency: "USD",
});

test("a payout is made once for its id, and found by it", async () => {
  const asked = payoutRequest(payments.sharedPayoutAccount!);
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => payments.payOut(asked)));
  assert.equal(new Set(outcomes.map(({ providerPayoutId }) => providerPayoutId)).size, 1);
  assert.equal(outcomes[0]!.state, "completed");
  assert.deepEqual(await payments.findPayout(asked.payoutId), outcomes[0]);
  assert.equal(await payments.findPayout("payout_unheard_of"), null);
  await assert.rejects(payments.payOut({ ...asked, amountMinor: 1n }), /idempotency_key_reused/);
});

test("where a payout goes tells what becomes of it", async () => {
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

test("a payout that is under way ends when the bank says so, and may come back later", async () => {
  const asked = payoutRequest("acct_test_waits");
  const { state, providerPayoutId } = await payments.payOut(asked);
  assert.equal(state, "in_transit");
  for (const [move, becomes] of [
    ["returned", "in_transit"],
    ["completed", "completed"],
    ["returned", "returned"],
  ] as const) {
    await post(`/v1/payouts/${providerPayoutId}/end`, { state: move });
    assert.equal((await payments.findPayout(asked.payoutId))?.state, becomes);
  }
});

test("a method that is disputed is so right after its charge, until the bank decides", async () => {
  for (const outcome of ["won", "lost"] as const) {
    const { orderId } = request();
    const receiver = await receiving();
    const asked = { ...request("pm_test_dispute"), orderId };
    const paymentId = paymentIdOf(await payments.charge(asked));
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
    assert.equal((await payments.findDispute(dispute.disputeId))?.state, outcome, "the first word stands");
    const afterwards = await payments.refund(refundRequest(paymentId, 1n));
    assert.equal(afterwards.state, outcome === "won" ? "succeeded" : "failed");
  }
  assert.equal(await payments.findDispute("dp_unheard_of"), null);
});

test("a charge may be made and its answer never come, nor a notice", async () => {
  const receiver = await receiving();
  const patience = new AbortController();
  const impatient = createFakePayments({ origin, deadline: () => patience.signal });
  const asked = request("pm_test_timeout_but_charged");
  const refused = assert.rejects(impatient.charge(asked), PaymentUnknown);
  await until("it is charged", () => payments.findCharge(asked.orderId));
  patience.abort();
  await refused;
  assert.equal((await payments.charge(asked)).state, "succeeded", "asked again, it tells of the first one");
  const heard = request();
  await payments.charge(heard);
  await receiver.eventsAbout(heard.orderId);
  assert.ok(receiver.events.every((notice) => parseEvent(notice)["orderId"] !== asked.orderId));
});

test("whoever tests decides on a page in the place of a bank", async () => {
  const desk = await startFakeProvider({ store: memoryStore(), now });
  after(() => desk.close());
  const there = createFakePayments({ origin: desk.origin });
  const paid = async (methodId: string) => paymentIdOf(await there.charge(request(methodId)));
  const disputed = request("pm_test_dispute");
  await there.charge(disputed);
  const refund = refundRequest(await paid("pm_test_refund_waits"), 123n);
  await there.refund(refund);
  const payout = payoutRequest("acct_test_waits");
  await there.payOut(payout);
  const look = async () => (await fetch(desk.origin)).text();
  const page = await look();
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
  assert.doesNotMatch(await look(), /<form/);
  assert.equal((await there.findRefund(refund.refundId))?.state, "failed");
  assert.equal((await there.findPayout(payout.payoutId))?.state, "completed");
  assert.equal((await there.findDispute(paths[0]![1]!.split("/")[2]!))?.state, "won");
});

test("a notice may come twice", async () => {
  const receiver = await receiving();
  const asked = request("pm_test_duplicate_webhook");
  await payments.charge(asked);
  assert.equal((await receiver.eventsAbout(asked.orderId, 2)).length, 2);
});

test("a notice may come before the answer that it is about", async () => {
  let isAnswered = false;
  const answeredAtNotice: boolean[] = [];
  await receiving(() => {
    answeredAtNotice.push(isAnswered);
    return 200;
  });
  const { state } = await payments.charge(request("pm_test_webhook_before_response"));
  isAnswered = true;
  assert.equal(state, "succeeded");
  assert.deepEqual(answeredAtNotice, [false]);
});

test("a notice that is not taken is sent again, and given up after some tries", async () => {
  const stubborn = await receiving((nth) => (nth < 3 ? 503 : 200));
  const early = request("pm_test_webhook_before_response");
  await payments.charge(early);
  const [first, ...more] = (await stubborn.eventsAbout(early.orderId, 3)).map(({ body }) => body.toString());
  assert.deepEqual(more, [first, first]);
  const deaf = await receiving(() => 500);
  const unheard = request("pm_test_webhook_before_response");
  assert.equal((await payments.charge(unheard)).state, "succeeded");
  assert.equal((await deaf.eventsAbout(unheard.orderId, 3)).length, 3);
});

test("a provider whose notices lead nowhere answers all the same", async () => {
  provider.sendWebhooksTo("http://127.0.0.1:9/nobody");
  assert.equal((await payments.charge(request("pm_test_webhook_before_response"))).state, "succeeded");
  provider.sendWebhooksTo(null);
  assert.equal((await payments.charge(request("pm_test_webhook_before_response"))).state, "succeeded");
});

test("every change is told of: what waits and ends, what is given back, paid out or disputed", async () => {
  const receiver = await receiving();
  const { order, url } = await waitingCharge();
  await press(url, "approve");
  const refund = refundRequest(await hasCharge("pm_test_refund_waits"), 1n);
  const { providerRefundId } = await payments.refund(refund);
  await post(`/v1/refunds/${providerRefundId}/end`, { state: "succeeded" });
  const payout = payoutRequest("acct_test_waits");
  const { providerPayoutId } = await payments.payOut(payout);
  await post(`/v1/payouts/${providerPayoutId}/end`, { state: "completed" });
  for (const id of [order.orderId, refund.refundId, payout.payoutId])
    assert.equal((await receiver.eventsAbout(id, 2)).length, 2);
});

test("only a notice that the provider signed of late is believed", async () => {
  const receiver = await receiving();
  const asked = request();
  await payments.charge(asked);
  const [notice] = await receiver.eventsAbout(asked.orderId);
  const { body, headers } = notice!;
  assert.deepEqual(await read(notice!), { about: "payment", orderId: asked.orderId });
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

test("a signed notice of something else concerns nobody", async () => {
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

test("a named method becomes somebody's own under an id that nobody else can pay by", async () => {
  const own = await payments.findMethod("usr_1", "pm_test_declined");
  assert.ok(own && own.id !== "pm_test_declined");
  assert.deepEqual(await payments.findMethod("usr_1", own.id), own, "by its id it is the same");
  assert.equal(await payments.findMethod("usr_2", own.id), null);
  assert.equal(await payments.findMethod("usr_1", "pm_test_nobody"), null);
  assert.equal(declineCodeOf(await payments.charge(request(own.id))), "card_declined");
  const theirs = { ...request(own.id), userId: "usr_2" };
  assert.deepEqual(await payments.charge(theirs), { state: "unknown_method" });
});

test("what everybody has are the named methods, all of which it knows", async () => {
  for (const { id, brand, last4 } of payments.sharedMethods) {
    const found = await payments.findMethod("usr_1", id);
    assert.deepEqual({ brand: found?.brand, last4: found?.last4 }, { brand, last4 });
  }
});

const read = ({ body, headers }: PostedEvent) => payments.parseWebhook(body, headers);

/** Whoever gets the notices of what is done from now on. */
async function receiving(answer?: (nth: number) => number) {
  const receiver = await startPaymentEventReceiver(answer);
  provider.sendWebhooksTo(receiver.url);
  after(() => receiver.close());
  return receiver;
}

async function post(path: string, body: object) {
  const headers = { "content-type": "application/json" };
  return fetch(`${provider.origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function waitingCharge() {
  const order = request("pm_test_requires_action");
  const outcome = await payments.charge(order);
  assert.ok(outcome.state === "requires_action");
  return { order, outcome, url: outcome.url };
}

async function press(url: string, decision: string): Promise<string> {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams({ decision }) });
  return response.text();
}

async function listening(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => server.close().closeAllConnections());
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
