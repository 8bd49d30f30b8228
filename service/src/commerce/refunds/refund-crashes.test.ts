import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import {
  assertKilledBy,
  type CrashSetup,
  openCrashSetup,
  repeatAfterCrash,
} from "../../../test/crash-setup.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { oneOf } from "../../../test/full-size.ts";
import { assertError, type Client, clientOf, type Market, type Reply } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { reconcileRefunds } from "./refund-submission.ts";

const MINUTE_MS = 60_000;

/** The steps of a refund, in order. */
const steps = [
  "refund: approved",
  "refund: about to be submitted",
  "refund: submitted, not settled",
  "refund: settling",
  "refund: settled, no response",
];

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
});
after(() => site.close());

interface Bought {
  buyer: Client;
  orderId: string;
}

async function createOrder(): Promise<Bought> {
  const buyer = await market.createUser();
  return { buyer, orderId: await buyProduct(buyer, await createProduct(seller, { price: 10 })) };
}

const requestRefund = (client: Client, orderId: string): Promise<Reply> =>
  client.post(`/v1/purchases/${orderId}/refund`, { reason: "accidental" });

/** The provider refunded once, and ledger, entitlement and event match. */
async function assertRefundedOnce({ buyer, orderId }: Bought): Promise<void> {
  const order = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
  assert.equal(order.status, "refunded");
  const ids = order.refunds.map(({ id }: { id: string }) => id);
  const atProvider = site.done.refunds.filter(({ refundId }) => ids.includes(refundId));
  assert.deepEqual(
    atProvider.map(({ amountMinor, state }) => [amountMinor, state]),
    [[1_000n, "succeeded"]],
  );
  const { rows } = await market.query(
    `select (select count(*) from ledger_transactions t join refunds r on r.id = t.source_id
              where r.order_id = $1 and t.kind = 'refund') as booked,
            (select count(*) from entitlements where order_id = $1 and status = 'revoked') as revoked,
            (select count(*) from events where type = 'purchase.refunded' and strpos(body, $2) > 0) as events`,
    [toUuid("ord", orderId), orderId],
  );
  assert.deepEqual(rows, [{ booked: 1, revoked: 1, events: 1 }]);
}

async function runReconciliation(): Promise<void> {
  market.clock.forward(MINUTE_MS + 1);
  const { ctx } = market.service;
  await Promise.all([reconcileRefunds(ctx), reconcileRefunds(ctx)]);
}

suite("a killed process", () => {
  for (const step of oneOf(steps, 2)) {
    test(`at "${step}": the job completes the refund, once`, async () => {
      const bought = await createOrder();
      const crashing = await site.startDoomed(step);
      await assertKilledBy(
        crashing,
        requestRefund(clientOf(crashing.origin, bought.buyer.key), bought.orderId),
      );
      await runReconciliation();
      await assertRefundedOnce(bought);
    });
  }
});

suite("a failed step", () => {
  for (const step of steps) {
    test(`at "${step}": the job completes the refund; a repeated request creates no second one`, async () => {
      const bought = await createOrder();
      site.failsAt = step;
      assertError(await requestRefund(bought.buyer, bought.orderId), 500, "INTERNAL_ERROR");
      site.failsAt = "";
      assert.equal((await requestRefund(bought.buyer, bought.orderId)).status, 409);
      await runReconciliation();
      await assertRefundedOnce(bought);
    });
  }
});

suite("POST /admin/orders/{id}/refund with an amount and an Idempotency-Key", () => {
  const part = { amount: 3, reason: "other" };
  let adminId: string;
  before(async () => {
    adminId = (await market.createUser({ role: "admin" })).userId;
  });
  const createAdminSession = () => market.createSession(adminId, { secondFactor: true });
  const refundAsAdmin = (client: Client, orderId: string) =>
    client.post(`/v1/admin/orders/${orderId}/refund`, part, { "idempotency-key": orderId });

  async function assertGivenOnce({ buyer, orderId }: Bought): Promise<void> {
    await runReconciliation();
    const order = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.deepEqual([order.refundedAmount, order.refunds.length], [3, 1]);
    const id = order.refunds[0].id;
    assert.equal(site.done.refunds.filter(({ refundId }) => refundId === id).length, 1);
  }

  for (const step of oneOf(steps, 1)) {
    test(`process killed at "${step}": a repeat returns the same refund`, async () => {
      const bought = await createOrder();
      const crashing = await site.startDoomed(step);
      const admin = await createAdminSession();
      await assertKilledBy(crashing, refundAsAdmin(clientOf(crashing.origin, admin.key), bought.orderId));
      const reply = await repeatAfterCrash(site.market, () => refundAsAdmin(admin, bought.orderId));
      assert.deepEqual([reply.status, reply.body.data?.status], [201, "succeeded"], reply.text);
      await assertGivenOnce(bought);
    });
  }

  for (const step of steps) {
    test(`failed at "${step}": a repeat creates no second refund`, async () => {
      const bought = await createOrder();
      const admin = await createAdminSession();
      site.failsAt = step;
      await refundAsAdmin(admin, bought.orderId);
      site.failsAt = "";
      assert.equal((await refundAsAdmin(admin, bought.orderId)).status, 201);
      await assertGivenOnce(bought);
    });
  }
});

test("all refunds above: ledger verification finds no problem", async () => {
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
