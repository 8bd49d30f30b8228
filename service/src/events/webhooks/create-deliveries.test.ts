import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import pg from "pg";
import { assertError, type Client } from "../../../test/market.ts";
import { drain } from "../../../test/until.ts";
import { openWebhookMarket } from "../../../test/webhooks.ts";
import { createDeliveries } from "./create-deliveries.ts";

/** A short wait for locks. Transactions may be idle for longer than the pauses of a busy machine between two statements. */
const transactionTimeouts = { idleMs: 7_000, lockMs: 1_500 };
const { deliver, happens, hasEndpoint, market, newDeliveryWorker, receiver } = await openWebhookMarket({
  transactionTimeouts,
});
const { ctx } = market.service;
let owner: Client;
beforeEach(async () => {
  await drain(() => createDeliveries(ctx));
  owner = await market.createUser();
});

const LOCK_QUEUES = "begin; select from webhook_queues for no key update";

test("fan-out: an event without subscribers is numbered and delays no other", async () => {
  await happens(owner);
  assert.equal(await createDeliveries(ctx), 1);
  assert.equal(await createDeliveries(ctx), 0);
});

const statuses = async () =>
  (await market.query("select status from webhook_deliveries")).rows.map(({ status }) => status);

for (const [name, change, expected] of [
  ["its type is deselected", "event_types = '{payout.completed}'", []],
  ["its endpoint is deleted", "deleted_at = created_at", []],
  ["its endpoint is disabled", "disabled_by = 'owner'", ["skipped"]],
] as const)
  test(`fan-out: an event waits while its queue is locked; if ${name} meanwhile, nothing is sent`, async () => {
    await hasEndpoint(owner);
    await happens(owner);
    const locker = new pg.Client({ connectionString: market.target });
    await locker.connect();
    await locker.query(LOCK_QUEUES);
    assert.equal(await createDeliveries(ctx), 0);
    await locker.query(`update webhook_endpoints set ${change}; commit`);
    await locker.end();
    assert.equal(await createDeliveries(ctx), 1);
    assert.deepEqual(await statuses(), expected);
  });

test("fan-out: one worker at a time, so that no event gets two numbers", async () => {
  await happens(owner);
  const other = await ctx.pool.connect();
  try {
    await other.query("begin; select pg_advisory_xact_lock(hashtext('webhook fan-out'))");
    assert.equal(await createDeliveries(ctx), 0);
  } finally {
    await other.query("rollback");
    other.release();
  }
  assert.equal(await createDeliveries(ctx), 1);
});

test("fan-out: ids of deliveries of one batch are distinct and in the order of their events", async () => {
  for (let n = 0; n < 3; n++) await hasEndpoint(owner);
  for (let n = 0; n < 20; n++) await happens(owner, `${n}`);
  assert.equal(await createDeliveries(ctx), 20);
  const { rows } = await market.query("select id, event_id from webhook_deliveries order by id");
  assert.equal(rows.length, 60);
  const events = rows.map((row) => row.event_id);
  assert.deepEqual(events, events.toSorted());
  assert.match(rows[0].id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/);
});

test("fan-out: a burst of one account does not delay an event of another", async () => {
  const busy = await market.createUser();
  const quiet = await market.createUser();
  await market.query(
    `with burst as (
       insert into events (id, type, body, created_at)
       select gen_random_uuid(), 'review.created', '{}', now() from generate_series(1, 2000) returning id)
     insert into event_recipients (user_id, event_id, type) select $1, id, 'review.created' from burst`,
    [busy.userId],
  );
  // The greatest id, as of the newest event.
  const last = "ffffffff-ffff-7fff-bfff-ffffffffffff";
  await market.query(
    `with event as (insert into events (id, type, body, created_at) values ($2, 'review.created', '{}', now()) returning id)
     insert into event_recipients (user_id, event_id, type) select $1, id, 'review.created' from event`,
    [quiet.userId, last],
  );
  try {
    await createDeliveries(ctx);
    const { rows } = await market.query("select seq from events where id = $1", [last]);
    assert.notEqual(rows[0].seq, null);
    const left = await market.query("select count(*) from events where seq is null");
    assert.ok(left.rows[0].count > 1_000);
  } finally {
    await market.query("delete from events where body = '{}'");
  }
});

test("worker frozen in a transaction: other endpoints get deliveries, and PostgreSQL ends the transaction", async () => {
  const endpoint = await hasEndpoint(owner);
  const frozen = await ctx.pool.connect();
  frozen.on("error", () => {});
  try {
    await frozen.query("begin");
    const idleTime = await frozen.query("show idle_in_transaction_session_timeout");
    assert.deepEqual(idleTime.rows, [{ idle_in_transaction_session_timeout: "7s" }]);
    await frozen.query("set local idle_in_transaction_session_timeout = 0");
    await frozen.query("select from webhook_queues for no key update");
    const other = await market.createUser();
    await hasEndpoint(other, { url: `${receiver.url}/other` });
    await happens(owner);
    await happens(other);
    await deliver();
    await newDeliveryWorker().reclaimLeases();
    assert.deepEqual(
      receiver.received.map(({ path }) => path),
      ["/other"],
    );
    // The end of its idle time, which on a busy machine may come after a request has waited too long for the lock.
    const { promise: isGone, resolve } = Promise.withResolvers<void>();
    frozen.once("end", resolve);
    await frozen.query("set local idle_in_transaction_session_timeout = 100");
    await isGone;
    const { status } = await owner.patch(`/v1/webhooks/${endpoint.id}`, { description: "after it" });
    assert.equal(status, 200);
    await deliver();
    assert.deepEqual(
      receiver.received.map(({ path }) => path),
      ["/other", "/hook"],
    );
    await assert.rejects(frozen.query("select"), /not queryable|terminat/);
  } finally {
    frozen.release(true);
  }
});

test("PATCH /webhooks/{id} and POST …/test: endpoint locked for too long, 503 with Retry-After", async () => {
  const endpoint = await hasEndpoint(owner);
  const other = new pg.Client({ connectionString: market.target });
  await other.connect();
  try {
    await other.query(LOCK_QUEUES);
    const replies = await Promise.all([
      owner.patch(`/v1/webhooks/${endpoint.id}`, { description: "while it is locked" }),
      owner.post(`/v1/webhooks/${endpoint.id}/test`),
    ]);
    for (const reply of replies) {
      assertError(reply, 503, "SERVICE_UNAVAILABLE");
      assert.ok(Number(reply.headers.get("retry-after")) > 0);
    }
  } finally {
    await other.end();
  }
});
