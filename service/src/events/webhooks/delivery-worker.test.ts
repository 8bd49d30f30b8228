import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { beforeEach, test } from "node:test";
import type { DeliveryAttempt } from "@stoa/contract";
import type { Logger } from "pino";
import { createProduct } from "../../../test/factories.ts";
import type { Client } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import type { WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { HOUR_MS, MINUTE_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import { openPool } from "../../platform/db/database.ts";
import { listPresentWorkers, WorkerPresence } from "../../platform/db/presence.ts";
import { createDeliveries } from "./create-deliveries.ts";

const { deliver, deliveriesOf, detailOf, happens, hasEndpoint, market, newDeliveryWorker, receiver } =
  await openWebhookMarket();
let owner: Client;

const newPresence = () =>
  new WorkerPresence({ target: market.target }, market.service.ctx.pool, market.service.ctx.log);

beforeEach(async () => {
  owner = await market.createUser();
});

test("event without subscribers: creates no delivery and delays no other event", async () => {
  await happens(owner, "without a subscriber");
  await deliver();
  const { rows } = await market.query("select count(*) from events where seq is null");
  assert.equal(rows[0].count, 0);
  await hasEndpoint(owner);
  await happens(owner, "for the endpoint");
  await deliver();
  assert.equal(receiver.received.length, 1);
});

test("event with a subscriber: the stored bytes are posted, signed", async () => {
  const endpoint = await hasEndpoint(owner);
  const productId = await createProduct(owner);
  await deliver();
  const [{ path, headers, body }] = receiver.received as [WebhookReceiver["received"][number]];
  assert.equal(receiver.received.length, 1);
  assert.equal(path, "/hook");
  assert.equal(JSON.parse(body).data.product.id, productId);
  const [event] = (await owner.get("/v1/events")).body.data;
  assert.deepEqual(JSON.parse(body), event);
  const timestamp = String(Math.floor(market.clock.now.getTime() / 1000));
  const hex = createHmac("sha256", endpoint.secret).update(`${timestamp}.${body}`).digest("hex");
  assert.deepEqual(
    [headers["x-service-event-id"], headers["x-service-timestamp"], headers["x-service-signature"]],
    [event.id, timestamp, hex],
  );
  assert.deepEqual([headers["x-service-attempt"], headers["webhook-id"]], ["1", event.id]);
});

test("endpoint with event types: gets only these, and no older events", async () => {
  await happens(owner, "before");
  market.clock.forward(1);
  const picky = await hasEndpoint(owner, { eventTypes: ["product.published"] });
  const all = await hasEndpoint(owner, { url: `${receiver.url}/all` });
  await happens(owner, "after");
  await createProduct(owner);
  await deliver();
  const typesOf = async (endpoint: { id: string }) =>
    (await deliveriesOf(owner, endpoint)).map(({ eventType }: { eventType: string }) => eventType);
  assert.deepEqual(await typesOf(picky), ["product.published"]);
  assert.deepEqual(await typesOf(all), ["product.published", "review.created"]);
});

test("failing endpoint: eight attempts at the specified times, then none", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 500;
  await happens(owner);
  const worker = newDeliveryWorker();
  const gaps = [0, 1, 5, 30, 120, 360, 720, 1440].map((minutes) => minutes * MINUTE_MS);
  for (const [made, gap] of gaps.entries()) {
    if (gap > 0) {
      market.clock.forward(gap - 1);
      await deliver(worker);
      assert.equal(receiver.received.length, made, `not before ${gap / MINUTE_MS} minutes`);
      market.clock.forward(1);
    }
    await deliver(worker);
    assert.equal(receiver.received.length, made + 1, `at ${gap / MINUTE_MS} minutes`);
  }
  market.clock.forward(72 * HOUR_MS);
  await deliver(worker);
  const attempts = receiver.received.map(({ headers }) => headers["x-service-attempt"]);
  assert.deepEqual(attempts, ["1", "2", "3", "4", "5", "6", "7", "8"]);
  assert.equal(new Set(receiver.received.map(({ body }) => body)).size, 1);
  assert.equal(new Set(receiver.received.map(({ headers }) => headers["x-service-signature"])).size, 8);
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt, delivery.nextAttemptAt], ["failed", 8, null]);
});

