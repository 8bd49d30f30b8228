import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import type { Client } from "../../../test/market.ts";
import { HOUR_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { checkFailingEndpoints } from "./endpoint-health.ts";

const { deliver, deliveriesOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

const judge = (times = 1) =>
  Promise.all(Array.from({ length: times }, () => checkFailingEndpoints(market.service.ctx)));

/** But for the one that confirms the endpoint. */
const lettersTo = async ({ userId }: Client): Promise<string[]> =>
  (await emailsToUser(market, userId))
    .map(({ subject }) => subject)
    .filter((subject) => subject !== "A new webhook endpoint was registered")
    .reverse();
const DOES_NOT_ANSWER = "Your webhook endpoint does not answer";
const SWITCHED_OFF = "Your webhook endpoint is switched off";

const read = async ({ id }: { id: string }) => (await owner.get(`/v1/webhooks/${id}`)).body.data;

/** Events whose whole schedule fails: almost two days. */
async function fail(count: number): Promise<void> {
  receiver.answer = 500;
  for (let n = 0; n < count; n++) await happens(owner, `${n}`);
  for (const hours of [0, 1, 1, 2.5, 6.5, 12.5, 24.5]) {
    market.clock.forward(hours * HOUR_MS);
    await deliver();
  }
  for (let n = 0; n < 3; n++) {
    market.clock.forward(24 * HOUR_MS);
    await deliver();
  }
}

test("its owner hears of it on days 1 and 3, and on day 5 it is switched off: once each, whoever asks", async () => {
  const endpoint = await hasEndpoint(owner);
  const begin = market.clock.now.getTime();
  const to = async (ms: number) => {
    market.clock.now = new Date(begin + ms);
    await deliver();
    await judge(5);
    return (await lettersTo(owner)).length;
  };
  receiver.answer = 500;
  for (let n = 0; n < 10; n++) await happens(owner, `${n}`);
  await deliver();
  for (const hours of [0.1, 0.2, 1, 4, 11]) await to(hours * HOUR_MS);
  assert.equal(await to(DAY_MS - 1), 0);
  assert.equal(await to(DAY_MS), 1);
  assert.equal(await to(2 * DAY_MS), 1);
  assert.equal(await to(3 * DAY_MS - 1), 1);
  assert.equal(await to(3 * DAY_MS), 2);
  assert.equal(await to(5 * DAY_MS - 1), 2);
  assert.equal((await read(endpoint)).enabled, true);
  assert.equal(await to(5 * DAY_MS), 3);
  const { enabled, disabledReason } = await read(endpoint);
  assert.deepEqual([enabled, disabledReason], [false, "failing"]);
  assert.equal(await to(9 * DAY_MS), 3);
  assert.deepEqual(await lettersTo(owner), [DOES_NOT_ANSWER, DOES_NOT_ANSWER, SWITCHED_OFF]);

  await happens(owner, "meanwhile");
  await deliver();
  assert.equal((await deliveriesOf(owner, endpoint))[0].status, "skipped");
  receiver.answer = 200;
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  assert.equal((await owner.get(`/v1/webhooks/${endpoint.id}/stats`)).body.data.failingSince, null);
  await judge();
  assert.equal((await read(endpoint)).enabled, true);
});

test("an endpoint that cannot be judged keeps no other from being judged", async () => {
  const [stuck, other] = [await hasEndpoint(owner), await hasEndpoint(await market.createUser())];
  await fail(1);
  const since = new Date(market.clock.now.getTime() - 3 * DAY_MS);
  await market.query("update webhook_endpoints set failing_since = $1", [since]);
  await market.query(`
    create function be_stuck() returns trigger language plpgsql as $$ begin raise 'stuck'; end $$;
    create trigger stuck before update of emailed_day on webhook_endpoints for each row
      when (old.id = '${toUuid("whk", stuck.id)}') execute function be_stuck()`);
  try {
    await judge();
  } finally {
    await market.query("drop function be_stuck cascade");
  }
  const { rows } = await market.query("select emailed_day from webhook_endpoints where id = $1", [
    toUuid("whk", other.id),
  ]);
  assert.equal(rows[0].emailed_day, 3);
});

test("one that takes something while it is about to be judged is not judged", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(10);
  const held = await market.service.ctx.pool.connect();
  try {
    await held.query("begin; select from webhook_queues for no key update");
    const judging = judge();
    await waitForBlockedStatements(market);
    await held.query("update webhook_endpoints set failing_since = null, failed_deliveries = 0; commit");
    await judging;
  } finally {
    held.release();
  }
  assert.equal((await read(endpoint)).enabled, true);
  assert.ok(
    !market.logs.some(
      (line) => line.includes("could not be judged") && line.includes(toUuid("whk", endpoint.id)!),
    ),
  );
});

test("nine failed deliveries switch nothing off, however long it lasts; the tenth does", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(9);
  await judge();
  assert.equal((await read(endpoint)).enabled, true);
  await fail(1);
  await judge();
  assert.deepEqual((await read(endpoint)).disabledReason, "failing");
});

