import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { hooksOf } from "../../test/hooks.ts";
import { assertError, type Client, type Market, openMarket } from "../../test/market.ts";
import { type Receiver, startReceiver } from "../../test/receiver.ts";

let market: Market;
let receiver: Receiver;
let owner: Client;
const { forgetAll, happens, hasEndpoint, deliver, deliveriesOf, detailOf } = hooksOf(
  () => market,
  () => receiver,
);
before(async () => {
  market = await openMarket({ postDeadlines: { totalMs: 400 } });
  receiver = await startReceiver();
});
beforeEach(async () => {
  await forgetAll();
  receiver.received.length = 0;
  receiver.answer = 200;
  owner = await market.hasUser();
});
after(async () => {
  await market.close();
  await receiver.close();
});

async function hasDelivered(wish: object = {}) {
  const endpoint = await hasEndpoint(owner, wish);
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  return { endpoint, delivery };
}

test("a delivery whose endpoint was removed is read, and not repeated", async () => {
  const { endpoint, delivery } = await hasDelivered();
  await owner.delete(`/v1/webhooks/${endpoint.id}`);
  assert.equal((await detailOf(owner, delivery)).attempts.length, 1);
  const refused = await owner.post(`/v1/deliveries/${delivery.id}/retry`);
  assert.deepEqual(assertError(refused, 409, "INVALID_STATE"), { current: "removed" });
});

for (const [name, end] of [
  ["switched off", (id: string) => owner.patch(`/v1/webhooks/${id}`, { enabled: false })],
  ["removed", (id: string) => owner.delete(`/v1/webhooks/${id}`)],
  [
    "no longer told of such",
    (id: string) => owner.patch(`/v1/webhooks/${id}`, { eventTypes: ["payout.completed"] }),
  ],
] as const)
  test(`what was delivered stays so, though its endpoint is ${name} before it is repeated`, async () => {
    const { endpoint, delivery } = await hasDelivered();
    await owner.post(`/v1/deliveries/${delivery.id}/retry`);
    assert.equal((await end(endpoint.id)).status, 200);
    await deliver();
    const { status, nextAttemptAt, endedAt } = await detailOf(owner, delivery);
    assert.deepEqual([status, nextAttemptAt], ["succeeded", null]);
    assert.equal(endedAt, market.clock.now.toISOString());
    assert.equal(receiver.received.length, 1);
  });