test("endpoint that recovers: gets the waiting deliveries", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 503;
  await happens(owner);
  await deliver();
  const [waiting] = await deliveriesOf(owner, endpoint);
  assert.equal(waiting.status, "retrying");
  assert.equal(waiting.nextAttemptAt, new Date(market.clock.now.getTime() + MINUTE_MS).toISOString());
  receiver.answer = 204;
  market.clock.forward(MINUTE_MS);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt, delivery.nextAttemptAt], ["succeeded", 2, null]);
});

test("delivery log: shows each attempt with request and response", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = (response) => response.writeHead(422, { "x-why": "no" }).end("not like this");
  await happens(owner);
  await deliver();
  const [{ id }] = await deliveriesOf(owner, endpoint);
  const { attempts } = await detailOf(owner, { id });
  const [{ n, at, request, response, error, late }] = attempts;
  assert.deepEqual([attempts.length, n, at, late], [1, 1, market.clock.now.toISOString(), false]);
  assert.deepEqual([request.url, request.body], [endpoint.url, receiver.received[0]!.body]);
  assert.equal(request.headers["X-Service-Signature"], receiver.received[0]!.headers["x-service-signature"]);
  assert.deepEqual([response.status, response.headers["x-why"], response.body], [422, "no", "not like this"]);
  assert.equal(error.code, "status");
});

test("response headers named like Object.prototype: are not logged", async () => {
  const endpoint = await hasEndpoint(owner);
  const names = ["__proto__", "constructor", "toString"];
  receiver.answer = (response) =>
    response
      .writeHead(
        200,
        names.flatMap((name) => [name, "x"]),
      )
      .end();
  await happens(owner);
  await deliver();
  const [delivery] = await deliveriesOf(owner, endpoint);
  const { headers } = (await detailOf(owner, delivery)).attempts[0].response;
  assert.deepEqual(
    ["__proto__", "constructor", "tostring"].filter((name) => Object.hasOwn(headers, name)),
    ["constructor", "tostring"],
  );
});

test("410 response: disables the endpoint and emails its owner", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = 410;
  await happens(owner);
  await deliver();
  await happens(owner, "later");
  await deliver();
  assert.equal(receiver.received.length, 1);
  const read = (await owner.get(`/v1/webhooks/${endpoint.id}`)).body.data;
  assert.deepEqual([read.enabled, read.disabledReason], [false, "gone"]);
  const statuses = (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses, ["skipped", "failed"]);
});

test("410 response of an old URL: does not disable the endpoint at its new URL", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = async (response) => {
    await owner.patch(`/v1/webhooks/${endpoint.id}`, { url: `${receiver.url}/moved` });
    response.writeHead(410).end();
  };
  await happens(owner);
  await deliver();
  assert.ok((await owner.get(`/v1/webhooks/${endpoint.id}`)).body.data.enabled);
  receiver.answer = 200;
  await happens(owner, "later");
  await deliver();
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ["/hook", "/moved"],
  );
});

test("Retry-After: delays all deliveries of the endpoint", async () => {
  const endpoint = await hasEndpoint(owner);
  receiver.answer = (response) => response.writeHead(429, { "retry-after": "600" }).end();
  await happens(owner);
  await deliver();
  receiver.answer = 200;
  await happens(owner, "second");
  market.clock.forward(10 * MINUTE_MS - 1);
  await deliver();
  assert.equal(receiver.received.length, 1);
  market.clock.forward(1);
  await deliver();
  assert.equal(receiver.received.length, 3);
  const statuses = (await deliveriesOf(owner, endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses, ["succeeded", "succeeded"]);
});

test("dead worker: its attempts are repeated under the same numbers, and its late results change nothing", async () => {
  const endpoint = await hasEndpoint(owner);
  const answers: (() => void)[] = [];
  receiver.answer = (response) => void answers.push(() => response.writeHead(500).end());
  await happens(owner);
  const paused = newDeliveryWorker();
  await paused.runOnce();
  await until("it arrives", () => answers.length > 0);
  market.clock.forward(61_000);
  const other = newDeliveryWorker();
  await other.reclaimLeases();
  receiver.answer = 200;
  await deliver(other);
  answers[0]!();
  await paused.idle();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["succeeded", 1]);
  const { attempts } = await detailOf(owner, delivery);
  assert.deepEqual(
    attempts.map(({ n, late, response }: DeliveryAttempt) => [n, late, response?.status]),
    [
      [1, false, 200],
      [1, true, 500],
    ],
  );
});

