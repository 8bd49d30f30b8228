import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import type { DeliveryAttempt } from "@stoa/contract";
import { hasProduct } from "../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../test/market.ts";
import { type Receiver, startReceiver } from "../../test/receiver.ts";
import { announce } from "../events/outbox.ts";
import { Courier } from "./courier.ts";
import { fanOut } from "./fan-out.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

let market: Market;
let receiver: Receiver;
let owner: Client;
before(async () => {
  market = await openMarket({ postDeadlines: { totalMs: 400 } });
  receiver = await startReceiver();
});
beforeEach(async () => {
  // What waits from another test would come due in this one.
  await market.query("delete from webhook_endpoints");
  receiver.received.length = 0;
  receiver.answer = 200;
  owner = await market.hasUser();
});
after(async () => {
  await market.close();
  await receiver.close();
});

const noJitter = () => 0;
const newCourier = () => new Courier(market.service.ctx, noJitter);

/** All that is due, until nothing is. */
async function deliver(courier = newCourier()): Promise<void> {
  while (await courier.round()) await courier.idle();
}

async function hasEndpoint(wish: object = {}, who = owner) {
  const reply = await who.post("/v1/webhooks", { url: `${receiver.url}/hook`, ...wish });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

/** An event of the owner's, past the rooms; its id is answered. */
async function happens(message = "hello", who = owner): Promise<string> {
  const { ctx } = market.service;
  return ctx.db
    .transaction()
    .execute((tx) => announce(ctx, tx, [who.userId], "review.created", reviewOf(message)));
}
const reviewOf = (comment: string) => ({
  review: { id: "rev_1", productId: "prod_1", rating: 5, comment, authorId: "usr_1" },
});

const deliveriesOf = async ({ id }: { id: string }, who = owner) =>
  (await who.get(`/v1/webhooks/${id}/deliveries?limit=100`)).body.data;
const detailOf = async ({ id }: { id: string }, who = owner) =>
  (await who.get(`/v1/deliveries/${id}`)).body.data;

test("what nobody wants is handed out to nobody, and the next event as ever", async () => {
  await happens("for nobody");
  await deliver();
  const { rows } = await market.query("select count(*) from events where seq is null");
  assert.equal(rows[0].count, 0);
  await hasEndpoint();
  await happens("for the endpoint");
  await deliver();
  assert.equal(receiver.received.length, 1);
});

test("what happens is posted to who wants it, signed, with the very bytes that are kept", async () => {
  const endpoint = await hasEndpoint();
  const productId = await hasProduct(owner);
  await deliver();
  const [{ path, headers, body }] = receiver.received as [Receiver["received"][number]];
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

test("an endpoint gets the types that it names, and nothing from before it was there", async () => {
  await happens("before");
  market.clock.forward(1);
  const picky = await hasEndpoint({ eventTypes: ["product.published"] });
  const all = await hasEndpoint({ url: `${receiver.url}/all` });
  await happens("after");
  await hasProduct(owner);
  await deliver();
  const typesOf = async (endpoint: { id: string }) =>
    (await deliveriesOf(endpoint)).map(({ eventType }: { eventType: string }) => eventType);
  assert.deepEqual(await typesOf(picky), ["product.published"]);
  assert.deepEqual(await typesOf(all), ["product.published", "review.created"]);
});

test("the eight attempts come exactly when the specification says, and then no more", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = 500;
  await happens();
  const courier = newCourier();
  const gaps = [0, 1, 5, 30, 120, 360, 720, 1440].map((minutes) => minutes * MINUTE_MS);
  for (const [made, gap] of gaps.entries()) {
    if (gap > 0) {
      market.clock.forward(gap - 1);
      await deliver(courier);
      assert.equal(receiver.received.length, made, `not before ${gap / MINUTE_MS} minutes`);
      market.clock.forward(1);
    }
    await deliver(courier);
    assert.equal(receiver.received.length, made + 1, `at ${gap / MINUTE_MS} minutes`);
  }
  market.clock.forward(72 * HOUR_MS);
  await deliver(courier);
  const attempts = receiver.received.map(({ headers }) => headers["x-service-attempt"]);
  assert.deepEqual(attempts, ["1", "2", "3", "4", "5", "6", "7", "8"]);
  assert.equal(new Set(receiver.received.map(({ body }) => body)).size, 1);
  assert.equal(new Set(receiver.received.map(({ headers }) => headers["x-service-signature"])).size, 8);
  const [delivery] = await deliveriesOf(endpoint);
  assert.deepEqual([delivery.status, delivery.attempt, delivery.nextAttemptAt], ["failed", 8, null]);
});

test("an endpoint that recovers gets what waited", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = 503;
  await happens();
  await deliver();
  const [waiting] = await deliveriesOf(endpoint);
  assert.equal(waiting.status, "retrying");
  assert.equal(waiting.nextAttemptAt, new Date(market.clock.now.getTime() + MINUTE_MS).toISOString());
  receiver.answer = 204;
  market.clock.forward(MINUTE_MS);
  await deliver();
  const [delivery] = await deliveriesOf(endpoint);
  assert.deepEqual([delivery.status, delivery.attempt, delivery.nextAttemptAt], ["succeeded", 2, null]);
});

test("the log shows each attempt with its request and its answer", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = (response) => response.writeHead(422, { "x-why": "no" }).end("not like this");
  await happens();
  await deliver();
  const [{ id }] = await deliveriesOf(endpoint);
  const { attempts } = await detailOf({ id });
  const [{ n, at, request, response, error, late }] = attempts;
  assert.deepEqual([attempts.length, n, at, late], [1, 1, market.clock.now.toISOString(), false]);
  assert.deepEqual([request.url, request.body], [endpoint.url, receiver.received[0]!.body]);
  assert.equal(request.headers["X-Service-Signature"], receiver.received[0]!.headers["x-service-signature"]);
  assert.deepEqual([response.status, response.headers["x-why"], response.body], [422, "no", "not like this"]);
  assert.equal(error.code, "status");
});

