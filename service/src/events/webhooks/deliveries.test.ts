import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type { WebhookDelivery } from "@stoa/contract";
import { assertError, type Client } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { toId } from "../../core/ids.ts";

const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

async function createDelivered(input: object = {}) {
  const endpoint = await hasEndpoint(owner, input);
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  return { endpoint, delivery };
}

test("delivery of a deleted endpoint: is readable and cannot be retried", async () => {
  const { endpoint, delivery } = await createDelivered();
  await owner.delete(`/v1/webhooks/${endpoint.id}`);
  assert.equal((await detailOf(owner, delivery)).attempts.length, 1);
  const refused = await owner.post(`/v1/deliveries/${delivery.id}/retry`);
  assert.deepEqual(assertError(refused, 409, "INVALID_STATE"), { current: "removed" });
});

for (const [name, end] of [
  ["disabled", (id: string) => owner.patch(`/v1/webhooks/${id}`, { enabled: false })],
  ["removed", (id: string) => owner.delete(`/v1/webhooks/${id}`)],
  [
    "unsubscribed from its event type",
    (id: string) => owner.patch(`/v1/webhooks/${id}`, { eventTypes: ["payout.completed"] }),
  ],
] as const)
  test(`succeeded delivery stays succeeded if its endpoint is ${name} during a manual retry`, async () => {
    const { endpoint, delivery } = await createDelivered();
    await owner.post(`/v1/deliveries/${delivery.id}/retry`);
    assert.equal((await end(endpoint.id)).status, 200);
    await deliver();
    const { status, nextAttemptAt, endedAt } = await detailOf(owner, delivery);
    assert.deepEqual([status, nextAttemptAt], ["succeeded", null]);
    assert.equal(endedAt, market.clock.now.toISOString());
    assert.equal(receiver.received.length, 1);
  });

const retry = ({ id }: { id: string }) => owner.post(`/v1/deliveries/${id}/retry`);
const numbersOf = ({ attempts }: { attempts: { n: number }[] }) => attempts.map(({ n }) => n);

test("manual retry of a succeeded delivery: sends again, and a failure does not change the status", async () => {
  const { delivery } = await createDelivered();
  receiver.answer = 500;
  const reply = await retry(delivery);
  assert.deepEqual([reply.status, reply.body.data.nextAttemptAt], [200, market.clock.now.toISOString()]);
  await deliver();
  const after = await detailOf(owner, delivery);
  assert.deepEqual([after.status, after.nextAttemptAt, numbersOf(after)], ["succeeded", null, [1, 2]]);
  assert.equal(receiver.received[1]!.headers["x-service-attempt"], "2");
});

test("manual retry before the first attempt: is the first attempt, and the schedule follows", async () => {
  const endpoint = await hasEndpoint(owner);
  const { id } = (await owner.post(`/v1/webhooks/${endpoint.id}/test`)).body.data;
  receiver.answer = 500;
  await retry({ id });
  await deliver();
  const after = await detailOf(owner, { id });
  assert.deepEqual([after.status, numbersOf(after)], ["retrying", [1, 2]]);
  const attemptNumbers = receiver.received.map(({ headers }) => headers["x-service-attempt"]);
  assert.deepEqual(attemptNumbers, ["1", "2"], "the header has the number of the log");
  assert.equal(Date.parse(after.nextAttemptAt) - market.clock.now.getTime(), MINUTE_MS);
});

test("manual retry of a failed delivery: makes one more attempt", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  receiver.answer = 500;
  await deliver();
  await market.query(
    "update webhook_deliveries set scheduled_attempts = 8, status = 'failed', due_at = null, ended_at = $1",
    [market.clock.now],
  );
  const [delivery] = await deliveriesOf(owner, endpoint);
  await retry(delivery);
  await deliver();
  assert.deepEqual(numbersOf(await detailOf(owner, delivery)), [1, 2]);
  assert.equal((await detailOf(owner, delivery)).status, "failed");
  receiver.answer = 200;
  await retry(delivery);
  await deliver();
  const { status, attempt, endedAt } = await detailOf(owner, delivery);
  assert.deepEqual([status, attempt, endedAt], ["succeeded", 3, market.clock.now.toISOString()]);
});

