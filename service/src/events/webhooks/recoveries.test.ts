import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { assertError, type Client } from "../../../test/market.ts";
import { HOUR_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toUuid } from "../../core/ids.ts";
import { runRecovery } from "./recoveries.ts";

const { deliver, deliveriesOf, happens, hasEndpoint, market, receiver } = await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

/** Failed deliveries: the endpoint responded 410 and was enabled again. */
async function createLost(count = 1) {
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

async function startRecovery({ id }: { id: string }, input: object = { since: since() }) {
  const reply = await owner.post(`/v1/webhooks/${id}/recover`, input);
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const runJob = ({ id }: { id: string }, signal = new AbortController().signal) =>
  runRecovery(market.service.ctx, toUuid("rcv", id)!, signal);

for (const [name, end] of [
  ["disabled", (id: string) => owner.patch(`/v1/webhooks/${id}`, { enabled: false })],
  ["removed", (id: string) => owner.delete(`/v1/webhooks/${id}`)],
] as const)
  test(`recovery of an endpoint that is ${name} meanwhile: resends nothing`, async () => {
    const endpoint = await createLost();
    const recovery = await startRecovery(endpoint);
    await end(endpoint.id);
    await runJob(recovery);
    await deliver();
    assert.equal(receiver.received.length, 0);
    const { rows } = await market.query("select status, due_at from webhook_deliveries");
    assert.deepEqual(rows, [{ status: "failed", due_at: null }]);
    const { rows: ended } = await market.query("select from webhook_recoveries where ended_at is not null");
    assert.equal(ended.length, 1);
  });

const statusesOf = async (endpoint: { id: string }) =>
  (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);
const progressOf = async (endpoint: { id: string }, { id }: { id: string }) =>
  (await owner.get(`/v1/webhooks/${endpoint.id}/recoveries/${id}`)).body.data;

test("failed and skipped deliveries: start their schedule again, and no others", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner, "succeeds");
  await deliver();
  receiver.answer = 500;
  await happens(owner, "waits");
  await deliver();
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { eventTypes: ["payout.completed"] });
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { eventTypes: null });
  receiver.answer = 410;
  await happens(owner, "fails");
  await deliver();
  await happens(owner, "is skipped");
  await deliver();
  assert.deepEqual(await statusesOf(endpoint), ["skipped", "failed", "canceled", "succeeded"]);
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  receiver.answer = 200;
  receiver.received.length = 0;
  const started = await startRecovery(endpoint);
  assert.deepEqual(
    [started.status, started.total, started.recovered, started.endedAt],
    ["running", 2, 0, null],
  );
  await runJob(started);
  const done = await progressOf(endpoint, started);
  assert.deepEqual([done.status, done.total, done.recovered], ["completed", 2, 2]);
  await deliver();
  assert.deepEqual(await statusesOf(endpoint), ["succeeded", "succeeded", "canceled", "succeeded"]);
  assert.deepEqual(receiver.received.map(({ headers }) => headers["x-service-attempt"]).sort(), ["1", "2"]);
});

test("recovered delivery that fails: has eight more attempts", async () => {
  const endpoint = await createLost();
  await runJob(await startRecovery(endpoint));
  receiver.answer = 500;
  for (let n = 0; n < 10; n++) {
    await deliver();
    market.clock.forward(24 * HOUR_MS);
  }
  assert.deepEqual(
    receiver.received.map(({ headers }) => headers["x-service-attempt"]),
    ["2", "3", "4", "5", "6", "7", "8", "9"],
  );
});

test("since and until: are inclusive", async () => {
  const endpoint = await hasEndpoint(owner, { enabled: false });
  const moments: string[] = [];
  for (let n = 0; n < 4; n++) {
    moments.push(market.clock.now.toISOString());
    await happens(owner, `${n}`);
    market.clock.forward(HOUR_MS);
  }
  await deliver();
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  await runJob(await startRecovery(endpoint, { since: moments[1], until: moments[2] }));
  await deliver();
  assert.deepEqual(await statusesOf(endpoint), ["skipped", "succeeded", "succeeded", "skipped"]);
});

