import assert from "node:assert/strict";
import { after, before, beforeEach, suite, test } from "node:test";
import {
  assertKilledBy,
  type CrashSetup,
  openCrashSetup,
  repeatAfterCrash,
} from "../../../test/crash-setup.ts";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, clientOf, type Market, type Reply } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";
import { verifyLedger } from "../ledger/verification.ts";
import { reconcileRefunds } from "./refund-submission.ts";

const MINUTE_MS = 60_000;

/** Between every two steps of a refund, in their order. */
const steps = [
  "refund: approved",
  "refund: about to be asked for",
  "refund: given back, not settled",
  "refund: settling",
  "refund: settled, not answered",
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

async function hasOrder(): Promise<Bought> {
  const buyer = await market.createUser();
  return { buyer, orderId: await buyProduct(buyer, await createProduct(seller, { price: 10 })) };
}

const ask = (client: Client, orderId: string): Promise<Reply> =>
  client.post(`/v1/purchases/${orderId}/refund`, { reason: "accidental" });

/** The provider gave it back once, and so is everything that hangs on it. */
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

async function reconciled(): Promise<void> {
  market.clock.forward(MINUTE_MS + 1);
  const { ctx } = market.service;
  await Promise.all([reconcileRefunds(ctx), reconcileRefunds(ctx)]);
}

suite("a process that is killed", () => {
  for (const step of sampleOf(steps)) {
    test(`at "${step}" leaves a refund that the job ends, with the money back once`, async () => {
      const bought = await hasOrder();
      const doomed = await site.startDoomed(step);
      await assertKilledBy(doomed, ask(clientOf(doomed.origin, bought.buyer.key), bought.orderId));
      await reconciled();
      await assertRefundedOnce(bought);
    });
  }
});

suite("a step that fails", () => {
  for (const step of steps) {
    test(`at "${step}" is made good by the job, and asking again meanwhile makes no second refund`, async () => {
      const bought = await hasOrder();
      site.failsAt = step;
      assertError(await ask(bought.buyer, bought.orderId), 500, "INTERNAL_ERROR");
      site.failsAt = "";
      assert.equal((await ask(bought.buyer, bought.orderId)).status, 409);
      await reconciled();
      await assertRefundedOnce(bought);
    });
  }
});

suite("POST /admin/orders/{id}/refund of a part, under an Idempotency-Key", () => {
  const part = { amount: 3, reason: "other" };
  let adminId: string;
  before(async () => {
    adminId = (await market.createUser({ role: "admin" })).userId;
  });
  const hasAdmin = () => market.createSession(adminId, { secondFactor: true });
  const give = (client: Client, orderId: string) =>
    client.post(`/v1/admin/orders/${orderId}/refund`, part, { "idempotency-key": orderId });

  async function assertGivenOnce({ buyer, orderId }: Bought): Promise<void> {
    await reconciled();
    const order = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
    assert.deepEqual([order.refundedAmount, order.refunds.length], [3, 1]);
    const id = order.refunds[0].id;
    assert.equal(site.done.refunds.filter(({ refundId }) => refundId === id).length, 1);
  }

  for (const step of sampleOf(steps, 1)) {
    test(`killed at "${step}": a repeat answers the refund that was written`, async () => {
      const bought = await hasOrder();
      const doomed = await site.startDoomed(step);
      const admin = await hasAdmin();
      await assertKilledBy(doomed, give(clientOf(doomed.origin, admin.key), bought.orderId));
      const reply = await repeatAfterCrash(site.market, () => give(admin, bought.orderId));
      assert.deepEqual([reply.status, reply.body.data?.status], [201, "succeeded"], reply.text);
      await assertGivenOnce(bought);
    });
  }

  for (const step of steps) {
    test(`failed at "${step}": a repeat gives no second refund`, async () => {
      const bought = await hasOrder();
      const admin = await hasAdmin();
      site.failsAt = step;
      await give(admin, bought.orderId);
      site.failsAt = "";
      assert.equal((await give(admin, bought.orderId)).status, 201);
      await assertGivenOnce(bought);
    });
  }
});

test("after all this, the ledger is proven", async () => {
  assert.deepEqual((await verifyLedger(market.service.ctx.db)).problems, []);
});
