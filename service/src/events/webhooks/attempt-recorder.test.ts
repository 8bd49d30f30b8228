import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import pg from "pg";
import type { Client } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { openWebhookMarket } from "../../../test/webhooks.ts";
import { toUuid } from "../../core/ids.ts";
import { attemptDelivery } from "./attempt.ts";
import { AttemptRecorder } from "./attempt-recorder.ts";
import { toAttemptResult } from "./attempt-result.ts";
import { createDeliveries } from "./create-deliveries.ts";
import { type ClaimedDelivery, claimDeliveries, type RecordedAttempt } from "./delivery-queries.ts";
import { DeliveryWorker } from "./delivery-worker.ts";

const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

async function claim(): Promise<ClaimedDelivery[]> {
  const { ctx } = market.service;
  await createDeliveries(ctx);
  const now = ctx.now();
  const lease = { now, token: ctx.newId(), until: new Date(now.getTime() + 60_000), worker: null };
  return claimDeliveries(ctx.pool, lease, { isSlow: false, limit: 16, perAccount: 32 });
}

async function attempt(delivery: ClaimedDelivery): Promise<RecordedAttempt> {
  const { ctx } = market.service;
  const { attempt, post } = await attemptDelivery(ctx, delivery);
  return { delivery, attempt, result: toAttemptResult(delivery, post, ctx.now(), () => 0) };
}

async function record(results: RecordedAttempt[]): Promise<void> {
  const recorder = new AttemptRecorder(market.service.ctx);
  const recorded = results.map((result) => recorder.add(result));
  await recorder.flush();
  await Promise.all(recorded);
}

test("row that PostgreSQL refuses: the other results of the batch are recorded", async () => {
  const endpoint = await hasEndpoint(owner);
  for (let n = 0; n < 5; n++) await happens(owner);
  const results = await Promise.all((await claim()).map(attempt));
  results[2]!.attempt.response!.body = "PostgreSQL cannot store \0";
  await record(results);
  const statuses = (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses.sort(), ["pending", "succeeded", "succeeded", "succeeded", "succeeded"]);
});

test("poll recorded an attempt but its response was lost: the attempt stays recorded once, without a warning", async () => {
  const endpoint = await hasEndpoint(owner);
  for (const answer of [200, 500]) {
    receiver.answer = answer;
    await happens(owner);
    const results = await Promise.all((await claim()).map(attempt));
    await record(results);
    const lines = market.logs.length;
    await record(results);
    assert.doesNotMatch(market.logs.slice(lines).join("\n"), /could not be recorded/);
  }
  const statuses: string[] = [];
  for (const { id } of await deliveriesOf(owner, endpoint)) {
    const { status, attempts } = await detailOf(owner, { id });
    assert.deepEqual(
      attempts.map(({ n, late }: { n: number; late: boolean }) => [n, late]),
      [[1, false]],
    );
    statuses.push(status);
  }
  assert.deepEqual(statuses, ["retrying", "succeeded"]);
});

test("queue is locked: the results of other endpoints are recorded meanwhile, and its own afterwards", async () => {
  const locked = await hasEndpoint(owner);
  const free = await hasEndpoint(owner, { url: `${receiver.url}/free` });
  const statusOf = async (endpoint: { id: string }) => (await deliveriesOf(owner, endpoint))[0].status;
  const { promise: isLocked, resolve: answer } = Promise.withResolvers<void>();
  receiver.answer = (response) => void isLocked.then(() => response.end());
  await happens(owner);
  const lock = new pg.Client(market.target);
  await lock.connect();
  const worker = newDeliveryWorker();
  worker.start();
  try {
    await until("both are posted", () => receiver.received.length === 2);
    await lock.query("begin");
    await lock.query("select from webhook_queues where endpoint_id = $1 for no key update", [
      toUuid("whk", locked.id),
    ]);
    answer();
    await until("the other result is recorded", async () => (await statusOf(free)) === "succeeded");
    assert.equal(await statusOf(locked), "pending");
    await lock.query("commit");
    await until("its own result is recorded", async () => (await statusOf(locked)) === "succeeded");
  } finally {
    await lock.end();
    await worker.stop();
  }
  assert.equal(receiver.received.length, 2);
});