test("one delivery that is asked for again and again is one failed delivery", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(1);
  const [{ id }] = await deliveriesOf(owner, endpoint);
  for (let n = 0; n < 12; n++) {
    await owner.post(`/v1/deliveries/${id}/retry`);
    await deliver();
  }
  await judge();
  assert.equal((await read(endpoint)).enabled, true);
});

test("one success makes up for all that failed before", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(10);
  receiver.answer = 200;
  await happens(owner, "well");
  await deliver();
  receiver.answer = 500;
  await happens(owner, "not so well");
  await deliver();
  await judge();
  assert.equal((await read(endpoint)).enabled, true);
  assert.deepEqual(await lettersTo(owner), []);
  const { failingSince } = (await owner.get(`/v1/webhooks/${endpoint.id}/stats`)).body.data;
  assert.equal(failingSince, market.clock.now.toISOString());
});

test("410 ends the delivery, switches the endpoint off and is told once, though eight answers say it at once", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 410;
  for (let n = 0; n < 12; n++) await happens(owner, `${n}`);
  const workers = [newDeliveryWorker(), newDeliveryWorker()];
  await Promise.all(workers.map(deliver));
  await deliver();
  assert.deepEqual((await read(endpoint)).disabledReason, "gone");
  assert.deepEqual(await lettersTo(owner), [SWITCHED_OFF]);
  assert.ok(receiver.received.length <= 8, "what had not gone out stays here");
  const { rows } = await market.query(
    "select count(*) from webhook_deliveries where status not in ('failed', 'skipped') or due_at is not null or lease_token is not null",
  );
  assert.equal(rows[0].count, 0);
});

test("of several endpoints the one that fails is switched off alone", async () => {
  const bad = await hasEndpoint(owner);
  const good = await hasEndpoint(owner, { url: `${receiver.url}/good` });
  receiver.answer = (response, { path }) => response.writeHead(path === "/good" ? 200 : 500).end();
  const answer = receiver.answer;
  for (let n = 0; n < 10; n++) await happens(owner, `${n}`);
  for (const hours of [0, 1, 1, 2.5, 6.5, 12.5, 24.5, 24, 24, 48]) {
    market.clock.forward(hours * HOUR_MS);
    receiver.answer = answer;
    await deliver();
  }
  await judge();
  assert.deepEqual([(await read(bad)).disabledReason, (await read(good)).disabledReason], ["failing", null]);
});

test("deliveries are given up after eight attempts: the owner of an endpoint that takes others is told, once a day", async () => {
  await hasEndpoint(owner);
  await fail(2);
  receiver.answer = 200;
  await happens(owner, "well");
  await deliver();
  await judge();
  await judge();
  const told = await lettersTo(owner);
  assert.equal(told.filter((subject: string) => subject === "Webhook deliveries were given up").length, 1);
});
