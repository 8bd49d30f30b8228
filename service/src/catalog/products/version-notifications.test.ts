import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct, refundEverything } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { notificationsOf, titlesOf } from "../../../test/notifications.ts";
import { requireUuid } from "../../core/ids.ts";
import { type NotifyBuyersData, notifyBuyers, notifyBuyersJob } from "./version-notifications.ts";

let market: Market;
let seller: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ role: "seller" });
  buyer = await market.createUser();
});
after(() => market.close());

async function hasBought(title: string): Promise<string> {
  const productId = await createProduct(seller, { title });
  await buyProduct(buyer, productId);
  return productId;
}

async function release(productId: string, version: string): Promise<void> {
  const content = `Write {{topic}} in {{language=English}} as ${version}.`;
  const reply = await seller.patch(`/v1/products/${productId}`, { content, version });
  assert.equal(reply.status, 200, reply.text);
}

/** The requested jobs of a product, the oldest first. */
async function jobsOf(productId: string): Promise<NotifyBuyersData[]> {
  const { rows } = await market.query(
    "select data from pgboss.job where name = $1 and data->>'productId' = $2 order by created_on, data->>'released'",
    [notifyBuyersJob.name, requireUuid("prod", productId)],
  );
  return rows.map(({ data }) => data);
}

const runJob = (job: NotifyBuyersData | undefined) =>
  notifyBuyers(market.service.ctx, job!, new AbortController().signal);

test("a new version: its buyers are notified by a job, once, also when the job is repeated or runs twice at once", async () => {
  buyer = await market.createUser();
  const productId = await hasBought("Poet");
  await release(productId, "1.1.0");
  assert.deepEqual(await titlesOf(buyer), []);
  const [job, ...others] = await jobsOf(productId);
  assert.equal(others.length, 0);
  await Promise.all([runJob(job), runJob(job)]);
  const [notification, ...more] = await notificationsOf(buyer);
  assert.equal(more.length, 0);
  assert.equal(notification!.title, "Version 1.1.0 of Poet is out");
  assert.deepEqual(notification!.subject, { type: "product", id: productId });
  market.clock.forward(1_000);
  await runJob(job);
  assert.deepEqual(await notificationsOf(buyer), [notification]);
});

test("a newer version: replaces the notification, which becomes unread; a late job of the older one changes nothing", async () => {
  buyer = await market.createUser();
  const session = await market.createSession(buyer.userId);
  const productId = await hasBought("Poet");
  await release(productId, "1.9.0");
  const [first] = await jobsOf(productId);
  await runJob(first);
  const [old] = await notificationsOf(buyer);
  await session.post("/v1/notifications/read", { ids: [old!.id] });
  await release(productId, "1.10.0");
  const second = (await jobsOf(productId)).find(({ released }) => released[1] === 10);
  await runJob(second);
  await runJob(first);
  const [notification, ...others] = await notificationsOf(buyer);
  assert.deepEqual([notification!.title, notification!.readAt], ["Version 1.10.0 of Poet is out", null]);
  assert.equal(others.length, 0);
});

test("another major version, a change without a version, no buyers: no notification", async () => {
  buyer = await market.createUser();
  const productId = await hasBought("Poet");
  await seller.patch(`/v1/products/${productId}`, { title: "Poet two" });
  assert.equal((await jobsOf(productId)).length, 0);
  await release(productId, "2.0.0");
  await runJob((await jobsOf(productId))[0]);
  assert.deepEqual(await titlesOf(buyer), []);
  const unsold = await createProduct(seller);
  await release(unsold, "1.1.0");
  assert.equal((await jobsOf(unsold)).length, 0);
});

test("more buyers than a batch: one notification each; a refunded buyer and a closed account: none", async () => {
  const productId = await createProduct(seller, { title: "Poet" });
  const buyers = await Promise.all(Array.from({ length: 6 }, () => market.createUser()));
  for (const each of buyers) await buyProduct(each, productId);
  const [refunded, closed, ...others] = buyers as [Client, Client, ...Client[]];
  await refundEverything(market, refunded);
  const session = await market.createSession(closed.userId);
  const { email } = (await session.get("/v1/account")).body.data;
  assert.equal((await session.request("DELETE", "/v1/account", { json: { confirm: email } })).status, 200);
  await release(productId, "1.1.0");
  const [job] = await jobsOf(productId);
  await notifyBuyers(market.service.ctx, job!, new AbortController().signal, 2);
  for (const each of others) assert.deepEqual(await titlesOf(each), ["Version 1.1.0 of Poet is out"]);
  const { rows } = await market.query(
    "select from notifications where subject_id = $1 and kind = 'product.version_released'",
    [productId],
  );
  assert.equal(rows.length, others.length);
});

test("the job stops between batches when its process must end", async () => {
  buyer = await market.createUser();
  const productId = await hasBought("Poet");
  await release(productId, "1.1.0");
  const [job] = await jobsOf(productId);
  await assert.rejects(notifyBuyers(market.service.ctx, job!, AbortSignal.abort()));
  assert.deepEqual(await titlesOf(buyer), []);
});
