import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { before, beforeEach, test } from "node:test";
import pg from "pg";
import type { Client } from "../../../test/market.ts";
import { drain, until } from "../../../test/until.ts";
import { HOUR_MS, openWebhookMarket } from "../../../test/webhooks.ts";
import type { DeliveryWorker } from "./delivery-worker.ts";

/** The tests end the calls that hang: on a busy machine, the first would be given up before the last begins. */
const postDeadlines = { totalMs: HOUR_MS };
const { deliver, market, receiver, happens, hasEndpoint, newDeliveryWorker } = await openWebhookMarket({
  postDeadlines,
});

const ACCOUNTS = 12;
let fast: Client;
let slowOwners: Client[];
/** Responses of requests that the receiver leaves open. */
let pending: ServerResponse[];
before(async () => {
  fast = await market.createUser();
  slowOwners = await Promise.all(Array.from({ length: ACCOUNTS }, () => market.createUser()));
});
beforeEach(() => {
  pending = [];
  receiver.answer = (response, { path }) => {
    if (path === "/good") response.end();
    else pending.push(response);
  };
});

/** Claims until nothing more can start. */
async function begin(worker: DeliveryWorker): Promise<void> {
  await drain(() => worker.runOnce());
}

async function end(worker: DeliveryWorker): Promise<void> {
  // Some calls may not have arrived yet.
  receiver.answer = (response) => void response.destroy();
  for (const response of pending) response.destroy();
  await worker.idle();
}

/** Counts deliveries; `e` is their endpoint. */
async function countOf(where: string): Promise<number> {
  const { rows } = await market.query(
    `select count(*) from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id where ${where}`,
  );
  return Number(rows[0].count);
}
const inFlight = () => countOf("lease_token is not null");

/** A delivery of another account starts at once. */
async function mustStartAtOnce(worker: DeliveryWorker): Promise<void> {
  await happens(fast, "urgent");
  await worker.runOnce();
  assert.equal(await countOf("url like '%/good' and (lease_token is not null or attempts = 1)"), 1);
}

async function hang(who: Client, endpoints: number, events: number): Promise<void> {
  for (let n = 0; n < endpoints; n++) await hasEndpoint(who, { url: `${receiver.url}/hangs/${n}` });
  for (let n = 0; n < events; n++) await happens(who, `${n}`);
}

test("endpoints of many accounts hang: a delivery of another account starts with the next claim", async () => {
  await hasEndpoint(fast, { url: `${receiver.url}/good` });
  await Promise.all(slowOwners.map((who) => hang(who, 4, 8)));
  const worker = newDeliveryWorker();
  await begin(worker);
  assert.ok((await inFlight()) > 100, "many calls wait");
  await mustStartAtOnce(worker);
  await end(worker);
});

test("endpoints known as slow: use only their own pool", async () => {
  await hasEndpoint(fast, { url: `${receiver.url}/good` });
  await Promise.all(slowOwners.map((who) => hang(who, 10, 1)));
  await market.query(
    "update webhook_queues set max_in_flight = 1 where endpoint_id in (select id from webhook_endpoints where url like '%/hangs/%')",
  );
  const worker = newDeliveryWorker();
  await begin(worker);
  const slow = await inFlight();
  assert.ok(slow > 32 && slow <= 64, `${slow} calls at once`);
  await mustStartAtOnce(worker);
  await end(worker);
});

test("results cannot be recorded for a time: the worker claims no more than its pool holds, and then goes on", async () => {
  receiver.answer = 200;
  await Promise.all(slowOwners.map((who) => hang(who, 4, 6)));
  const worker = newDeliveryWorker();
  const lock = new pg.Client(market.target);
  await lock.connect();
  await lock.query("begin; lock table webhook_attempts in share mode");
  await begin(worker);
  await until(
    "every claimed delivery is posted",
    async () => receiver.received.length === (await inFlight()),
  );
  await begin(worker);
  assert.ok((await inFlight()) <= 192, `${await inFlight()} are claimed`);
  await lock.query("commit");
  await lock.end();
  await worker.idle();
  await deliver(worker);
  assert.equal(receiver.received.length, ACCOUNTS * 4 * 6);
  assert.equal(await countOf("d.status = 'succeeded' and d.attempts = 1"), ACCOUNTS * 4 * 6);
});