test("the log keeps no header that would be a prototype to whoever reads it", async () => {
  const endpoint = await hasEndpoint();
  const names = ["__proto__", "constructor", "toString"];
  receiver.answer = (response) =>
    response
      .writeHead(
        200,
        names.flatMap((name) => [name, "x"]),
      )
      .end();
  await happens();
  await deliver();
  const [delivery] = await deliveriesOf(endpoint);
  const { headers } = (await detailOf(delivery)).attempts[0].response;
  assert.deepEqual(
    ["__proto__", "constructor", "tostring"].filter((name) => Object.hasOwn(headers, name)),
    ["constructor", "tostring"],
  );
});

test("a receiver that is no more is left alone, and its owner is told", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = 410;
  await happens();
  await deliver();
  await happens("later");
  await deliver();
  assert.equal(receiver.received.length, 1);
  const read = (await owner.get(`/v1/webhooks/${endpoint.id}`)).body.data;
  assert.deepEqual([read.enabled, read.disabledReason], [false, "gone"]);
  const statuses = (await deliveriesOf(endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses, ["skipped", "failed"]);
});

test("Retry-After lengthens the wait, and nothing else goes there meanwhile", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = (response) => response.writeHead(429, { "retry-after": "600" }).end();
  await happens();
  await deliver();
  receiver.answer = 200;
  await happens("second");
  market.clock.forward(10 * MINUTE_MS - 1);
  await deliver();
  assert.equal(receiver.received.length, 1);
  market.clock.forward(1);
  await deliver();
  assert.equal(receiver.received.length, 3);
  const statuses = (await deliveriesOf(endpoint)).map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses, ["succeeded", "succeeded"]);
});

const misbehaviours: [name: string, answer: Receiver["answer"], code: string][] = [
  ["never answers", () => {}, "timeout"],
  ["drips", (response) => void setInterval(() => response.write("."), 50).unref(), "timeout"],
  ["hangs up", (response) => void response.destroy(), "connection"],
  ["speaks no HTTP", (response) => void response.socket!.end("SSH-2.0-OpenSSH\r\n\r\n"), "invalid_response"],
  ["sends elsewhere", (response) => response.writeHead(302, { location: "/hook" }).end(), "status"],
];
for (const [name, answer, code] of misbehaviours)
  test(`a receiver that ${name} is tried again later, and the log says why`, async () => {
    const endpoint = await hasEndpoint();
    receiver.answer = answer;
    await happens();
    await deliver();
    const [delivery] = await deliveriesOf(endpoint);
    assert.equal(delivery.status, "retrying");
    const { attempts } = await detailOf(delivery);
    assert.equal(attempts[0].error.code, code);
    assert.equal(receiver.received.length, 1);
  });

test("of a gigabyte 16 KiB are kept, and the rest is not read", async () => {
  const endpoint = await hasEndpoint();
  let sent = 0;
  receiver.answer = (response) => {
    const chunk = Buffer.alloc(64 * 1024, "x");
    const more = () => {
      while (sent < 1024 ** 3 && !response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) return;
      }
      response.end();
    };
    response.writeHead(200).on("drain", more);
    more();
  };
  await happens();
  await deliver();
  const [delivery] = await deliveriesOf(endpoint);
  assert.equal(delivery.status, "succeeded");
  assert.equal((await detailOf(delivery)).attempts[0].response.body.length, 16 * 1024);
  assert.ok(sent < 64 * 1024 ** 2, `${sent} bytes were taken`);
});

