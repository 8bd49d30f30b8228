import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import {
  assertKilledBy,
  type CrashSetup,
  openCrashSetup,
  repeatAfterCrash,
} from "../../../test/crash-setup.ts";
import type { CrashingService } from "../../../test/crashing-service.ts";
import { createProduct } from "../../../test/factories.ts";
import { inFullRun, oneOf } from "../../../test/full-size.ts";
import { assertError, type Client, clientOf, type Market, type Reply } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";
import { rollUpSales } from "../analytics/sales-sums.ts";
import { reconcileCharges } from "../charges/charges.ts";
import { orderTarget } from "../checkout/order-payment.ts";

const MINUTE_MS = 60_000;

/** The steps of a purchase in order, and the result of reconciliation. */
const steps = {
  "order: created": "canceled",
  "order: about to be charged": "canceled",
  "order: charged, not settled": "completed",
  "order: settling": "completed",
  "order: settled, no response": "completed",
} as const;

let site: CrashSetup;
let market: Market;
let seller: Client;
before(async () => {
  site = await openCrashSetup();
  ({ market } = site);
  seller = await market.createUser({ name: "Seller" });
});
beforeEach(() => {
  site.failsAt = "";
  site.onceCharged = () => {};
});
after(() => site.close());

interface Purchase {
  buyer: Client;
  productId: string;
}

const createInput = async (): Promise<Purchase> => ({
  buyer: await market.createUser(),
  productId: await createProduct(seller),
});

const buy = ({ buyer, productId }: Purchase, headers = {}): Promise<Reply> =>
  buyer.post("/v1/purchases", { productId }, headers);

const statusesOf = async ({ buyer }: Purchase): Promise<string[]> =>
  (await buyer.get("/v1/purchases")).body.data.map(({ status }: { status: string }) => status);

/** Sends the request to a process that crashes. */
const buyFrom = (crashing: CrashingService, { buyer, productId }: Purchase, headers = {}): Promise<void> =>
  assertKilledBy(
    crashing,
    clientOf(crashing.origin, buyer.key).post("/v1/purchases", { productId }, headers),
  );

/** One charge, and one row in each table. */
async function assertBoughtOnce({ buyer, productId }: Purchase): Promise<void> {
  const { rows: orders } = await market.query(
    "select id, status from orders where buyer_id = $1 and product_id = $2 order by id",
    [buyer.userId, toUuid("prod", productId)],
  );
  const completed = orders.filter(({ status }) => status === "completed").map(({ id }) => id);
  assert.equal(completed.length, 1, JSON.stringify(orders));
  assert.ok(orders.every(({ status }) => ["completed", "canceled"].includes(status)));
  const charged = site.done.charges
    .map(({ orderId }) => toUuid("ord", orderId))
    .filter((id) => orders.some((order) => order.id === id));
  assert.deepEqual(charged, completed, "what was charged is what was bought, once");
  const { rows } = await market.query(
    `select (select count(*) from entitlements where order_id = $1 and status = 'active') as entitlements,
            (select count(*) from ledger_transactions where kind = 'sale' and source_id = $1) as booked,
            (select count(*) from events where type = 'purchase.completed' and strpos(body, $2) > 0) as events`,
    [completed[0], productId],
  );
  assert.deepEqual(rows, [{ entitlements: 1, booked: 1, events: 1 }]);
}

/** The buyer repeats the purchase, unless the product is already owned. */
async function repeatPurchase(input: Purchase): Promise<void> {
  const reply = await buy(input);
  if (reply.status !== 201) assertError(reply, 409, "ALREADY_PURCHASED");
}

