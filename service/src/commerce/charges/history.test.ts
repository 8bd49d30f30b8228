import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { dumpDatabase } from "../../../test/dump.ts";
import { createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
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
/** Longer than the refund window, after which a seller may be paid out. */
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

/** What may become of a purchase, and how it stands when the provider's word has reached us. */
const fates = {
  bought: { method: "pm_test_ok", ends: "completed" },
  declined: { method: "pm_test_declined", ends: "failed" },
  "told of twice": { method: "pm_test_duplicate_webhook", ends: "completed" },
  "given back": { method: "pm_test_ok", ends: "refunded", refund: "at once" },
  "given back late": { method: "pm_test_refund_waits", ends: "refunded", refund: "late" },
  "not given back": { method: "pm_test_refund_fails", ends: "completed", refund: "at once" },
  disputed: { method: "pm_test_dispute", ends: "disputed" },
  "disputed in vain": { method: "pm_test_dispute", ends: "completed", dispute: "won" },
  "taken back": { method: "pm_test_dispute", ends: "refunded", dispute: "lost" },
  "paid out": { method: "pm_test_ok", ends: "completed", account: "acct_test", payout: "completed" },
  "paid out late": {
    method: "pm_test_ok",
    ends: "completed",
    account: "acct_test_waits",
    payout: "completed",
  },
  "not paid out": { method: "pm_test_ok", ends: "completed", account: "acct_test_fails", payout: "failed" },
  "paid out and back": {
    method: "pm_test_ok",
    ends: "completed",
    account: "acct_test_returns",
    payout: "returned",
  },
} satisfies Record<string, Fate>;

interface Fate {
  method: string;
  ends: string;
  refund?: "at once" | "late";
  dispute?: "won" | "lost";
  /** Where its seller is paid out, and how that payout ends. */
  account?: string;
  payout?: "completed" | "failed" | "returned";
}

interface Purchase extends Fate {
  seller: Client;
  buyer: Client;
  orderId: string;
}

/** Asks while every answer of the provider is lost. */
async function unheard(ask: () => Promise<Reply>): Promise<Reply> {
  line.trouble = "answers get lost";
  try {
    return await ask();
  } finally {
    line.trouble = "none";
  }
}

async function buys(fate: Fate): Promise<Purchase> {
  const [seller, buyer] = [await market.createUser(), await market.createUser()];
  const input = { productId: await createProduct(seller, { price: 50 }), paymentMethodId: fate.method };
  const reply = await unheard(() => buyer.post("/v1/purchases", input));
  assert.equal(reply.status, 202, reply.text);
  return { ...fate, seller, buyer, orderId: reply.body.data.orderId };
}

/** What the provider posts of the purchase itself. */
async function noticesOf({ orderId, method }: Purchase): Promise<PostedEvent[]> {
  const paid = await receiver.eventsAbout(orderId, method === "pm_test_duplicate_webhook" ? 2 : 1);
  const disputeId = await disputeOf(orderId);
  return disputeId ? [...paid, ...(await receiver.eventsAbout(disputeId))] : paid;
}

async function disputeOf(orderId: string): Promise<string | undefined> {
  const charge = await books.findByOrder(orderId);
  return (await books.findDisputeOf(charge!.id))?.id;
}

/** Goes the way of its fate at the provider, unheard by us; answers what is posted of that. */
async function meetsFate(purchase: Purchase): Promise<PostedEvent[]> {
  if (purchase.refund) return isRefunded(purchase);
  if (!purchase.dispute) return [];
  const disputeId = (await disputeOf(purchase.orderId))!;
  await ask(`/v1/disputes/${disputeId}/close`, { outcome: purchase.dispute });
  return (await receiver.eventsAbout(disputeId, 2)).slice(1);
}

async function isRefunded({ buyer, orderId, refund }: Purchase): Promise<PostedEvent[]> {
  const path = `/v1/purchases/${orderId}/refund`;
  const reply = await unheard(() => buyer.post(path, { reason: "accidental" }));
  assert.equal(reply.status, 201, reply.text);
  const { id } = reply.body.data;
  if (refund === "at once") return receiver.eventsAbout(id);
  const { id: providersId } = (await books.findRefund(id))!;
  await ask(`/v1/refunds/${providersId}/end`, { state: "succeeded" });
  return receiver.eventsAbout(id, 2);
}

async function isPaidOut({ seller, account }: Purchase): Promise<PostedEvent[]> {
  if (!account) return [];
  const session = await market.createSession(seller.userId);
  assert.equal((await session.put("/v1/account/payout-account", { account })).status, 200);
  const reply = await unheard(() => session.post("/v1/payouts", {}));
  assert.equal(reply.status, 201, reply.text);
  const { id } = reply.body.data;
  if (account !== "acct_test_waits") return receiver.eventsAbout(id);
  const { id: providersId } = (await books.findPayout(id))!;
  await ask(`/v1/payouts/${providersId}/end`, { state: "completed" });
  return receiver.eventsAbout(id, 2);
}

async function ask(path: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(provider.origin + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(reply.status, 200);
}

/** Signed anew, as the provider does each time that it sends a notice. */
async function deliver(notice: PostedEvent): Promise<void> {
  const signature = signWebhook(provider.secret, notice.body.toString(), market.clock.now);
  const reply = await market.as(null).request("POST", "/payments/webhooks/fake", {
    body: new Uint8Array(notice.body),
    headers: { "fake-signature": signature },
  });
  assert.equal(reply.status, 200, `${JSON.stringify(parseEvent(notice))} ${reply.text}`);
}

/** As they are listed, which asks the provider nothing. */
async function standingOf({ buyer, seller }: Purchase) {
  const [order] = (await buyer.get("/v1/purchases")).body.data;
  const [payout] = (await market.query("select status from payouts where seller_id = $1", [seller.userId]))
    .rows;
  return { order: order.status, payout: payout?.status };
}

/** Every row, but for when keys were last used, and for when pg-boss looked last, each minute. */
const dump = async () => (await dumpDatabase(market, ["api_keys", "version"])).split("\n").sort().join("\n");

test("webhooks in any order, doubled, concurrent and replayed in reverse: each history ends in the same state", async () => {
  const histories = fc.shuffledSubarray(Object.values<Fate>(fates), { minLength: 5 });
  await fc.assert(
    fc.asyncProperty(histories, fc.gen(), async (history, choose) => {
      const shuffled = (notices: PostedEvent[]) => {
        const doubled = [...notices, ...notices];
        const places = doubled.map((_, place) => place);
        const order = choose(fc.shuffledSubarray, places, { minLength: places.length });
        return order.map((place) => doubled[place]!);
      };
      const purchases: Purchase[] = [];
      for (const fate of history) purchases.push(await buys(fate));
      const early = (await Promise.all(purchases.map(noticesOf))).flat();
      await Promise.all(shuffled(early).map(deliver));
      const late: PostedEvent[] = [];
      for (const purchase of purchases) late.push(...(await meetsFate(purchase)));
      market.clock.forward(MATURE_MS);
      for (const purchase of purchases) late.push(...(await isPaidOut(purchase)));
      await Promise.all(shuffled([...early, ...late]).map(deliver));
      const stands = await Promise.all(purchases.map(standingOf));
      assert.deepEqual(
        stands,
        history.map(({ ends, payout }) => ({ order: ends, payout })),
      );
      const ended = await dump();
      const all = [...early, ...late];
      for (const notice of [...all, ...all, ...all.toReversed(), ...all.toReversed()]) await deliver(notice);
      assert.equal(await dump(), ended);
    }),
    { numRuns: runs(RUNS), endOnFailure: true },
  );
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
