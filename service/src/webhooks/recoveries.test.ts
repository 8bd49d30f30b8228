import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { hooksOf } from "../../test/hooks.ts";
import { type Client, type Market, openMarket } from "../../test/market.ts";
import { type Receiver, startReceiver } from "../../test/receiver.ts";
import { toUuid } from "../ids.ts";
import { carryOutRecovery } from "./recoveries.ts";

let market: Market;
let receiver: Receiver;
let owner: Client;
const { forgetAll, happens, hasEndpoint, deliver } = hooksOf(
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

/** A failed delivery: its endpoint answered 410, and was switched on again. */
async function hasLost(count = 1) {
  const endpoint = await hasEndpoint(owner);
  for (let n = 0; n < count; n++) await happens(owner, `${n}`);
  receiver.answer = 410;
  await deliver();
  receiver.answer = 200;
  receiver.received.length = 0;
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  return endpoint;
}

const since = () => new Date(market.clock.now.getTime() - 3_600_000).toISOString();

async function asksToRecover({ id }: { id: string }, wish: object = { since: since() }) {
  const reply = await owner.post(`/v1/webhooks/${id}/recover`, wish);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const carryOut = ({ id }: { id: string }, signal = new AbortController().signal) =>
  carryOutRecovery(market.service.ctx, toUuid("rcv", id)!, signal);

for (const [name, end] of [
  ["switched off", (id: string) => owner.patch(`/v1/webhooks/${id}`, { enabled: false })],
  ["removed", (id: string) => owner.delete(`/v1/webhooks/${id}`)],
] as const)
  test(`a recovery brings nothing to an endpoint that is ${name} meanwhile`, async () => {
    const endpoint = await hasLost();
    const recovery = await asksToRecover(endpoint);
    await end(endpoint.id);
    await carryOut(recovery);
    await deliver();
    assert.equal(receiver.received.length, 0);
    const { rows } = await market.query("select status, due_at from webhook_deliveries");
    assert.deepEqual(rows, [{ status: "failed", due_at: null }]);
    const { rows: ended } = await market.query("select from webhook_recoveries where ended_at is not null");
    assert.equal(ended.length, 1);
  });
