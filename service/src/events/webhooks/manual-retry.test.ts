import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { assertError, type Client } from "../../../test/market.ts";
import { MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { createDeliveries } from "./create-deliveries.ts";

const { deliver, deliveriesOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

test("test event: goes only to its endpoint, whatever types it subscribes to, and is an event of the owner", async () => {
  const one = await hasEndpoint(owner, { eventTypes: ["payout.completed"] });
  const other = await hasEndpoint(owner, { url: `${receiver.url}/other` });
  const reply = await owner.post(`/v1/webhooks/${one.id}/test`);
  assert.deepEqual(
    [reply.status, reply.body.data.eventType, reply.body.data.status],
    [201, "test", "pending"],
  );
  await deliver();
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ["/hook"],
  );
  const event = JSON.parse(receiver.received[0]!.body);
  assert.deepEqual([event.id, event.type], [reply.body.data.eventId, "test"]);
  assert.deepEqual((await owner.get(`/v1/events/${event.id}`)).body.data, event);
  assert.deepEqual(await deliveriesOf(owner, other), []);
  await owner.patch(`/v1/webhooks/${one.id}`, { enabled: false });
  const off = assertError(await owner.post(`/v1/webhooks/${one.id}/test`), 409, "INVALID_STATE");
  assert.equal(off.current, "disabled");
  assertError(await owner.post(`/v1/webhooks/${one.id}/test`, { type: "x" }), 400, "INVALID_REQUEST");
});

test("manual retry: is the next attempt and uses none of the schedule", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner);
  await deliver();
  const [{ id, nextAttemptAt }] = await deliveriesOf(owner, endpoint);
  assert.equal((await owner.post(`/v1/deliveries/${id}/retry`)).status, 200);
  await deliver();
  const [after] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([after.attempt, after.status, after.nextAttemptAt], [2, "retrying", nextAttemptAt]);
  market.clock.forward(MINUTE_MS);
  await deliver();
  const [third] = await deliveriesOf(owner, endpoint);
  const wait = Date.parse(third.nextAttemptAt) - market.clock.now.getTime();
  assert.deepEqual([third.attempt, wait], [3, 5 * MINUTE_MS]);
});

/** An endpoint with a Retry-After of ten minutes, and two more due deliveries. */
async function createBlockedEndpoint() {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = (response) => response.writeHead(429, { "retry-after": "600" }).end();
  await happens(owner, "first");
  await deliver();
  receiver.answer = 200;
  await happens(owner, "second");
  await happens(owner, "third");
  await deliver();
  assert.equal(receiver.received.length, 1);
  return endpoint;
}

test("manual retry during Retry-After: is sent at once, and no other delivery", async () => {
  const endpoint = await createBlockedEndpoint();
  const [, , first] = await deliveriesOf(owner, endpoint);
  await owner.post(`/v1/deliveries/${first.id}/retry`);
  const test = (await owner.post(`/v1/webhooks/${endpoint.id}/test`)).body.data;
  await deliver();
  const statuses = (await deliveriesOf(owner, endpoint)).map(
    ({ id, status }: { id: string; status: string }) => [
      id === test.id ? "test" : id === first.id ? "first" : "other",
      status,
    ],
  );
  assert.deepEqual(statuses, [
    ["test", "succeeded"],
    ["other", "pending"],
    ["other", "pending"],
    ["first", "succeeded"],
  ]);
  market.clock.forward(10 * MINUTE_MS);
  await deliver();
  assert.equal(receiver.received.length, 5);
});

test("PATCH with the same URL: does not end Retry-After", async () => {
  const { id, url } = await createBlockedEndpoint();
  await owner.patch(`/v1/webhooks/${id}`, { url, description: "the same place" });
  await deliver();
  assert.equal(receiver.received.length, 1);
});

test("failed test event: continues by the schedule", async () => {
  const endpoint = await createBlockedEndpoint();
  receiver.answer = 500;
  await owner.post(`/v1/webhooks/${endpoint.id}/test`);
  await deliver();
  const [test] = await deliveriesOf(owner, endpoint);
  const wait = Date.parse(test.nextAttemptAt) - market.clock.now.getTime();
  assert.deepEqual([test.status, test.attempt, wait], ["retrying", 1, MINUTE_MS]);
});

test("manual retry with many due deliveries: is sent first", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner, "first");
  await deliver();
  const [first] = await deliveriesOf(owner, endpoint);
  for (let n = 0; n < 20; n++) await happens(owner, `${n}`);
  await createDeliveries(market.service.ctx);
  market.clock.forward(1);
  await owner.post(`/v1/deliveries/${first.id}/retry`);
  receiver.received.length = 0;
  const worker = newDeliveryWorker();
  await worker.runOnce();
  await worker.idle();
  const attempts = receiver.received.map(({ headers }) => headers["x-service-attempt"]);
  assert.equal(attempts.length, 8);
  assert.ok(attempts.includes("2"), "the second attempt of a started delivery");
});

test("manual retry whose worker died: the next worker sends it at once", async () => {
  const endpoint = await createBlockedEndpoint();
  await owner.post(`/v1/webhooks/${endpoint.id}/test`);
  const until = new Date(market.clock.now.getTime() + MINUTE_MS);
  const claim = "select id from claim_deliveries($1, false, 10, 32, gen_random_uuid(), $2, null)";
  assert.equal((await market.query(claim, [market.clock.now, until])).rows.length, 1);
  market.clock.forward(MINUTE_MS);
  const worker = newDeliveryWorker();
  await worker.reclaimLeases();
  await deliver(worker);
  assert.equal((await deliveriesOf(owner, endpoint))[0].status, "succeeded");
});
