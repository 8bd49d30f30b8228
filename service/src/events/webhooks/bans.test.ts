import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Client } from "../../../test/market.ts";
import { HOUR_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { checkFailingEndpoints } from "./endpoint-health.ts";
import { runRecovery } from "./recoveries.ts";

const { deliver, deliveriesOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();

let adminId: string;
before(async () => {
  adminId = (await market.createUser({ role: "admin" })).userId;
});

async function setBan(action: "ban" | "unban", { userId }: Client): Promise<void> {
  const admin = await market.createSession(adminId, { secondFactor: true });
  const input = action === "ban" ? { reason: "Fraud" } : undefined;
  const reply = await admin.post(`/v1/admin/users/${toId("usr", userId)}/${action}`, input);
  assert.equal(reply.status, 200, reply.text);
}

const statusesOf = async (owner: Client, endpoint: { id: string }) =>
  (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);

async function recover(owner: Client, { id }: { id: string }, since: Date): Promise<void> {
  const reply = await owner.post(`/v1/webhooks/${id}/recover`, { since: since.toISOString() });
  assert.equal(reply.status, 201, reply.text);
  const { ctx } = market.service;
  await runRecovery(ctx, toUuid("rcv", reply.body.data.id)!, new AbortController().signal);
}

test("banned owner: nothing is sent, and a recovery after the unban resends it", async () => {
  const owner = await market.createUser();
  const endpoint = await hasEndpoint(owner);
  const begun = market.clock.now;
  receiver.answer = 500;
  await happens(owner, "tried once");
  await deliver();
  await happens(owner, "not handed out");
  await setBan("ban", owner);
  receiver.answer = 200;
  await happens(owner, "after the ban");
  for (let days = 0; days < 6; days++) {
    await deliver();
    await checkFailingEndpoints(market.service.ctx);
    market.clock.forward(DAY_MS);
  }
  assert.equal(receiver.received.length, 1);

  await setBan("unban", owner);
  const { enabled } = (await owner.get(`/v1/webhooks/${endpoint.id}`)).body.data;
  assert.ok(enabled, "a ban does not disable the endpoint");
  assert.deepEqual(await statusesOf(owner, endpoint), ["skipped", "skipped", "skipped"]);
  await happens(owner, "after the unban");
  await recover(owner, endpoint, begun);
  await deliver();
  assert.deepEqual([...new Set(await statusesOf(owner, endpoint))], ["succeeded"]);
  assert.equal(receiver.received.length, 5);
});

test("ban during a recovery: the recovery resends nothing", async () => {
  const owner = await market.createUser();
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: false });
  await deliver();
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  const since = new Date(market.clock.now.getTime() - HOUR_MS).toISOString();
  const { body } = await owner.post(`/v1/webhooks/${endpoint.id}/recover`, { since });
  await setBan("ban", owner);
  const { ctx } = market.service;
  await runRecovery(ctx, toUuid("rcv", body.data.id)!, new AbortController().signal);
  await deliver();
  assert.equal(receiver.received.length, 0);
});

test("ban with busy workers: nothing is sent after its response", async () => {
  const owner = await market.createUser();
  const endpoint = await hasEndpoint(owner);
  let isBanned = false;
  const courses = async () => {
    const worker = newDeliveryWorker();
    while (!isBanned) await worker.runOnce();
    await worker.idle();
  };
  const ban = async () => {
    await setBan("ban", owner).finally(() => {
      isBanned = true;
    });
  };
  const events = Array.from({ length: 40 }, (_, n) => happens(owner, `${n}`));
  await Promise.all([courses(), courses(), ban(), ...events]);
  receiver.received.length = 0;
  await deliver();
  assert.equal(receiver.received.length, 0);
  await setBan("unban", owner);
  const statuses: string[] = await statusesOf(owner, endpoint);
  assert.equal(statuses.length, 40);
  assert.ok(statuses.every((status) => ["succeeded", "skipped"].includes(status)));
});
