import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { dumpOf } from "../../test/dump.ts";
import { hasProduct } from "../../test/factories.ts";
import { type Client, type Market, openMarket, type Reply } from "../../test/market.ts";
import { type NoticeReceiver, noticeIn, type PostedNotice, startNoticeReceiver } from "../../test/notices.ts";
import { behind, type PaymentLine } from "../../test/payments.ts";
import { verifyLedger } from "../ledger/verify.ts";
import { fakePayments } from "../outside/payments.fake.ts";
import { type FakeProvider, startFakeProvider } from "../outside/payments.fake-server.ts";
import { memoryChargeStore } from "../outside/payments.fake-store.ts";

const SEED = Number(process.env["STOA_TEST_SEED"] ?? 20260615);
const RUNS = 6;

const books = memoryChargeStore();
const line: PaymentLine = { trouble: "none" };
let provider: FakeProvider;
let receiver: NoticeReceiver;
let market: Market;
let seller: Client;
before(async () => {
  const now = () => market.clock.now;
  const noticeWaits = { firstMs: 0, againMs: [] };
  provider = await startFakeProvider({ store: books, now, noticeWaits });
  receiver = await startNoticeReceiver();
  provider.postNoticesTo(receiver.url);
  const { origin, secret } = provider;
  market = await openMarket({ payments: behind(line, fakePayments({ origin, secret, now })) });
  seller = await market.hasUser({ name: "Seller" });
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
} satisfies Record<string, Fate>;

interface Fate {
  method: string;
  ends: string;
  refund?: "at once" | "late";
  dispute?: "won" | "lost";
}

interface Purchase extends Fate {
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
  const buyer = await market.hasUser();
  const wish = { productId: await hasProduct(seller), paymentMethodId: fate.method };
  const reply = await unheard(() => buyer.post("/v1/purchases", wish));
  assert.equal(reply.status, 202, reply.text);
  return { ...fate, buyer, orderId: reply.body.data.orderId };
}

/** What the provider posts of the purchase itself. */
async function noticesOf({ orderId, method }: Purchase): Promise<PostedNotice[]> {
  const paid = await receiver.naming(orderId, method === "pm_test_duplicate_webhook" ? 2 : 1);
  const disputeId = await disputeOf(orderId);
  return disputeId ? [...paid, ...(await receiver.naming(disputeId))] : paid;
}

async function disputeOf(orderId: string): Promise<string | undefined> {
  const charge = await books.findByOrder(orderId);
  return (await books.findDisputeOf(charge!.id))?.id;
}

/** Goes the way of its fate at the provider, unheard by us; answers what is posted of that. */
async function meetsFate(purchase: Purchase): Promise<PostedNotice[]> {
  if (purchase.refund) return isRefunded(purchase);
  if (!purchase.dispute) return [];
  const disputeId = (await disputeOf(purchase.orderId))!;
  await ask(`/v1/disputes/${disputeId}/close`, { outcome: purchase.dispute });
  return (await receiver.naming(disputeId, 2)).slice(1);
}

async function isRefunded({ buyer, orderId, refund }: Purchase): Promise<PostedNotice[]> {
  const path = `/v1/purchases/${orderId}/refund`;
  const reply = await unheard(() => buyer.post(path, { reason: "accidental" }));
  assert.equal(reply.status, 201, reply.text);
  const { id } = reply.body.data;
  if (refund === "at once") return receiver.naming(id);
  const { id: providersId } = (await books.findRefund(id))!;
  await ask(`/v1/refunds/${providersId}/end`, { state: "succeeded" });
  return receiver.naming(id, 2);
}

async function ask(path: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(provider.origin + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(reply.status, 200);
}

async function deliver(notice: PostedNotice): Promise<void> {
  const reply = await market.as(null).request("POST", "/payments/webhooks/fake", {
    body: new Uint8Array(notice.body),
    headers: { "fake-signature": notice.headers["fake-signature"]! },
  });
  assert.equal(reply.status, 200, `${JSON.stringify(noticeIn(notice))} ${reply.text}`);
}

/** As they are listed, which asks the provider nothing. */
const statusOf = async ({ buyer }: Purchase): Promise<string> =>
  (await buyer.get("/v1/purchases")).body.data[0].status;

/** Every row, but for when keys were last used. */
const dump = async () => (await dumpOf(market, ["api_keys"])).split("\n").sort().join("\n");

test(`notices alone carry every history to its end: in any order, doubled, at once, and replayed in reverse (STOA_TEST_SEED=${SEED})`, async () => {
  const histories = fc.shuffledSubarray(Object.values<Fate>(fates), { minLength: 5 });
  await fc.assert(
    fc.asyncProperty(histories, fc.gen(), async (history, choose) => {
      const shuffled = (notices: PostedNotice[]) => {
        const doubled = [...notices, ...notices];
        return choose(fc.shuffledSubarray, doubled, { minLength: doubled.length });
      };
      const purchases: Purchase[] = [];
      for (const fate of history) purchases.push(await buys(fate));
      const early = (await Promise.all(purchases.map(noticesOf))).flat();
      await Promise.all(shuffled(early).map(deliver));
      const late: PostedNotice[] = [];
      for (const purchase of purchases) late.push(...(await meetsFate(purchase)));
      await Promise.all(shuffled([...early, ...late]).map(deliver));
      const stands = await Promise.all(purchases.map(statusOf));
      assert.deepEqual(
        stands,
        history.map(({ ends }) => ends),
      );
      const ended = await dump();
      const all = [...early, ...late];
      for (const notice of [...all, ...all, ...all.toReversed(), ...all.toReversed()]) await deliver(notice);
      assert.equal(await dump(), ended);
    }),
    { seed: SEED, numRuns: RUNS, endOnFailure: true },
  );
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
