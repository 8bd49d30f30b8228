import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { emailsToUser } from "../../../test/emails.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import type { Client } from "../../../test/market.ts";
import { notificationsOf } from "../../../test/notifications.ts";
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

const checkEndpoints = (times = 1) =>
  Promise.all(Array.from({ length: times }, () => checkFailingEndpoints(market.service.ctx)));

/** Without the email that confirms the endpoint. */
const subjectsTo = async ({ userId }: Client): Promise<string[]> =>
  (await emailsToUser(market, userId))
    .map(({ subject }) => subject)
    .filter((subject) => subject !== "A new webhook endpoint was registered")
    .reverse();
const DOES_NOT_ANSWER = "Your webhook endpoint does not answer";
const SWITCHED_OFF = "Your webhook endpoint is switched off";

const read = async ({ id }: { id: string }) => (await owner.get(`/v1/webhooks/${id}`)).body.data;

/** Publishes events that fail in all attempts, which takes almost two days. */
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

test("failing endpoint: its owner gets one email on days 1 and 3, and it is disabled on day 5", async () => {
  const endpoint = await hasEndpoint(owner);
  const begin = market.clock.now.getTime();
  const to = async (ms: number) => {
    market.clock.now = new Date(begin + ms);
    await deliver();
    await checkEndpoints(5);
    return (await subjectsTo(owner)).length;
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
  assert.deepEqual(await subjectsTo(owner), [DOES_NOT_ANSWER, DOES_NOT_ANSWER, SWITCHED_OFF]);
  assert.deepEqual(
    (await notificationsOf(owner)).map(({ kind, subject }) => [kind, subject.id]),
    [
      ["webhook.disabled", endpoint.id],
      ["webhook.failing", endpoint.id],
      ["webhook.failing", endpoint.id],
      ["webhook.changed", endpoint.id],
    ],
  );

  await happens(owner, "meanwhile");
  await deliver();
  assert.equal((await deliveriesOf(owner, endpoint))[0].status, "skipped");
  receiver.answer = 200;
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  assert.equal((await owner.get(`/v1/webhooks/${endpoint.id}/stats`)).body.data.failingSince, null);
  await checkEndpoints();
  assert.equal((await read(endpoint)).enabled, true);
});

test("endpoint whose check fails: the others are still checked", async () => {
  const [stuck, other] = [await hasEndpoint(owner), await hasEndpoint(await market.createUser())];
  await fail(1);
  const since = new Date(market.clock.now.getTime() - 3 * DAY_MS);
  await market.query("update webhook_endpoints set failing_since = $1", [since]);
  await market.query(`
    create function be_stuck() returns trigger language plpgsql as $$ begin raise 'stuck'; end $$;
    create trigger stuck before update of emailed_day on webhook_endpoints for each row
      when (old.id = '${toUuid("whk", stuck.id)}') execute function be_stuck()`);
  try {
    await checkEndpoints();
  } finally {
    await market.query("drop function be_stuck cascade");
  }
  const { rows } = await market.query("select emailed_day from webhook_endpoints where id = $1", [
    toUuid("whk", other.id),
  ]);
  assert.equal(rows[0].emailed_day, 3);
});

test("endpoint that succeeds during its check: stays enabled", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(10);
  const locker = await market.service.ctx.pool.connect();
  try {
    await locker.query("begin; select from webhook_queues for no key update");
    const checking = checkEndpoints();
    await waitForBlockedStatements(market);
    await locker.query("update webhook_endpoints set failing_since = null, failed_deliveries = 0; commit");
    await checking;
  } finally {
    locker.release();
  }
  assert.equal((await read(endpoint)).enabled, true);
  assert.ok(
    !market.logs.some(
      (line) => line.includes("could not be judged") && line.includes(toUuid("whk", endpoint.id)!),
    ),
  );
});

test("nine exhausted deliveries: the endpoint stays enabled; the tenth disables it", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(9);
  await checkEndpoints();
  assert.equal((await read(endpoint)).enabled, true);
  await fail(1);
  await checkEndpoints();
  assert.deepEqual((await read(endpoint)).disabledReason, "failing");
});

test("one delivery retried manually: counts as one exhausted delivery", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(1);
  const [{ id }] = await deliveriesOf(owner, endpoint);
  for (let n = 0; n < 12; n++) {
    await owner.post(`/v1/deliveries/${id}/retry`);
    await deliver();
  }
  await checkEndpoints();
  assert.equal((await read(endpoint)).enabled, true);
});

test("one success: resets the failures", async () => {
  const endpoint = await hasEndpoint(owner);
  await fail(10);
  receiver.answer = 200;
  await happens(owner, "well");
  await deliver();
  receiver.answer = 500;
  await happens(owner, "not so well");
  await deliver();
  await checkEndpoints();
  assert.equal((await read(endpoint)).enabled, true);
  assert.deepEqual(await subjectsTo(owner), []);
  const { failingSince } = (await owner.get(`/v1/webhooks/${endpoint.id}/stats`)).body.data;
  assert.equal(failingSince, market.clock.now.toISOString());
});

test("eight concurrent 410 responses: end the delivery, disable the endpoint and send one email", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 410;
  for (let n = 0; n < 12; n++) await happens(owner, `${n}`);
  const workers = [newDeliveryWorker(), newDeliveryWorker()];
  await Promise.all(workers.map(deliver));
  await deliver();
  assert.deepEqual((await read(endpoint)).disabledReason, "gone");
  assert.deepEqual(await subjectsTo(owner), [SWITCHED_OFF]);
  assert.ok(receiver.received.length <= 8, "deliveries that were not sent yet are not sent");
  const { rows } = await market.query(
    "select count(*) from webhook_deliveries where status not in ('failed', 'skipped') or due_at is not null or lease_token is not null",
  );
  assert.equal(rows[0].count, 0);
});

test("one failing endpoint of several: only this one is disabled", async () => {
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
  await checkEndpoints();
  assert.deepEqual([(await read(bad)).disabledReason, (await read(good)).disabledReason], ["failing", null]);
});

test("exhausted deliveries of a working endpoint: one email a day", async () => {
  await hasEndpoint(owner);
  await fail(2);
  receiver.answer = 200;
  await happens(owner, "well");
  await deliver();
  await checkEndpoints();
  await checkEndpoints();
  const subjects = await subjectsTo(owner);
  assert.equal(
    subjects.filter((subject: string) => subject === "Webhook deliveries were given up").length,
    1,
  );
});
