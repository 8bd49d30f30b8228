import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { Client } from "../../../test/market.ts";
import { drain } from "../../../test/until.ts";
import type { WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import type { DeliveryWorker } from "./delivery-worker.ts";

// Each of these tests waits for the timeout, which a busy machine must not reach before the receiver has the request.
const postDeadlines = { totalMs: 600 };
const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket({ postDeadlines });
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

test("receivers that never answer or drip: are retried, and the log has the reason", async () => {
  const silent = await hasEndpoint(owner, { url: `${receiver.url}/silent` });
  const dripping = await hasEndpoint(owner, { url: `${receiver.url}/drips` });
  receiver.answer = (response, { path }) => {
    if (path === "/drips") setInterval(() => response.write("."), 50).unref();
  };
  await happens(owner);
  await deliver();
  for (const endpoint of [silent, dripping]) {
    const [delivery] = await deliveriesOf(owner, endpoint);
    assert.equal(delivery.status, "retrying");
    const { attempts } = await detailOf(owner, delivery);
    assert.equal(attempts[0].error.code, "timeout");
  }
  assert.deepEqual(receiver.received.map(({ path }) => path).sort(), ["/drips", "/silent"]);
});

test("hanging endpoint: gets one attempt at a time, and eight again when it answers", async () => {
  const pending: (() => void)[] = [];
  const hang: WebhookReceiver["answer"] = (response) => void pending.push(() => response.end());
  const beginAll = async (worker: DeliveryWorker) => {
    await drain(() => worker.runOnce());
    const { rows } = await market.query(
      "select count(*) from webhook_deliveries where lease_token is not null",
    );
    return rows[0].count;
  };
  await hasEndpoint(owner);
  for (let n = 0; n < 8; n++) await happens(owner, `${n}`);
  receiver.answer = hang;
  const worker = newDeliveryWorker();
  assert.equal(await beginAll(worker), 8);
  await worker.idle();
  market.clock.forward(MINUTE_MS);
  assert.equal(await beginAll(worker), 1);
  receiver.answer = 200;
  await worker.idle();
  market.clock.forward(5 * MINUTE_MS);
  await deliver(worker);
  receiver.answer = hang;
  for (let n = 0; n < 9; n++) await happens(owner, `again ${n}`);
  assert.equal(await beginAll(worker), 8);
  for (const end of pending) end();
  receiver.answer = 200;
  await deliver(worker);
  await worker.idle();
});
