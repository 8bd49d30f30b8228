import assert from "node:assert/strict";
import { after, beforeEach } from "node:test";
import { publishEvent } from "../src/events/outbox/outbox.ts";
import { DeliveryWorker } from "../src/events/webhooks/delivery-worker.ts";
import { type Client, type Market, type MarketOptions, openMarket } from "./market.ts";
import { drain } from "./until.ts";
import { startWebhookReceiver, type WebhookReceiver } from "./webhook-receiver.ts";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** A market and a receiver, reset before each test: no endpoint, and an answer of 200. */
export async function openWebhookMarket(
  fields: Pick<MarketOptions, "postDeadlines" | "transactionTimeouts"> = {},
) {
  const market = await openMarket(fields);
  const receiver = await startWebhookReceiver();
  const hooks = webhookHelpers(
    () => market,
    () => receiver,
  );
  beforeEach(async () => {
    await hooks.forgetAll();
    receiver.received.length = 0;
    receiver.answer = 200;
  });
  after(async () => {
    await market.close();
    await receiver.close();
  });
  return { market, receiver, ...hooks };
}

export function webhookHelpers(market: () => Market, receiver: () => WebhookReceiver) {
  const newDeliveryWorker = (options: ConstructorParameters<typeof DeliveryWorker>[1] = {}) =>
    new DeliveryWorker(market().service.ctx, { random: () => 0, ...options });
  return {
    newDeliveryWorker,

    /** Delivers until nothing is due. */
    async deliver(worker = newDeliveryWorker()): Promise<void> {
      await deliverAll(worker);
    },

    async hasEndpoint(owner: Client, fields: object = {}) {
      const reply = await owner.post("/v1/webhooks", { url: `${receiver().url}/hook`, ...fields });
      assert.equal(reply.status, 201, reply.text);
      return reply.body.data;
    },

    /** Publishes an event to the owner, past the rooms. Returns its id. */
    async happens(owner: Client, comment = "hello"): Promise<string> {
      const { ctx } = market().service;
      const review = { id: "rev_1", productId: "prod_1", rating: 5, comment, authorId: "usr_1" };
      return ctx.db
        .transaction()
        .execute((tx) => publishEvent(ctx, tx, [owner.userId], "review.created", { review }));
    },

    deliveriesOf: async (owner: Client, { id }: { id: string }) =>
      (await owner.get(`/v1/webhooks/${id}/deliveries?limit=100`)).body.data,

    detailOf: async (owner: Client, { id }: { id: string }) =>
      (await owner.get(`/v1/deliveries/${id}`)).body.data,

    /** Deletes endpoints past the API, so that nothing waits from an earlier test. */
    forgetAll: () => market().query("delete from webhook_endpoints"),
  };
}

/** Delivers until nothing is due. */
export const deliverAll = (worker: DeliveryWorker) =>
  drain(async () => {
    const hasBegun = await worker.runOnce();
    if (hasBegun) await worker.idle();
    return hasBegun;
  });