test("manual retry of a skipped or canceled delivery: makes an attempt", async () => {
  const endpoint = await hasEndpoint(owner);
  for (const [status, change] of [
    ["skipped", { enabled: false }],
    ["canceled", { eventTypes: ["payout.completed"] }],
  ] as const) {
    await happens(owner, status);
    receiver.answer = 500;
    await deliver();
    await owner.patch(`/v1/webhooks/${endpoint.id}`, change);
    await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true, eventTypes: null });
    const [delivery] = await deliveriesOf(owner, endpoint);
    assert.equal(delivery.status, status);
    await retry(delivery);
    await deliver();
    assert.equal((await detailOf(owner, delivery)).status, "failed", "no further attempts are scheduled");
    receiver.answer = 200;
    await retry(delivery);
    await deliver();
    assert.equal((await detailOf(owner, delivery)).status, "succeeded");
  }
});

test("manual retry at a disabled endpoint: is refused", async () => {
  const { endpoint, delivery } = await createDelivered();
  await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: false });
  assert.deepEqual(assertError(await retry(delivery), 409, "INVALID_STATE"), { current: "disabled" });
  assertError(
    await owner.post(`/v1/deliveries/${delivery.id}/retry`, { force: true }),
    400,
    "INVALID_REQUEST",
  );
});

test("20 concurrent manual retries: one attempt", async () => {
  const { delivery } = await createDelivered();
  const replies = await Promise.all(Array.from({ length: 20 }, () => retry(delivery)));
  assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200]);
  await deliver();
  assert.deepEqual(numbersOf(await detailOf(owner, delivery)), [1, 2]);
});

test("two manual retries before an attempt: the schedule continues from its old time", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  for (let times = 0; times < 2; times++) await retry(delivery);
  await deliver();
  const { attempt, nextAttemptAt } = await detailOf(owner, delivery);
  assert.deepEqual([attempt, nextAttemptAt], [2, delivery.nextAttemptAt]);
});

test("POST /deliveries/{id}/retry: delivery in flight, 409 and no second attempt", async () => {
  const endpoint = await hasEndpoint(owner);
  const blocked: (() => void)[] = [];
  receiver.answer = (response) => void blocked.push(() => response.writeHead(200).end());
  await happens(owner);
  const worker = newDeliveryWorker();
  await worker.runOnce();
  await until("it arrives", () => blocked.length > 0);
  const [delivery] = await deliveriesOf(owner, endpoint);
  const refused = await retry(delivery);
  assert.equal(assertError(refused, 409, "INVALID_STATE")?.current, "in_flight");
  await newDeliveryWorker().runOnce();
  blocked[0]!();
  await worker.idle();
  receiver.answer = 200;
  await deliver();
  const after = await detailOf(owner, delivery);
  assert.deepEqual([after.status, after.nextAttemptAt, numbersOf(after)], ["succeeded", null, [1]]);
});

test("GET /v1/webhooks/:id/deliveries: filters by status and event, newest first in pages", async () => {
  const endpoint = await hasEndpoint(owner);
  const eventIds: string[] = [];
  for (let n = 0; n < 5; n++) {
    receiver.answer = n % 2 ? 500 : 200;
    eventIds.push(toId("evt", await happens(owner, `${n}`)));
    await deliver();
  }
  const path = `/v1/webhooks/${endpoint.id}/deliveries`;
  const found = async (query: string) => {
    const { body } = await owner.get(`${path}?${query}`);
    return [body.data.map((one: { eventId: string }) => eventIds.indexOf(one.eventId)), body.meta.total];
  };
  assert.deepEqual(await found("limit=2"), [[4, 3], 5]);
  assert.deepEqual(await found("limit=2&page=3"), [[0], 5]);
  assert.deepEqual(await found("page=9"), [[], 5]);
  assert.deepEqual(await found("status=succeeded"), [[4, 2, 0], 3]);
  assert.deepEqual(await found("status=retrying"), [[3, 1], 2]);
  assert.deepEqual(await found("status=failed"), [[], 0]);
  assert.deepEqual(await found(`eventId=${eventIds[1]}`), [[1], 1]);
  assert.deepEqual(await found(`eventId=${eventIds[1]}&status=succeeded`), [[], 0]);
  for (const eventId of ["nonsense", "evt_x", endpoint.id])
    assert.deepEqual(await found(`eventId=${eventId}`), [[], 0]);
  for (const [query, field] of [
    ["status=lost", "status"],
    ["event=x", "event"],
    ["limit=101", "limit"],
    ["page=0", "page"],
  ])
    assertError(await owner.get(`${path}?${query}`), 400, "INVALID_REQUEST", field!);
});