test("poll waits for a locked event: results are recorded meanwhile, and the event is delivered afterwards", async () => {
  const endpoint = await hasEndpoint(owner);
  const { promise: isWaiting, resolve: answer } = Promise.withResolvers<void>();
  receiver.answer = (response) => void isWaiting.then(() => response.end());
  await happens(owner);
  const lock = new pg.Client(market.target);
  await lock.connect();
  const worker = newDeliveryWorker();
  worker.start();
  try {
    await until("the first event is posted", () => receiver.received.length === 1);
    // No worker creates deliveries until the second event is locked.
    await lock.query("begin");
    await lock.query("select pg_advisory_lock(hashtext('webhook fan-out'))");
    await happens(owner);
    await lock.query("select from events where seq is null for update");
    await lock.query("select pg_advisory_unlock(hashtext('webhook fan-out'))");
    await until("a poll waits", async () => {
      const { rows } = await market.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%poll_deliveries%' and pid <> pg_backend_pid()",
      );
      return rows.length > 0;
    });
    answer();
    await until("its result is recorded", async () => {
      const [first] = await deliveriesOf(owner, endpoint);
      return first.status === "succeeded";
    });
    assert.doesNotMatch(market.logs.join("\n"), /statement timeout/);
    await lock.query("commit");
    await until("the second event is posted", () => receiver.received.length === 2);
  } finally {
    answer();
    await lock.end();
    await worker.stop();
  }
});

test("late and valid result of one delivery in one batch: only the valid one counts", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  const [delivery] = await claim();
  receiver.answer = 410;
  const late = {
    ...(await attempt(delivery!)),
    delivery: { ...delivery!, leaseToken: market.service.ctx.newId() },
  };
  receiver.answer = 200;
  await record([late, await attempt(delivery!)]);
  const [{ id }] = await deliveriesOf(owner, endpoint);
  const { status, attempts } = await detailOf(owner, { id });
  assert.equal(status, "succeeded");
  assert.deepEqual(
    attempts.map((one: { response: { status: number }; late: boolean }) => [one.response.status, one.late]),
    [
      [410, true],
      [200, false],
    ],
  );
  const now = await owner.get(`/v1/webhooks/${endpoint.id}`);
  assert.equal(now.body.data.enabled, true, "a late 410 does not disable the endpoint");
});

test("more queues than one batch claims: every queue is claimed", async () => {
  const owners = await Promise.all(Array.from({ length: 24 }, () => market.createUser()));
  for (const one of owners) await hasEndpoint(one);
  for (const one of owners) await happens(one);
  await deliver();
  assert.equal(receiver.received.length, owners.length);
});

test("attempts aborted by shutdown: are repeated under the same number", async () => {
  const { ctx } = market.service;
  const RESTARTS = 6;
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  for (let restart = 0; restart < RESTARTS; restart++) {
    const giveUp = new AbortController();
    const worker = new DeliveryWorker({ ...ctx, shutdown: giveUp.signal }, { random: () => 0 });
    const arrived = Promise.withResolvers<void>();
    receiver.answer = () => arrived.resolve();
    await worker.reclaimLeases();
    assert.ok(await worker.runOnce(), `restart ${restart}`);
    await arrived.promise;
    giveUp.abort();
    await worker.stop();
  }
  receiver.answer = 200;
  const next = newDeliveryWorker();
  await next.reclaimLeases();
  await deliver(next);
  const [{ id }] = await deliveriesOf(owner, endpoint);
  const { status, attempts } = await detailOf(owner, { id });
  assert.deepEqual([status, attempts.map(({ n }: { n: number }) => n)], ["succeeded", [1]]);
  const attemptNumbers = receiver.received.map(({ headers }) => headers["x-service-attempt"]);
  assert.deepEqual(attemptNumbers, Array(RESTARTS + 1).fill("1"));
});
