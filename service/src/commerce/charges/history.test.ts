import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { dumpDatabase } from "../../../test/dump.ts";
import { createProduct } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import {
  type PaymentEventReceiver,
  type PostedEvent,
  parseEvent,
  startPaymentEventReceiver,
} from "../../../test/payment-event-receiver.ts";
import { type PaymentConnection, withConnectionTrouble } from "../../../test/payments.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  signWebhook,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { verifyLedger } from "../ledger/verification.ts";

const RUNS = 6;
/** Longer than the refund window, after which a sale matures. */
const MATURE_MS = 15 * 86_400_000;

const books = memoryStore();
const line: PaymentConnection = { trouble: "none" };
let provider: FakeProvider;
let receiver: PaymentEventReceiver;
let market: Market;
before(async () => {
  const now = () => market.clock.now;
  const webhookDelays = { firstMs: 0, againMs: [] };
  provider = await startFakeProvider({ store: books, now, webhookDelays });
  receiver = await startPaymentEventReceiver();
  provider.sendWebhooksTo(receiver.url);
  const { origin, secret } = provider;
  market = await openMarket({
    payments: withConnectionTrouble(line, createFakePayments({ origin, secret, now })),
  });
});
after(async () => {
  await market.close();
  await provider.close();
  await receiver.close();
});

/** What the provider does with a purchase, and the final state. */
const scenarios = {
  bought: { method: "pm_test_ok", ends: "completed" },
  declined: { method: "pm_test_declined", ends: "failed" },
  "two webhooks": { method: "pm_test_duplicate_webhook", ends: "completed" },
  refunded: { method: "pm_test_ok", ends: "refunded", refund: "at once" },
  "refunded late": { method: "pm_test_refund_waits", ends: "refunded", refund: "late" },
  "failed refund": { method: "pm_test_refund_fails", ends: "completed", refund: "at once" },
  disputed: { method: "pm_test_dispute", ends: "disputed" },
  "won dispute": { method: "pm_test_dispute", ends: "completed", dispute: "won" },
  "lost dispute": { method: "pm_test_dispute", ends: "refunded", dispute: "lost" },
  "paid out": { method: "pm_test_ok", ends: "completed", account: "acct_test", payout: "completed" },
  "paid out late": {
    method: "pm_test_ok",
    ends: "completed",
    account: "acct_test_waits",
    payout: "completed",
  },
  "failed payout": { method: "pm_test_ok", ends: "completed", account: "acct_test_fails", payout: "failed" },
  "returned payout": {
    method: "pm_test_ok",
    ends: "completed",
    account: "acct_test_returns",
    payout: "returned",
  },
} satisfies Record<string, Scenario>;

interface Scenario {
  method: string;
  ends: string;
  refund?: "at once" | "late";
  dispute?: "won" | "lost";
  /** The seller's payout account and the final state of the payout. */
  account?: string;
  payout?: "completed" | "failed" | "returned";
}

interface Purchase extends Scenario {
  seller: Client;
  buyer: Client;
  orderId: string;
}

/** Loses every answer of the provider. */
async function withLostAnswers(send: () => Promise<Reply>): Promise<Reply> {
  line.trouble = "answers get lost";
  try {
    return await send();
  } finally {
    line.trouble = "none";
  }
}

async function createPurchase(scenario: Scenario): Promise<Purchase> {
  const [seller, buyer] = [await market.createUser(), await market.createUser()];
  const input = { productId: await createProduct(seller, { price: 50 }), paymentMethodId: scenario.method };
  const reply = await withLostAnswers(() => buyer.post("/v1/purchases", input));
  assert.equal(reply.status, 202, reply.text);
  return { ...scenario, seller, buyer, orderId: reply.body.data.orderId };
}

/** The webhooks of the charge and its dispute. */
async function webhooksOf({ orderId, method }: Purchase): Promise<PostedEvent[]> {
  const paid = await receiver.eventsAbout(orderId, method === "pm_test_duplicate_webhook" ? 2 : 1);
  const disputeId = await disputeOf(orderId);
  return disputeId ? [...paid, ...(await receiver.eventsAbout(disputeId))] : paid;
}

async function disputeOf(orderId: string): Promise<string | undefined> {
  const charge = await books.findByOrder(orderId);
  return (await books.findDisputeOf(charge!.id))?.id;
}