test("GET /v1/webhooks/:id/deliveries: filters by event type, response and time", async () => {
  const endpoint = await hasEndpoint(owner);
  const start = market.clock.now.getTime();
  for (const answer of [200, 503, 404]) {
    receiver.answer = answer;
    await happens(owner, `${answer}`);
    await deliver();
    market.clock.forward(10_000);
  }
  receiver.answer = (response) => void response.destroy();
  await owner.post(`/v1/webhooks/${endpoint.id}/test`);
  await deliver();
  const path = `/v1/webhooks/${endpoint.id}/deliveries`;
  const found = async (query: string) => {
    const { data, meta } = (await owner.get(`${path}?${query}`)).body;
    const statuses = data.map(({ lastAttempt }: WebhookDelivery) => lastAttempt?.responseStatus);
    return [statuses, meta.total];
  };
  const at = (ms: number) => encodeURIComponent(new Date(start + ms).toISOString());
  assert.deepEqual(await found("limit=10"), [[null, 404, 503, 200], 4]);
  assert.deepEqual(await found("responseStatus=404"), [[404], 1]);
  assert.deepEqual(await found("responseStatus=5XX"), [[503], 1]);
  assert.deepEqual(await found("responseStatus=none"), [[null], 1]);
  assert.deepEqual(await found("responseStatus=all"), [[null, 404, 503, 200], 4]);
  assert.deepEqual(await found("eventType=test"), [[null], 1]);
  assert.deepEqual(await found("eventType=review.created&responseStatus=2xx"), [[200], 1]);
  assert.deepEqual(await found("eventType=no.such"), [[], 0]);
  assert.deepEqual(await found("eventType=review.created&limit=1&page=2"), [[503], 3]);
  assert.deepEqual(await found(`from=${at(10_000)}&to=${at(20_000)}`), [[503], 1]);
  assert.deepEqual(await found(`from=${at(10_000)}&status=retrying&eventType=test`), [[null], 1]);
  for (const [query, field] of [
    ["responseStatus=6xx", "responseStatus"],
    ["from=yesterday", "from"],
  ] as const)
    assertError(await owner.get(`${path}?${query}`), 400, "INVALID_REQUEST", field);
});

test("delivery: lastAttempt is the newest attempt, null before the first", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  const { id, lastAttempt } = (await owner.post(`/v1/webhooks/${endpoint.id}/test`)).body.data;
  assert.equal(lastAttempt, null);
  await deliver();
  receiver.answer = 200;
  market.clock.forward(MINUTE_MS);
  await deliver();
  const detail = await detailOf(owner, { id });
  const { at, durationMs } = detail.attempts[1];
  assert.deepEqual(detail.lastAttempt, { at, durationMs, responseStatus: 200, errorCode: null });
});

