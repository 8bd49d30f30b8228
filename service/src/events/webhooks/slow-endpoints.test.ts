import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { before, beforeEach, test } from "node:test";
import type { Client } from "../../../test/market.ts";
import { drain } from "../../../test/until.ts";
import { openWebhookMarket } from "../../../test/webhooks.ts";
import type { DeliveryWorker } from "./delivery-worker.ts";

const { market, receiver, happens, hasEndpoint, newDeliveryWorker } = await openWebhookMarket();

const ACCOUNTS = 12;
let good: Client;
let hangers: Client[];
/** Posts that were not answered. */
let held: ServerResponse[];
before(async () => {
  good = await market.createUser();
  hangers = await Promise.all(Array.from({ length: ACCOUNTS }, () => market.createUser()));
});
beforeEach(() => {
  held = [];
  receiver.answer = (response, { path }) => {
    if (path === "/good") response.end();
    else held.push(response);
  };
});

/** Begins whatever may be begun. */
async function begin(worker: DeliveryWorker): Promise<void> {
  await drain(() => worker.runOnce());
}

async function end(worker: DeliveryWorker): Promise<void> {
  for (const response of held) response.destroy();
  await worker.idle();
}

/** Deliveries; their endpoint is `e`. */
async function countOf(where: string): Promise<number> {
  const { rows } = await market.query(
    `select count(*) from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id where ${where}`,
  );
  return Number(rows[0].count);
}
const inFlight = () => countOf("lease_token is not null");

/** However much hangs already. */
async function mustStartAtOnce(worker: DeliveryWorker): Promise<void> {
  await happens(good, "urgent");
  await worker.runOnce();
  assert.equal(await countOf("url like '%/good' and (lease_token is not null or attempts = 1)"), 1);
}

async function hang(who: Client, endpoints: number, events: number): Promise<void> {
  for (let n = 0; n < endpoints; n++) await hasEndpoint(who, { url: `${receiver.url}/hangs/${n}` });
  for (let n = 0; n < events; n++) await happens(who, `${n}`);
}

test("while the endpoints of many accounts begin to hang all at once, another's delivery starts in the next round", async () => {
  await hasEndpoint(good, { url: `${receiver.url}/good` });
  await Promise.all(hangers.map((who) => hang(who, 4, 8)));
  const worker = newDeliveryWorker();
  await begin(worker);
  assert.ok((await inFlight()) > 100, "many hang");
  await mustStartAtOnce(worker);
  await end(worker);
});

test("endpoints that are known to be slow have their own part of a worker, however many they are", async () => {
  await hasEndpoint(good, { url: `${receiver.url}/good` });
  await Promise.all(hangers.map((who) => hang(who, 10, 1)));
  await market.query(
    "update webhook_queues set max_in_flight = 1 where endpoint_id in (select id from webhook_endpoints where url like '%/hangs/%')",
  );
  const worker = newDeliveryWorker();
  await begin(worker);
  const slow = await inFlight();
  assert.ok(slow > 32 && slow <= 64, `${slow} are in flight`);
  await mustStartAtOnce(worker);
  await end(worker);
});
