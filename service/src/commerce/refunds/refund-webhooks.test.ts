import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import { createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import {
  type PaymentEventReceiver,
  type PostedEvent,
  parseEvent,
  startPaymentEventReceiver,
} from "../../../test/payment-event-receiver.ts";
import { accountsOf } from "../../../test/refunds.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";
import { verifyLedger } from "../ledger/verification.ts";

let provider: FakeProvider;
let receiver: PaymentEventReceiver;
let market: Market;
let seller: Client;
before(async () => {
  const now = () => market.clock.now;
  const webhookDelays = { firstMs: 0, againMs: [] };
  provider = await startFakeProvider({ store: memoryStore(), now, webhookDelays });
  const { origin, secret } = provider;
  market = await openMarket({ payments: createFakePayments({ origin, secret, now }) });
  seller = await market.createUser({ name: "Seller" });
  receiver = await startPaymentEventReceiver();
  provider.sendWebhooksTo(receiver.url);
});
beforeEach(() => {
  receiver.events.length = 0;
});
after(async () => {
  await market.close();
  await provider.close();
  await receiver.close();
});

const deliver = async ({ body, headers }: PostedEvent): Promise<void> => {
  const reply = await market.as(null).request("POST", "/payments/webhooks/fake", {
    body: new Uint8Array(body),
    headers: { "content-type": "application/json", "fake-signature": headers["fake-signature"] ?? "" },
  });
  assert.equal(reply.status, 200, reply.text);
};

/** Each webhook twice. */
const orders = {
  "in order": (webhooks: PostedEvent[]) => webhooks.flatMap((webhook) => [webhook, webhook]),
  "in reverse": (webhooks: PostedEvent[]) => [...webhooks, ...webhooks].reverse(),
};

interface Bought {
  buyer: Client;
  orderId: string;
}

async function createPurchase(paymentMethodId: string): Promise<Bought> {
  const buyer = await market.createUser();
  const productId = await createProduct(seller, { price: 10 });
  const { body } = await buyer.post("/v1/purchases", { productId, paymentMethodId });
  assert.equal(body.data.status, "completed");
  return { buyer, orderId: body.data.orderId };
}

const requestRefund = async ({ buyer, orderId }: Bought) =>
  (await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "accidental" })).body.data;
const orderOf = async ({ buyer, orderId }: Bought) => (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
/** The bank decides. */
const decide = (path: string, json: object) =>
  market.as(null).request("POST", provider.origin + path, { json });

for (const [order, arrange] of Object.entries(orders)) {
  suite(`payment webhooks, each twice and ${order}`, () => {
    test("a refund that the bank delays: settled", async () => {
      const bought = await createPurchase("pm_test_refund_waits");
      const { id, status } = await requestRefund(bought);
      assert.equal(status, "processing");
      const first = await receiver.eventsAbout(id);
      const { body } = await market.as(null).get(`${provider.origin}/v1/refunds?refund=${id}`);
      await decide(`/v1/refunds/${body.id}/end`, { state: "succeeded" });
      const second = (await receiver.eventsAbout(id, 2)).slice(1);
      for (const webhook of arrange([...first, ...second])) await deliver(webhook);
      const { refunds, status: after } = await orderOf(bought);
      assert.deepEqual([after, refunds[0].status], ["refunded", "succeeded"]);
      assert.deepEqual(await accountsOf(market, bought.orderId), {
        processor_fees: -59,
        provider_clearing: 59,
      });
    });

    for (const [outcome, status] of [
      ["won", "completed"],
      ["lost", "refunded"],
    ] as const) {
      test(`a dispute that is ${outcome}: applied`, async () => {
        const bought = await createPurchase("pm_test_dispute");
        const [opened] = await receiver.eventsAbout("dp_");
        const { disputeId } = parseEvent(opened!);
        await deliver(opened!);
        assert.equal((await orderOf(bought)).status, "disputed");
        await decide(`/v1/disputes/${disputeId}/close`, { outcome });
        for (const webhook of arrange(await receiver.eventsAbout(disputeId!, 2))) await deliver(webhook);
        assert.equal((await orderOf(bought)).status, status);
        const accounts = await accountsOf(market, bought.orderId);
        if (outcome === "won") assert.equal(accounts["seller"], 900);
        else assert.deepEqual(accounts, { processor_fees: -59, provider_clearing: 1_559, seller: -1_500 });
      });
    }
  });
}

test("a method whose refunds fail: the buyer keeps the product", async () => {
  const bought = await createPurchase("pm_test_refund_fails");
  assert.partialDeepStrictEqual(await requestRefund(bought), {
    status: "failed",
    failureCode: "expired_or_canceled_card",
  });
  const { status, entitlement } = await orderOf(bought);
  assert.deepEqual([status, entitlement.status], ["completed", "active"]);
});

test("all refunds above: ledger verification finds no problem", async () => {
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