test("GET /v1/webhooks/:id/stats: the timeline has 48 parts that add up to the counts", async () => {
  const endpoint = await hasEndpoint(owner);
  for (const answer of [200, 410]) {
    receiver.answer = answer;
    await happens(owner, `${answer}`);
    await deliver();
    market.clock.forward(12 * 60 * MINUTE_MS - 1);
    await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: true });
  }
  receiver.answer = 500;
  await happens(owner, "waiting");
  await deliver();
  const { timeline, since } = (await owner.get(`/v1/webhooks/${endpoint.id}/stats?days=1`)).body.data;
  assert.deepEqual([timeline.length, timeline[0].at], [48, since]);
  assert.deepEqual(
    timeline.flatMap(({ at: _at, ...counts }: { at: string }, n: number) =>
      Object.values(counts).some(Boolean) ? [[n, counts]] : [],
    ),
    [
      [0, { succeeded: 1, failed: 0, waiting: 0 }],
      [24, { succeeded: 0, failed: 1, waiting: 0 }],
      [47, { succeeded: 0, failed: 0, waiting: 1 }],
    ],
  );
});

test("GET /v1/webhooks/:id/stats: counts deliveries by status and measures durations", async () => {
  const endpoint = await hasEndpoint(owner);
  const path = `/v1/webhooks/${endpoint.id}/stats`;
  const none = (await owner.get(path)).body.data;
  assert.deepEqual(
    [none.successRate, none.durationMs, none.failingSince],
    [null, { p50: null, p95: null }, null],
  );
  await happens(owner, "long ago");
  await deliver();
  market.clock.forward(8 * 24 * 60 * MINUTE_MS);
  for (const answer of [200, 200, 500, 410]) {
    receiver.answer = answer;
    await happens(owner, `${answer}`);
    await deliver();
  }
  await happens(owner, "off");
  await deliver();
  const stats = (await owner.get(path)).body.data;
  assert.deepEqual(stats.deliveries, {
    pending: 0,
    retrying: 0,
    succeeded: 2,
    failed: 1,
    skipped: 2,
    canceled: 0,
  });
  assert.deepEqual([stats.successRate, stats.failingSince], [0.6667, market.clock.now.toISOString()]);
  await market.query(
    "update webhook_attempts a set duration_ms = 10 * r.nth from (select id, row_number() over (order by id) as nth from webhook_attempts) r where r.id = a.id",
  );
  assert.deepEqual((await owner.get(path)).body.data.durationMs, { p50: 30, p95: 50 });
  const stranger = await market.createUser();
  await hasEndpoint(stranger);
  receiver.answer = 200;
  await happens(stranger, "of another endpoint");
  await deliver();
  assert.equal((await owner.get(`${path}?days=30`)).body.data.deliveries.succeeded, 3);
  assert.equal((await owner.get(`${path}?days=1`)).body.data.deliveries.succeeded, 2);
  for (const days of ["0", "31", "1.5", "week"])
    assertError(await owner.get(`${path}?days=${days}`), 400, "INVALID_REQUEST", "days");
});

test("GET /webhooks/{id}/deliveries?before: the last id of a page returns the next page", async () => {
  const endpoint = await hasEndpoint(owner);
  for (let n = 0; n < 5; n++) await happens(owner, `${n}`);
  await deliver();
  const all = await deliveriesOf(owner, endpoint);
  const page = await owner.get(`/v1/webhooks/${endpoint.id}/deliveries?limit=2&before=${all[1].id}`);
  assert.deepEqual(page.body.data, all.slice(2, 4));
  const unknown = await owner.get(`/v1/webhooks/${endpoint.id}/deliveries?before=dlv_nothing`);
  assert.deepEqual(unknown.body.data, []);
});

for (const [answer, status] of [
  [200, "succeeded"],
  [500, "skipped"],
] as const)
  test(`endpoint disabled during an attempt: the response ${answer} makes the delivery ${status} with one attempt`, async () => {
    const endpoint = await hasEndpoint(owner);
    receiver.answer = async (response) => {
      await owner.patch(`/v1/webhooks/${endpoint.id}`, { enabled: false });
      response.writeHead(answer).end();
    };
    await happens(owner);
    await deliver();
    const [delivery] = await deliveriesOf(owner, endpoint);
    const { attempts } = await detailOf(owner, delivery);
    assert.deepEqual([delivery.status, delivery.attempt, delivery.nextAttemptAt], [status, 1, null]);
    assert.deepEqual([attempts.length, attempts[0].n, attempts[0].late], [1, 1, false]);
  });