test("a delivery that is asked for again is the next attempt, and uses up none of the schedule", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = 500;
  await happens();
  await deliver();
  const [{ id, nextAttemptAt }] = await deliveriesOf(endpoint);
  assert.equal((await owner.post(`/v1/deliveries/${id}/retry`)).status, 200);
  await deliver();
  const [after] = await deliveriesOf(endpoint);
  assert.deepEqual([after.attempt, after.status, after.nextAttemptAt], [2, "retrying", nextAttemptAt]);
  market.clock.forward(MINUTE_MS);
  await deliver();
  const [third] = await deliveriesOf(endpoint);
  const wait = Date.parse(third.nextAttemptAt) - market.clock.now.getTime();
  assert.deepEqual([third.attempt, wait], [3, 5 * MINUTE_MS]);
});

test("what a dead worker held is attempted again under the same number, and a late word of it moves nothing", async () => {
  const endpoint = await hasEndpoint();
  const answers: (() => void)[] = [];
  receiver.answer = (response) => void answers.push(() => response.writeHead(500).end());
  await happens();
  const paused = new Courier(market.service.ctx, noJitter);
  await paused.round();
  while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));
  market.clock.forward(61_000);
  const other = newCourier();
  await other.reap();
  receiver.answer = 200;
  await deliver(other);
  answers[0]!();
  await paused.idle();
  const [delivery] = await deliveriesOf(endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["succeeded", 1]);
  const { attempts } = await detailOf(delivery);
  assert.deepEqual(
    attempts.map(({ n, late, response }: DeliveryAttempt) => [n, late, response?.status]),
    [
      [1, false, 200],
      [1, true, 500],
    ],
  );
});

test("a delivery that ends every worker who takes it counts as attempted after five", async () => {
  const endpoint = await hasEndpoint();
  await happens();
  await fanOut(market.service.ctx);
  const courier = newCourier();
  for (let death = 1; death <= 5; death++) {
    const until = new Date(market.clock.now.getTime() + MINUTE_MS);
    const claim = "select id from claim_deliveries($1, false, 10, 32, gen_random_uuid(), $2)";
    const { rows } = await market.query(claim, [market.clock.now, until]);
    assert.equal(rows.length, 1, `lease ${death}`);
    market.clock.forward(MINUTE_MS);
    await courier.reap();
  }
  await courier.idle();
  const [delivery] = await deliveriesOf(endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["retrying", 1]);
  assert.equal((await detailOf(delivery)).attempts[0].error.code, "worker_lost");
});

test("a delivery whose secret no key opens is not posted unsigned, and its log says why", async () => {
  const endpoint = await hasEndpoint();
  await market.query(
    "update webhook_secrets set sealed_secret = replace(sealed_secret, 'v1.test.', 'v1.lost.')",
  );
  await happens();
  await deliver();
  assert.equal(receiver.received.length, 0);
  const [delivery] = await deliveriesOf(endpoint);
  assert.deepEqual([delivery.status, delivery.attempt], ["retrying", 1]);
  const [attempt] = (await detailOf(delivery)).attempts;
  assert.deepEqual([attempt.response, attempt.error.code], [null, "secret_unreadable"]);
  const rotated = await owner.post(`/v1/webhooks/${endpoint.id}/rotate-secret`, {});
  assert.equal(rotated.status, 201);
  market.clock.forward(MINUTE_MS);
  await deliver();
  const [{ headers, body }] = receiver.received as [Receiver["received"][number]];
  const signed = `${headers["x-service-timestamp"]}.${body}`;
  const hex = createHmac("sha256", rotated.body.data.secret).update(signed).digest("hex");
  assert.deepEqual(
    [headers["x-service-signature"], headers["x-service-signature-previous"]],
    [hex, undefined],
  );
});

test("no more than eight are in flight to an endpoint, and 32 of an account, however many workers there are", async () => {
  const held: (() => void)[] = [];
  let most = 0;
  const perPath = new Map<string, number>();
  receiver.answer = (response, { path }) => {
    perPath.set(path, (perPath.get(path) ?? 0) + 1);
    most = Math.max(most, ...perPath.values());
    held.push(() => response.end());
  };
  for (let n = 0; n < 6; n++) await hasEndpoint({ url: `${receiver.url}/${n}` });
  for (let n = 0; n < 12; n++) await happens(`${n}`);
  const couriers = Array.from({ length: 4 }, newCourier);
  await couriers[0]!.round();
  await Promise.all(couriers.map((courier) => courier.round()));
  await Promise.all(couriers.map((courier) => courier.round()));
  const { rows } = await market.query(
    "select count(*) from webhook_deliveries where lease_token is not null",
  );
  assert.equal(rows[0].count, 32);
  const release = setInterval(() => {
    for (const end of held.splice(0)) end();
  }, 5);
  await Promise.all(couriers.map((courier) => courier.idle()));
  await Promise.all(couriers.map(deliver));
  clearInterval(release);
  assert.equal(most, 12);
  assert.equal(receiver.received.length, 72);
});

