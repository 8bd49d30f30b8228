import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import type pg from "pg";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import type { Client } from "../../../test/market.ts";
import { MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { createUnsentAttempt } from "./attempt.ts";
import { toAttemptResult } from "./attempt-result.ts";
import { createDeliveries } from "./create-deliveries.ts";
import { type ClaimedDelivery, claimDeliveries, recordAttempts, repairQueues } from "./delivery-queries.ts";

const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();
const { ctx } = market.service;
let owner: Client;
beforeEach(async () => {
  owner = await market.createUser();
});

/** `by`: the connection that claims. */
async function claim(maxCount: number, by: Pick<pg.Pool, "query"> = ctx.pool): Promise<ClaimedDelivery[]> {
  const now = ctx.now();
  const lease = { now, token: ctx.newId(), until: new Date(now.getTime() + MINUTE_MS), worker: null };
  return claimDeliveries(by as pg.Pool, lease, { isSlow: false, limit: maxCount, perAccount: maxCount });
}

/** Records the same response for all attempts, in one batch. */
async function recordAll(claimed: ClaimedDelivery[], status: number, headers: Record<string, string> = {}) {
  const post = { response: { status, headers, body: "" }, problem: null };
  const recorded = claimed.map((delivery) => ({
    delivery,
    attempt: createUnsentAttempt(ctx),
    result: toAttemptResult(delivery, post, ctx.now(), () => 0),
  }));
  await recordAttempts(ctx.db, recorded);
}

/** Publishes events at distinct times and creates their deliveries. Returns the ids of the events. */
async function publishInTurn(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    ids.push(await happens(owner, `${n}`));
    await createDeliveries(ctx);
    market.clock.forward(1);
  }
  return ids;
}

/** Makes this many queues sleep; `wake` wakes them. */
const sleep = (count: number) =>
  market.query(
    `update webhook_queues set next_due = 'infinity' where endpoint_id in (select endpoint_id from webhook_queues limit ${count})`,
  );
const wake = () =>
  market.query("update webhook_queues set next_due = '-infinity' where next_due = 'infinity'");

/**
 * Inserts more endpoints than an account may have, each with a delivery due at another time. Returns the deliveries in that order.
 */
async function insertDueDeliveries(count: number): Promise<string[]> {
  await hasEndpoint(owner);
  await happens(owner);
  await deliver();
  const { rows } = await market.query(
    `with made as (
       insert into webhook_endpoints (id, user_id, url, description, signature_content, signature_prefix, created_at, updated_at)
       select gen_random_uuid(), user_id, url, description, signature_content, signature_prefix, created_at, updated_at
         from webhook_endpoints, generate_series(1, $1) returning id, user_id),
     due as (select id, user_id, $2::timestamptz - row_number() over (order by id desc) * interval '1 second' as at from made),
     queues as (insert into webhook_queues (endpoint_id, user_id, next_due) select id, user_id, at from due)
     insert into webhook_deliveries (id, event_id, endpoint_id, status, due_at, created_at)
     select gen_random_uuid(), d.event_id, due.id, 'pending', due.at, due.at from due, webhook_deliveries d
     returning id, due_at`,
    [count, market.clock.now],
  );
  return rows.toSorted((a, b) => a.due_at - b.due_at).map((row) => row.id);
}

test("many due queues: the longest waiting ones are claimed first", async () => {
  const waited = await insertDueDeliveries(80);
  const claimed = (await claim(20)).map(({ id }) => id);
  assert.deepEqual(claimed.sort(), waited.slice(0, 20).sort());
});

test("one endpoint: its eight oldest deliveries are claimed first, each once", async () => {
  await hasEndpoint(owner);
  const ids = await publishInTurn(12);
  const claimed = [...(await claim(3)), ...(await claim(32))].map(({ eventId }) => eventId);
  assert.deepEqual(claimed.sort(), ids.slice(0, 8).sort());
});

