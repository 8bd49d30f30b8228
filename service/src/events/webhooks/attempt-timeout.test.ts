import assert from "node:assert/strict";
import { beforeEach, type TestContext, test } from "node:test";
import type { Client } from "../../../test/market.ts";
import { drain, until } from "../../../test/until.ts";
import type { WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { HOUR_MS, MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import type { DeliveryWorker } from "./delivery-worker.ts";

/** No test takes that long: `holdDeadlines` ends the calls. */
const postDeadlines = { totalMs: HOUR_MS };
const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket({ postDeadlines });
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

/**
 * Returns a function that lets the deadlines of all calls pass. On a busy machine, a short real one could pass before the receiver
 * has the request.
 */
function holdDeadlines(t: TestContext): () => void {
  const deadlines: (() => void)[] = [];
  const { setTimeout } = globalThis;
  t.mock.method(globalThis, "setTimeout", (onTimeout: () => void, ms?: number, ...values: []) => {
    if (ms === postDeadlines.totalMs) deadlines.push(onTimeout);
    return setTimeout(onTimeout, ms, ...values);
  });
  return () => {
    for (const pass of deadlines.splice(0)) pass();
  };
}

test("receivers that never answer or drip: are retried, and the log has the reason", async (t) => {
  const passDeadlines = holdDeadlines(t);
  const silent = await hasEndpoint(owner, { url: `${receiver.url}/silent` });
  const dripping = await hasEndpoint(owner, { url: `${receiver.url}/drips` });
  let drops = 0;
  receiver.answer = (response, { path }) => {
    if (path !== "/drips") return;
    const drip = setInterval(() => {
      response.write(".");
      drops++;
    }, 5);
    response.on("close", () => clearInterval(drip));
  };
  await happens(owner);
  const worker = newDeliveryWorker();
  await drain(() => worker.runOnce());
  await until("both have the request", () => receiver.received.length === 2 && drops > 2);
  passDeadlines();
  await worker.idle();
  for (const endpoint of [silent, dripping]) {
    const [delivery] = await deliveriesOf(owner, endpoint);
    assert.equal(delivery.status, "retrying");
    const { attempts } = await detailOf(owner, delivery);
    assert.equal(attempts[0].error.code, "timeout");
  }
  assert.deepEqual(receiver.received.map(({ path }) => path).sort(), ["/drips", "/silent"]);
});

test("hanging endpoint: gets one attempt at a time, and eight again when it answers", async (t) => {
  const passDeadlines = holdDeadlines(t);
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
  const endByDeadlines = async (arrived: number) => {
    await until("all have arrived", () => pending.length === arrived);
    passDeadlines();
    await worker.idle();
  };
  assert.equal(await beginAll(worker), 8);
  await endByDeadlines(8);
  market.clock.forward(MINUTE_MS);
  assert.equal(await beginAll(worker), 1);
  await endByDeadlines(9);
  receiver.answer = 200;
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
