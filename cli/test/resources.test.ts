import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { DeliveryWorker } from "@stoa/service/events/webhooks/delivery-worker.ts";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { startWebhookReceiver, type WebhookReceiver } from "@stoa/service/test/webhook-receiver.ts";
import { deliverAll } from "@stoa/service/test/webhooks.ts";
import { startFaultProxy } from "../../sdk/test/fault-proxy.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let receiver: WebhookReceiver;
let seller: Client;
let asSeller: CommandLine;
let asBuyer: CommandLine;
let productId: string;
/** The service's time while it stands still. */
let heldAt: Date | undefined;
before(async () => {
  market = await openMarket({ now: () => heldAt ?? new Date() });
  receiver = await startWebhookReceiver();
  seller = await market.createUser({ role: "seller" });
  const buyer = await market.createUser();
  productId = await createProduct(seller, { title: "Haiku for a rainy day", price: 19.99 });
  asSeller = await openCommandLine({ origin: market.origin, key: seller.key });
  asBuyer = await openCommandLine({ origin: market.origin, key: buyer.key });
});
after(async () => {
  await Promise.all([asSeller, asBuyer].map((stoa) => stoa?.remove()));
  await receiver?.close();
  await market.close();
});

/** Runs a command that must succeed. Returns its JSON. */
async function json(stoa: CommandLine, ...args: string[]) {
  const { code, stdout, stderr } = await stoa.run([...args, "--json"]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test("buy, purchases, reviews, refund, refunds: the life of an order", async () => {
  const unasked = await asBuyer.run(["buy", productId]);
  assert.equal(unasked.code, 1);
  assert.match(unasked.stderr, /fix: Add --yes/);
  const order = await json(asBuyer, "buy", "haiku for a rainy day", "--yes");
  assert.deepEqual([order.status, order.amount], ["completed", 19.99]);
  const again = await asBuyer.run(["buy", productId, "--yes"]);
  assert.equal(again.code, 2);
  const { stdout } = await asBuyer.run(["purchases", "list"]);
  assert.match(
    stdout,
    new RegExp(`^${order.orderId}\t${productId}\tHaiku for a rainy day\tcompleted\tUSD 19.99\t`),
  );
  const shown = await asBuyer.run(["purchases", "get", order.orderId]);
  assert.match(shown.stdout, /^refund {2,}if the seller agrees, until /m);

  await json(asBuyer, "reviews", "create", productId, "--rating", "4", "--comment", "Wet, but fine.");
  const [review] = await json(asSeller, "reviews", "list", productId, "--fields", "id,rating");
  assert.deepEqual(Object.keys(review), ["id", "rating"]);
  await json(asSeller, "reviews", "reply", productId, review.id, "Thank you.");
  const { stdout: reviews } = await asBuyer.run(["reviews", "list", productId]);
  assert.match(reviews, /\t4\t.*\tWet, but fine\.\tThank you\.\t/);

  const refund = await json(asBuyer, "refund", order.orderId, "--reason", "not_working");
  assert.equal(refund.orderId, order.orderId);
  const refunds = await json(asSeller, "refunds", "list", "--role", "seller", "--product", productId);
  assert.deepEqual(
    refunds.map(({ id }: { id: string }) => id),
    [refund.id],
  );
  assert.deepEqual(await json(asSeller, "refunds", "list", "--product", "prod_none"), []);
});

test("discounts, sales, analytics, payouts, account usage: the seller's view", async (t) => {
  // The order must be one of this day.
  heldAt = new Date();
  t.after(() => {
    heldAt = undefined;
  });
  const code = await json(asSeller, "discounts", "create", "RAIN", "--percent", "50", "--max", "3");
  assert.deepEqual([code.percentOff, code.maxRedemptions], [50, 3]);
  await json(asSeller, "discounts", "update", code.id, "--max", "5");
  const buyer = await market.createUser();
  const stoa = await openCommandLine({ origin: market.origin, key: buyer.key });
  const order = await json(stoa, "buy", productId, "--yes", "--discount", "RAIN");
  await stoa.remove();
  const listed = await asSeller.run(["discounts", "list"]);
  assert.match(listed.stdout, new RegExp(`^${code.id}\tRAIN\t50 %\tall\t1\t5\t`));
  const active = await json(asSeller, "discounts", "list", "--status", "active", "--product", productId);
  assert.equal(active[0].id, code.id);
  assert.deepEqual(await json(asSeller, "discounts", "list", "--status", "ended"), []);
  const [sale] = await json(asSeller, "sales", "list", "--limit", "1");
  const [notification] = await json(asSeller, "notifications", "list", "--unread", "--limit", "1");
  assert.deepEqual(notification.subject, { type: "order", id: order.orderId });
  assert.equal(sale.orderId, order.orderId);
  assert.deepEqual(await json(asSeller, "sales", "list", "--referred"), []);
  assert.deepEqual(await json(asSeller, "sales", "list", "--referral-code", "NOBODY"), []);
  const revenue = await asSeller.run(["analytics", "revenue"]);
  assert.match(revenue.stdout, /^net revenue +USD \d/m);
  const csv = await asSeller.run(["analytics", "revenue", "--csv", "revenue.csv"]);
  assert.equal(csv.code, 0, csv.stderr);
  const report = await readFile(join(asSeller.folder, "revenue.csv"), "utf8");
  assert.match(report, /^date,/);
  const proxy = await startFaultProxy(market.origin);
  proxy.decide = () => ({ cutAfterBytes: 10 });
  const cut = await asSeller
    .run(["analytics", "revenue", "--csv", "revenue.csv"], { env: { STOA_BASE_URL: `${proxy.origin}/v1` } })
    .finally(() => proxy.close());
  assert.equal(cut.code, 2, cut.stderr);
  assert.match(cut.stderr, /^error: The export was cut off: .*\nfix: Repeat/);
  assert.equal(await readFile(join(asSeller.folder, "revenue.csv"), "utf8"), report);
  const nowhere = await asSeller.run(["analytics", "revenue", "--csv", "none/revenue.csv"]);
  assert.equal(nowhere.code, 1, nowhere.stderr);
  assert.match(nowhere.stderr, /^error: Cannot write none\/revenue.csv \(ENOENT\)\nfix: /);
  const [entry] = await json(asSeller, "analytics", "entries", "--period", "day");
  assert.equal(entry.orderId, order.orderId);
  const funnel = await asSeller.run(["analytics", "funnel"]);
  assert.match(funnel.stdout, /^purchases +\d/m);
  const [maturity] = await json(asSeller, "payouts", "maturities");
  assert.ok(maturity.sales >= 1, JSON.stringify(maturity));
  assert.deepEqual((await json(asSeller, "sales", "runs", order.orderId)).failures, []);
  assert.deepEqual(await json(asSeller, "products", "runs", "--product", productId), []);
  for (const name of ["items", "statement"]) {
    const none = await asSeller.run(["payouts", name, "po_none"]);
    assert.match(none.stderr, /PAYOUT_NOT_FOUND/);
  }
  const balance = await asSeller.run(["payouts", "balance"]);
  assert.match(balance.stdout, /^USD\t/);
  const usage = await asSeller.run(["account", "usage"]);
  assert.match(usage.stdout, /^a[n]? (hour|day|minute)\t\d+\t\d+\t\d+/m);
});

test("webhooks: an endpoint, a delivery, its attempts, a new secret", async () => {
  const endpoint = await json(
    asSeller,
    "webhooks",
    "create",
    "--url",
    `${receiver.url}/cli`,
    "--events",
    "test,review.created",
  );
  assert.match(endpoint.secret, /^whsec_/);
  const { id } = await json(asSeller, "webhooks", "test", endpoint.id);
  await deliverAll(new DeliveryWorker(market.service.ctx));
  assert.equal(receiver.received.length, 1);
  const [delivery] = await json(asSeller, "webhooks", "deliveries", endpoint.id);
  assert.deepEqual([delivery.id, delivery.status], [id, "succeeded"]);
  const attempts = await asSeller.run(["webhooks", "attempts", id]);
  assert.match(attempts.stdout, /^1\t.*\t200\t/);
  const rotated = await json(asSeller, "webhooks", "rotate-secret", endpoint.id, "--overlap", "1");
  assert.notEqual(rotated.secret, endpoint.secret);
  const changed = await json(asSeller, "webhooks", "update", endpoint.id, "--disable", "--events", "all");
  assert.deepEqual([changed.enabled, changed.eventTypes], [false, null]);
  const stats = await asSeller.run(["webhooks", "stats", endpoint.id]);
  assert.match(stats.stdout, /^success +100\.0 %$/m);
  assert.equal((await asSeller.run(["webhooks", "delete", endpoint.id])).code, 0);
});

test("keys: a provider key comes from standard input and is shown nowhere", async () => {
  const key = "sk-test-0123456789abcdef";
  const added = await asBuyer.run(["keys", "add", "openai", "--name", "mine"], { input: key });
  assert.equal(added.code, 0, added.stderr);
  assert.ok(!(added.stdout + added.stderr).includes(key));
  const [listed] = await json(asBuyer, "keys", "list");
  assert.equal(listed.last4, "cdef");
  assert.equal((await asBuyer.run(["keys", "delete", listed.id])).code, 0);
});

suite("stoa api", () => {
  test("queries, bodies and statuses", async () => {
    const { data } = await json(asBuyer, "api", "get", "/v1/products", "-f", "limit=1");
    assert.equal(data.length, 1);
    const refused = await asBuyer.run(["api", "POST", "/v1/purchases", "-f", "productId=nothing"]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /^error: .*\n(.*\n)*request: /);
    const usage = await asBuyer.run(["api", "FETCH", "/v1/products"]);
    assert.equal(usage.code, 1);
    const included = await asBuyer.run(["api", "GET", "/account", "--include"]);
    assert.match(included.stderr, /^200 OK\n/);
  });
});