test("worker is killed: another takes over its leases in two seconds instead of a minute", async () => {
  const endpoint = await hasEndpoint(owner);
  const answers: (() => void)[] = [];
  receiver.answer = (response) => void answers.push(() => response.end());
  await happens(owner);
  const presence = newPresence();
  await presence.start();
  const { pool } = market.service.ctx;
  const key = presence.key!;
  const killed = newDeliveryWorker({ presence });
  const other = newDeliveryWorker();
  const reapTwice = async () => {
    await other.reclaimLeases();
    market.clock.forward(1_000);
    await other.reclaimLeases();
    await deliver(other);
  };
  try {
    await killed.runOnce();
    await until("it arrives", () => answers.length > 0);
    receiver.answer = 200;
    await reapTwice();
    assert.equal(receiver.received.length, 1, "the worker still runs");
  } finally {
    // A killed process leaves nothing else.
    await presence.stop();
  }
  await until("the lock is free", async () => !(await listPresentWorkers(pool, [key])).has(key));
  await reapTwice();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["succeeded", 1]);
  answers[0]!();
  await killed.idle();
});

test("worker loses the connection of its session lock: it locks again under the same key", async () => {
  const presence = newPresence();
  await presence.start();
  try {
    const key = presence.key!;
    assert.ok((await listPresentWorkers(market.service.ctx.pool, [key])).has(key));
    const { sessions } = presence;
    await market.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stoa worker' and datname = current_database()",
    );
    await until("a new session begins", () => presence.sessions !== sessions);
    await until(
      "the lock is acquired again",
      async () => presence.key === key && (await listPresentWorkers(market.service.ctx.pool, [key])).has(key),
    );
  } finally {
    await presence.stop();
  }
});

test("another session has the lock of a worker: the worker has no key until the lock is free", async () => {
  const presence = newPresence();
  const other = await market.service.ctx.pool.connect();
  try {
    await presence.start();
    const key = presence.key!;
    const { rows } = await other.query(
      "select pid from pg_locks where locktype = 'advisory' and objid = $1::integer::oid and granted",
      [key],
    );
    const locked = other.query("select classid from pg_locks where objid = $1::integer::oid", [key]);
    const { classid } = (await locked).rows[0];
    const waiting = other.query("select pg_advisory_lock($1, $2)", [classid, key]);
    await until(
      "the other session waits for the lock",
      async () =>
        (await market.query("select 1 from pg_locks where not granted and objid = $1", [key])).rowCount! > 0,
    );
    const { sessions } = presence;
    await market.query("select pg_terminate_backend($1)", [rows[0].pid]);
    await waiting;
    await until("a new session asks", () => presence.sessions !== sessions);
    await untilLockRefused();
    assert.equal(presence.key, null);
    await other.query("select pg_advisory_unlock($1, $2)", [classid, key]);
    await until("the worker has its key again", () => presence.key === key);
  } finally {
    other.release(true);
    await presence.stop();
  }
});

/** Resolves when a worker has failed to get its lock. */
async function untilLockRefused(): Promise<void> {
  const waitingLocks = () =>
    market.query(
      `select 1 from pg_stat_activity a where application_name = 'stoa worker' and datname = current_database() and state = 'idle'
          and query like '%pg_try_advisory_lock%' and not exists (select from pg_locks l where l.pid = a.pid and locktype = 'advisory')`,
    );
  await until("the lock was refused", async () => (await waitingLocks()).rowCount! > 0);
}

test("pool leads to another database than the session lock: the worker has no key and logs it once", async () => {
  const url = new URL(market.target);
  url.pathname = "/postgres";
  const pool = openPool({ target: url.href, maxConnections: 1 });
  const warnings: unknown[] = [];
  const log = { warn: (warning: unknown) => warnings.push(warning) } as unknown as Logger;
  const presence = new WorkerPresence({ target: market.target }, pool, log);
  try {
    await presence.start();
    assert.equal(presence.key, null);
    assert.match(String(warnings), /^The session lock .* DATABASE_DIRECT_URL/);
  } finally {
    await presence.stop();
    await pool.end();
  }
});

test("worker that just reconnected: counts no other worker as dead for three seconds", async () => {
  const endpoint = await hasEndpoint(owner);
  const answers: (() => void)[] = [];
  receiver.answer = (response) => void answers.push(() => response.end());
  await happens(owner);
  const absent = newDeliveryWorker({ presence: { key: 1, sessions: 1 } });
  await absent.runOnce();
  await until("it arrives", () => answers.length > 0);
  receiver.answer = 200;
  const own = { key: 2, sessions: 1 };
  const other = newDeliveryWorker({ presence: own });
  await other.reclaimLeases();
  own.sessions = 2;
  for (let second = 0; second < 4; second++) {
    market.clock.forward(1_000);
    await other.reclaimLeases();
    await deliver(other);
    assert.equal(receiver.received.length, 1, `after ${second} s`);
  }
  market.clock.forward(1_000);
  await other.reclaimLeases();
  await deliver(other);
  assert.equal(receiver.received.length, 2);
  answers[0]!();
  await absent.idle();
  assert.equal((await deliveriesOf(owner, endpoint))[0].status, "succeeded");
});