test("range over 14 days ago, in the future or empty: is refused", async () => {
  const endpoint = await hasEndpoint(owner);
  const path = `/v1/webhooks/${endpoint.id}/recover`;
  const at = (ms: number) => new Date(market.clock.now.getTime() + ms).toISOString();
  await startRecovery(endpoint, { since: at(-14 * DAY_MS) });
  assertError(await owner.post(path, { since: at(-14 * DAY_MS - 1) }), 422, "VALIDATION_ERROR", "since");
  assertError(await owner.post(path, { since: at(1) }), 422, "VALIDATION_ERROR", "since");
  assertError(await owner.post(path, { since: at(-2), until: at(-2) }), 422, "VALIDATION_ERROR", "until");
  assertError(await owner.post(path, { since: at(-2), until: at(-3) }), 422, "VALIDATION_ERROR", "until");
  for (const input of [{}, { since: "yesterday" }, { since: 1 }, { since: "2026-06-15" }])
    assertError(await owner.post(path, input), 400, "INVALID_REQUEST", "since");
  assertError(await owner.post(path, { since: at(-1), status: "failed" }), 400, "INVALID_REQUEST", "status");
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: false });
  const off = assertError(await owner.post(path, { since: at(-1) }), 409, "INVALID_STATE");
  assert.equal(off.current, "disabled");
});

test("worker killed during a recovery: another continues and repeats nothing", async () => {
  const endpoint = await hasEndpoint(owner, { enabled: false });
  await happens(owner);
  await deliver();
  await market.query(
    `with more as (insert into events (id, type, body, created_at, seq)
       select gen_random_uuid(), type, body, created_at, nextval('events_seq')
         from (select * from events order by id desc limit 1) event, generate_series(1, 1199) returning id)
     insert into webhook_deliveries (id, event_id, endpoint_id, status, created_at, ended_at)
       select gen_random_uuid(), more.id, d.endpoint_id, d.status, d.created_at, d.ended_at from more, webhook_deliveries d`,
  );
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  const recovery = await startRecovery(endpoint);
  const killed = new AbortController();
  killed.abort(new Error("killed"));
  await assert.rejects(runJob(recovery, killed.signal), /killed/);
  const half = await progressOf(endpoint, recovery);
  assert.deepEqual([half.status, half.total, half.recovered], ["running", 1_200, 500]);
  await market.query(
    "update webhook_deliveries set status = 'failed', due_at = null where due_at is not null",
  );
  await Promise.all([runJob(recovery), runJob(recovery)]);
  const done = await progressOf(endpoint, recovery);
  assert.deepEqual([done.status, done.total, done.recovered], ["completed", 1_200, 1_200]);
  const { rows } = await market.query(
    "select status, count(*) from webhook_deliveries group by status order by status",
  );
  assert.deepEqual(rows, [
    { status: "failed", count: 500 },
    { status: "pending", count: 700 },
  ]);
});

test("manual retry in progress: is not recovered as well", async () => {
  const endpoint = await createLost(2);
  const [{ id }] = await deliveriesOf(owner, endpoint);
  await owner.post(`/v1/deliveries/${id}/retry`);
  const started = await startRecovery(endpoint);
  await runJob(started);
  const { total, recovered } = await progressOf(endpoint, started);
  assert.deepEqual([started.total, total, recovered], [1, 1, 1]);
});

test("two concurrent recoveries of one range: resend each delivery once", async () => {
  const endpoint = await createLost(5);
  const started = await Promise.all(Array.from({ length: 5 }, () => startRecovery(endpoint)));
  await Promise.all(started.map((one) => runJob(one)));
  await deliver();
  assert.equal(receiver.received.length, 5);
  const done = await Promise.all(started.map((one) => progressOf(endpoint, one)));
  assert.equal(
    done.reduce((sum, { recovered }) => sum + recovered, 0),
    5,
  );
});