test("an endpoint that hangs gets one at a time, and eight again when it answers", async () => {
  const held: (() => void)[] = [];
  const hang: Receiver["answer"] = (response) => void held.push(() => response.end());
  const beginAll = async (courier: Courier) => {
    while (await courier.round());
    const { rows } = await market.query(
      "select count(*) from webhook_deliveries where lease_token is not null",
    );
    return rows[0].count;
  };
  await hasEndpoint();
  for (let n = 0; n < 8; n++) await happens(`${n}`);
  receiver.answer = hang;
  const courier = newCourier();
  assert.equal(await beginAll(courier), 8);
  await courier.idle();
  market.clock.forward(MINUTE_MS);
  assert.equal(await beginAll(courier), 1);
  receiver.answer = 200;
  await courier.idle();
  market.clock.forward(5 * MINUTE_MS);
  await deliver(courier);
  receiver.answer = hang;
  for (let n = 0; n < 9; n++) await happens(`again ${n}`);
  assert.equal(await beginAll(courier), 8);
  for (const end of held) end();
  receiver.answer = 200;
  await deliver(courier);
  await courier.idle();
});

/** Its endpoint wants to be left alone for ten minutes, and two more are due. */
async function hasBlocked() {
  const endpoint = await hasEndpoint();
  receiver.answer = (response) => response.writeHead(429, { "retry-after": "600" }).end();
  await happens("first");
  await deliver();
  receiver.answer = 200;
  await happens("second");
  await happens("third");
  await deliver();
  assert.equal(receiver.received.length, 1);
  return endpoint;
}

test("what somebody asks for is attempted at once though the endpoint asked for patience, and nothing else is", async () => {
  const endpoint = await hasBlocked();
  const [, , first] = await deliveriesOf(endpoint);
  await owner.post(`/v1/deliveries/${first.id}/retry`);
  const test = (await owner.post(`/v1/webhooks/${endpoint.id}/test`)).body.data;
  await deliver();
  const statuses = (await deliveriesOf(endpoint)).map(({ id, status }: { id: string; status: string }) => [
    id === test.id ? "test" : id === first.id ? "first" : "other",
    status,
  ]);
  assert.deepEqual(statuses, [
    ["test", "succeeded"],
    ["other", "pending"],
    ["other", "pending"],
    ["first", "succeeded"],
  ]);
  market.clock.forward(10 * MINUTE_MS);
  await deliver();
  assert.equal(receiver.received.length, 5);
});

test("a test that is not taken goes on by the schedule", async () => {
  const endpoint = await hasBlocked();
  receiver.answer = 500;
  await owner.post(`/v1/webhooks/${endpoint.id}/test`);
  await deliver();
  const [test] = await deliveriesOf(endpoint);
  const wait = Date.parse(test.nextAttemptAt) - market.clock.now.getTime();
  assert.deepEqual([test.status, test.attempt, wait], ["retrying", 1, MINUTE_MS]);
});

test("what somebody asks for goes before all that is due", async () => {
  const endpoint = await hasEndpoint();
  receiver.answer = 500;
  await happens("first");
  await deliver();
  const [first] = await deliveriesOf(endpoint);
  for (let n = 0; n < 20; n++) await happens(`${n}`);
  await fanOut(market.service.ctx);
  market.clock.forward(1);
  await owner.post(`/v1/deliveries/${first.id}/retry`);
  receiver.received.length = 0;
  const courier = newCourier();
  await courier.round();
  await courier.idle();
  const attempts = receiver.received.map(({ headers }) => headers["x-service-attempt"]);
  assert.equal(attempts.length, 8);
  assert.ok(attempts.includes("2"), "of twenty-one, eight are begun");
});

test("what somebody asked for is attempted at once by the next worker where the first one died of it", async () => {
  const endpoint = await hasBlocked();
  await owner.post(`/v1/webhooks/${endpoint.id}/test`);
  const until = new Date(market.clock.now.getTime() + MINUTE_MS);
  const claim = "select id from claim_deliveries($1, false, 10, 32, gen_random_uuid(), $2)";
  assert.equal((await market.query(claim, [market.clock.now, until])).rows.length, 1);
  market.clock.forward(MINUTE_MS);
  const courier = newCourier();
  await courier.reap();
  await deliver(courier);
  assert.equal((await deliveriesOf(endpoint))[0].status, "succeeded");
});