suite("a killed process", () => {
  for (const [step, outcome] of oneOf(Object.entries(steps), 2)) {
    test(`at "${step}": the job settles the purchase, charged once or not at all`, async () => {
      const input = await createInput();
      await buyFrom(await site.startDoomed(step), input);
      market.clock.forward(11 * MINUTE_MS);
      await reconcileCharges(market.service.ctx, orderTarget);
      assert.deepEqual(await statusesOf(input), [outcome]);
      assert.equal(await isCharged(input), outcome === "completed");
      await repeatPurchase(input);
      await assertBoughtOnce(input);
    });
  }

  test("during the charge: the job completes the purchase", inFullRun, async () => {
    const input = await createInput();
    const crashing = await site.startDoomed();
    site.onceCharged = () => crashing.child.kill("SIGKILL");
    await buyFrom(crashing, input);
    site.onceCharged = () => {};
    market.clock.forward(2 * MINUTE_MS);
    await reconcileCharges(market.service.ctx, orderTarget);
    assert.deepEqual(await statusesOf(input), ["completed"]);
    await assertBoughtOnce(input);
  });

  for (const step of oneOf(Object.keys(steps), 3)) {
    test(`at "${step}", repeated under its Idempotency-Key: one order, charged once`, async () => {
      const input = await createInput();
      const key = { "idempotency-key": "the same" };
      await buyFrom(await site.startDoomed(step), input, key);
      const reply = await repeatAfterCrash(site.market, () => buy(input, key));
      assert.equal(reply.status, 201, reply.text);
      if (step !== "order: settling") assert.equal(reply.headers.get("idempotent-replayed"), "true");
      assert.equal((await statusesOf(input)).length, 1);
      assert.equal((await buy(input, key)).text, reply.text);
      await assertBoughtOnce(input);
    });
  }

  test(
    "with an Idempotency-Key and an open order of other terms: the repeat does not charge it",
    inFullRun,
    async () => {
      const input = await createInput();
      await buyFrom(await site.startDoomed("order: created"), input);
      const key = { "idempotency-key": "by another method" };
      const body = { productId: input.productId, paymentMethodId: "pm_test_refund_waits" };
      const crashing = await site.startDoomed("idempotency: answered, not kept");
      await assertKilledBy(
        crashing,
        clientOf(crashing.origin, input.buyer.key).post("/v1/purchases", body, key),
      );
      const buyAsKeyed = () => input.buyer.post("/v1/purchases", body, key);
      const reply = await repeatAfterCrash(site.market, buyAsKeyed);
      assert.deepEqual([reply.status, reply.body.data.status], [202, "pending"], reply.text);
      assert.equal(await isCharged(input), false);
      market.clock.forward(11 * MINUTE_MS);
      await reconcileCharges(market.service.ctx, orderTarget);
      assert.equal((await input.buyer.post("/v1/purchases", body)).status, 201);
      await assertBoughtOnce(input);
      const { rows } = await market.query(
        "select payment_method_id from orders where buyer_id = $1 and status = 'completed'",
        [input.buyer.userId],
      );
      assert.deepEqual(rows, [{ payment_method_id: body.paymentMethodId }]);
    },
  );

  test(
    "with an Idempotency-Key, after a refund: the repeat reads it and charges nothing",
    inFullRun,
    async () => {
      const input = await createInput();
      const key = { "idempotency-key": "refunded" };
      await buyFrom(await site.startDoomed("order: settled, no response"), input, key);
      const [{ orderId }] = (await input.buyer.get("/v1/purchases")).body.data;
      const refund = await input.buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "accidental" });
      assert.equal(refund.body.data.status, "succeeded", refund.text);
      const charges = site.done.charges.length;
      const { data } = (await repeatAfterCrash(site.market, () => buy(input, key))).body;
      assert.deepEqual([data.orderId, data.status], [orderId, "refunded"]);
      assert.deepEqual(await statusesOf(input), ["refunded"]);
      assert.equal(site.done.charges.length, charges);
    },
  );
});

suite("a failed step", () => {
  for (const step of Object.keys(steps)) {
    test(`at "${step}": a repeated purchase settles the order`, async () => {
      const input = await createInput();
      site.failsAt = step;
      assertError(await buy(input), 500, "INTERNAL_ERROR");
      if (step === "order: settling") assert.deepEqual(await statusesOf(input), ["pending"]);
      site.failsAt = "";
      await repeatPurchase(input);
      await assertBoughtOnce(input);
    });
  }

  test("for each of fifty concurrent buyers: two job runs settle every order", async () => {
    const productId = await createProduct(seller);
    site.failsAt = "order: charged, not settled";
    const inputs = await Promise.all(
      Array.from({ length: 50 }, async () => ({ buyer: await market.createUser(), productId })),
    );
    await Promise.all(inputs.map((input) => buy(input)));
    site.failsAt = "";
    market.clock.forward(2 * MINUTE_MS);
    const { ctx } = market.service;
    await Promise.all([reconcileCharges(ctx, orderTarget), reconcileCharges(ctx, orderTarget)]);
    for (const input of inputs) assert.deepEqual(await statusesOf(input), ["completed"]);
    const { rows } = await market.query(
      "select count(*) as sales, count(distinct receipt_number) as receipts from orders where product_id = $1 and status = 'completed'",
      [toUuid("prod", productId)],
    );
    assert.deepEqual(rows, [{ sales: 50, receipts: 50 }]);
  });
});

/** Runs last, over all orders of the tests above. */
test("GET /admin/stats after kills at every step: counts each order once, like the list and the ledger", async () => {
  const { userId } = await market.createUser({ role: "admin" });
  const admin = await market.createSession(userId, { secondFactor: true });
  const listed = new Map<string, string>();
  for (let page = 1; ; page++) {
    const { data } = (await admin.get(`/v1/admin/orders?limit=100&page=${page}`)).body;
    for (const { orderId, status } of data) listed.set(orderId, status);
    if (data.length < 100) break;
  }
  const byStatus: Record<string, number> = {};
  for (const status of listed.values()) byStatus[status] = (byStatus[status] ?? 0) + 1;
  const { rows } = await market.query(
    "select count(*) as sales from ledger_transactions where kind = 'sale'",
  );
  const days = "startDate=2026-01-01&endDate=2026-12-31";
  const check = async () => {
    const { orders, funnel, currencies } = (await admin.get(`/v1/admin/stats?${days}`)).body.data;
    assert.deepEqual(orders, { total: listed.size, byStatus });
    assert.deepEqual([funnel.orders, funnel.paid], [listed.size, rows[0].sales]);
    assert.equal(currencies[0].sales, rows[0].sales);
  };
  await check();
  await rollUpSales(market.service.ctx);
  await check();
});

async function isCharged({ buyer }: Purchase): Promise<boolean> {
  const [order] = (await buyer.get("/v1/purchases")).body.data;
  return (await site.books.findByOrder(order.orderId)) !== null;
}