test("delivery that kills five workers: counts as attempted", async () => {
  const endpoint = await hasEndpoint(owner);
  await happens(owner);
  await createDeliveries(market.service.ctx);
  const worker = newDeliveryWorker();
  for (let death = 1; death <= 5; death++) {
    const until = new Date(market.clock.now.getTime() + MINUTE_MS);
    const claim = "select id from claim_deliveries($1, false, 10, 32, gen_random_uuid(), $2, null)";
    const { rows } = await market.query(claim, [market.clock.now, until]);
    assert.equal(rows.length, 1, `lease ${death}`);
    market.clock.forward(MINUTE_MS);
    await worker.reclaimLeases();
  }
  await worker.idle();
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["retrying", 1]);
  assert.equal((await detailOf(owner, delivery)).attempts[0].error.code, "worker_lost");
});

test("secret that cannot be opened: nothing is posted, and the log has the reason", async () => {
  const endpoint = await hasEndpoint(owner);
  await market.query(
    "update webhook_secrets set sealed_secret = replace(sealed_secret, 'v1.test.', 'v1.lost.')",
  );
  await happens(owner);
  await deliver();
  assert.equal(receiver.received.length, 0);
  const [delivery] = await deliveriesOf(owner, endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["retrying", 1]);
  const [attempt] = (await detailOf(owner, delivery)).attempts;
  assert.deepEqual([attempt.response, attempt.error.code], [null, "secret_unreadable"]);
  const rotated = await owner.post(`/v1/webhooks/${endpoint.id}/rotate-secret`, {});
  assert.equal(rotated.status, 201);
  market.clock.forward(MINUTE_MS);
  await deliver();
  const [{ headers, body }] = receiver.received as [WebhookReceiver["received"][number]];
  const signed = `${headers["x-service-timestamp"]}.${body}`;
  const hex = createHmac("sha256", rotated.body.data.secret).update(signed).digest("hex");
  assert.deepEqual(
    [headers["x-service-signature"], headers["x-service-signature-previous"]],
    [hex, undefined],
  );
});

test("any number of workers: at most eight deliveries in flight for an endpoint, 32 for an account", async () => {
  const pending: (() => void)[] = [];
  const inFlight = new Map<string, number>();
  const most = { ofOne: 0, ofAll: 0 };
  const count = (path: string, change: number) => {
    inFlight.set(path, (inFlight.get(path) ?? 0) + change);
    const counts = [...inFlight.values()];
    most.ofOne = Math.max(most.ofOne, ...counts);
    most.ofAll = Math.max(
      most.ofAll,
      counts.reduce((sum, one) => sum + one),
    );
  };
  receiver.answer = (response, { path }) => {
    count(path, 1);
    pending.push(() => {
      count(path, -1);
      response.end();
    });
  };
  for (let n = 0; n < 6; n++) await hasEndpoint(owner, { url: `${receiver.url}/${n}` });
  for (let n = 0; n < 12; n++) await happens(owner, `${n}`);
  const workers = Array.from({ length: 4 }, newDeliveryWorker);
  await workers[0]!.runOnce();
  await Promise.all(workers.map((worker) => worker.runOnce()));
  await Promise.all(workers.map((worker) => worker.runOnce()));
  const { rows } = await market.query(
    "select count(*) from webhook_deliveries where lease_token is not null",
  );
  assert.equal(rows[0].count, 32);
  const release = setInterval(() => {
    for (const end of pending.splice(0)) end();
  }, 5);
  await Promise.all(workers.map((worker) => worker.idle()));
  await Promise.all(workers.map(deliver));
  // A queue of an account at its limit is due again after this time.
  market.clock.forward(250);
  await deliver(workers[0]);
  clearInterval(release);
  assert.ok(most.ofOne <= 8, `${most.ofOne} calls to one endpoint`);
  assert.ok(most.ofAll <= 32, `${most.ofAll} calls of the account`);
  assert.equal(receiver.received.length, 72);
});