/** Ends the refund or dispute at the provider. Returns the webhooks. */
async function endAtProvider(purchase: Purchase): Promise<PostedEvent[]> {
  if (purchase.refund) return refundPurchase(purchase);
  if (!purchase.dispute) return [];
  const disputeId = (await disputeOf(purchase.orderId))!;
  await postToProvider(`/v1/disputes/${disputeId}/close`, { outcome: purchase.dispute });
  return (await receiver.eventsAbout(disputeId, 2)).slice(1);
}

async function refundPurchase({ buyer, orderId, refund }: Purchase): Promise<PostedEvent[]> {
  const path = `/v1/purchases/${orderId}/refund`;
  const reply = await withLostAnswers(() => buyer.post(path, { reason: "accidental" }));
  assert.equal(reply.status, 201, reply.text);
  const { id } = reply.body.data;
  if (refund === "at once") return receiver.eventsAbout(id);
  const { id: providersId } = (await books.findRefund(id))!;
  await postToProvider(`/v1/refunds/${providersId}/end`, { state: "succeeded" });
  return receiver.eventsAbout(id, 2);
}

async function payOutSale({ seller, account }: Purchase): Promise<PostedEvent[]> {
  if (!account) return [];
  const session = await market.createSession(seller.userId);
  assert.equal((await session.put("/v1/account/payout-account", { account })).status, 200);
  const reply = await withLostAnswers(() => session.post("/v1/payouts", {}));
  assert.equal(reply.status, 201, reply.text);
  const { id } = reply.body.data;
  if (account !== "acct_test_waits") return receiver.eventsAbout(id);
  const { id: providersId } = (await books.findPayout(id))!;
  await postToProvider(`/v1/payouts/${providersId}/end`, { state: "completed" });
  return receiver.eventsAbout(id, 2);
}

async function postToProvider(path: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(provider.origin + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(reply.status, 200);
}

/** Signs each delivery anew, as the provider does. */
async function deliver(webhook: PostedEvent): Promise<void> {
  const signature = signWebhook(provider.secret, webhook.body.toString(), market.clock.now);
  const reply = await market.as(null).request("POST", "/payments/webhooks/fake", {
    body: new Uint8Array(webhook.body),
    headers: { "fake-signature": signature },
  });
  assert.equal(reply.status, 200, `${JSON.stringify(parseEvent(webhook))} ${reply.text}`);
}

/** Reads lists, which do not ask the provider. */
async function stateOf({ buyer, seller }: Purchase) {
  const [order] = (await buyer.get("/v1/purchases")).body.data;
  const [payout] = (await market.query("select status from payouts where seller_id = $1", [seller.userId]))
    .rows;
  return { order: order.status, payout: payout?.status };
}

/** All rows except the last use of keys, the request log and pg-boss's own timestamps. */
const dump = async () =>
  (await dumpDatabase(market, ["api_keys", "request_logs", "version"])).split("\n").sort().join("\n");

test("webhooks in any order, doubled, concurrent and replayed in reverse: each history ends in the same state", async () => {
  const histories = fc.shuffledSubarray(Object.values<Scenario>(scenarios), { minLength: 5 });
  await fc.assert(
    fc.asyncProperty(histories, fc.gen(), async (history, choose) => {
      const shuffled = (webhooks: PostedEvent[]) => {
        const doubled = [...webhooks, ...webhooks];
        const places = doubled.map((_, place) => place);
        const order = choose(fc.shuffledSubarray, places, { minLength: places.length });
        return order.map((place) => doubled[place]!);
      };
      const purchases: Purchase[] = [];
      for (const scenario of history) purchases.push(await createPurchase(scenario));
      const early = (await Promise.all(purchases.map(webhooksOf))).flat();
      await Promise.all(shuffled(early).map(deliver));
      const late: PostedEvent[] = [];
      for (const purchase of purchases) late.push(...(await endAtProvider(purchase)));
      market.clock.forward(MATURE_MS);
      for (const purchase of purchases) late.push(...(await payOutSale(purchase)));
      await Promise.all(shuffled([...early, ...late]).map(deliver));
      const states = await Promise.all(purchases.map(stateOf));
      assert.deepEqual(
        states,
        history.map(({ ends, payout }) => ({ order: ends, payout })),
      );
      const ended = await dump();
      const all = [...early, ...late];
      const again = isFullSize
        ? [...all, ...all, ...all.toReversed(), ...all.toReversed()]
        : all.toReversed();
      for (const webhook of again) await deliver(webhook);
      assert.equal(await dump(), ended);
    }),
    { numRuns: runs(RUNS, RUNS), endOnFailure: true },
  );
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