test("two concurrent claims: at most 32 deliveries of one account", async () => {
  for (let n = 0; n < 6; n++) await hasEndpoint(owner);
  await publishInTurn(8);
  await sleep(3);
  const first = await ctx.pool.connect();
  try {
    await first.query("begin");
    const one = await claim(48, first);
    assert.equal(one.length, 24);
    await wake();
    assert.deepEqual(await claim(48), [], "the claims of the other worker are not visible yet");
    await first.query("commit");
  } finally {
    first.release();
  }
  assert.equal((await claim(48)).length, 8);
});

test("queue of an account at its limit: is due again after a moment", async () => {
  for (let n = 0; n < 5; n++) await hasEndpoint(owner);
  await publishInTurn(8);
  await sleep(1);
  const others = await claim(48);
  assert.equal(others.length, 32);
  await wake();
  assert.deepEqual(await claim(48), []);
  await recordAll(others, 200);
  market.clock.forward(250);
  assert.equal((await claim(48)).length, 8);
});

test("event inserted while a claim begins: is claimed by it or by the next one", async () => {
  await hasEndpoint(owner);
  const writer = await ctx.pool.connect();
  try {
    await writer.query("begin; lock table webhook_queues in access exclusive mode");
    const claiming = claim(8);
    await waitForBlockedStatements(market);
    await writer.query(
      `with event as (
         insert into events (id, type, body, created_at) values (gen_random_uuid(), 'test', '{}', now()) returning id),
       delivery as (
         insert into webhook_deliveries (id, event_id, endpoint_id, status, due_at, created_at)
         select gen_random_uuid(), event.id, e.id, 'pending', '-infinity', now() from event, webhook_endpoints e)
       update webhook_queues set next_due = '-infinity'`,
    );
    await writer.query("commit");
    const claimed = [...(await claiming), ...(await claim(8))];
    assert.deepEqual(
      claimed.map(({ body }) => body),
      ["{}"],
    );
  } finally {
    writer.release();
  }
});

test("two Retry-After responses: the longer one applies", async () => {
  await hasEndpoint(owner);
  await publishInTurn(3);
  const [first, second, third] = (await claim(8)).map((one) => [one]);
  await recordAll(first!, 429, { "retry-after": "60" });
  await recordAll(second!, 503, { "retry-after": "600" });
  await recordAll(third!, 429, { "retry-after": "60" });
  market.clock.forward(10 * MINUTE_MS - 1);
  assert.deepEqual(await claim(8), []);
  market.clock.forward(1);
  assert.equal((await claim(8)).length, 3);
});

test("leases of earlier attempts: do not count as dead workers of a delivery", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner);
  for (let made = 0; made < 5; made++) {
    await deliver();
    market.clock.forward(150 * MINUTE_MS);
  }
  market.clock.forward(360 * MINUTE_MS);
  assert.equal((await claim(1)).length, 1);
  market.clock.forward(MINUTE_MS);
  const worker = newDeliveryWorker();
  await worker.reclaimLeases();
  await worker.idle();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["retrying", 5]);
  await deliver(worker);
  const { attempts } = await detailOf(owner, delivery);
  assert.equal(attempts.at(-1).error.code, "status");
});

test("repairQueues: wakes a queue that sleeps past its delivery, and no other", async () => {
  await hasEndpoint(owner);
  await publishInTurn(1);
  await market.query("update webhook_queues set next_due = 'infinity'");
  await deliver();
  assert.equal(receiver.received.length, 0);
  assert.equal(await repairQueues(ctx.db, ctx.now()), 1);
  receiver.answer = 500;
  await deliver();
  assert.equal(receiver.received.length, 1);
  assert.equal(await repairQueues(ctx.db, ctx.now()), 0);
});

test("repairQueues: a full queue with a backlog of minutes is not asleep", async () => {
  await hasEndpoint(owner);
  await publishInTurn(12);
  market.clock.forward(5 * MINUTE_MS);
  assert.equal((await claim(48)).length, 8);
  assert.equal(await repairQueues(ctx.db, ctx.now()), 0);
});
