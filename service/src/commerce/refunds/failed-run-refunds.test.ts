import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { createFakeRefunds, withRefunds } from "../../../test/refunds.ts";
import { run } from "../../../test/runs.ts";
import { createWorkflow, executeWorkflow, startWorker, transformStep } from "../../../test/workflows.ts";
import { requireUuid } from "../../core/ids.ts";
import {
  createFakePayments,
  type FakeProvider,
  memoryStore,
  startFakeProvider,
} from "../../integrations/payments/fake-payments.ts";

let provider: FakeProvider;
let market: Market;
before(async () => {
  provider = await startFakeProvider({ store: memoryStore(), now: () => market.clock.now });
  const payments = withRefunds(createFakeRefunds(), createFakePayments({ origin: provider.origin }));
  market = await openMarket({ payments });
});
after(async () => {
  await market.close();
  await provider.close();
});

const FAILING = { options: { model: "sandbox-500" } };

/** A seller whose product others ran without a failure. */
async function hasGoodProduct(rule: { refundFailedRuns: boolean }): Promise<string> {
  const seller = await market.createUser();
  const session = await market.createSession(seller.userId);
  const reply = await session.patch("/v1/account", rule);
  assert.deepEqual(
    [reply.status, reply.body.data.refundFailedRuns],
    [200, rule.refundFailedRuns],
    reply.text,
  );
  const productId = await createProduct(seller);
  const other = await market.createUser();
  await buyProduct(other, productId);
  await runs(other, productId, { completed: 12, failed: 0 });
  return productId;
}

async function runs(buyer: Client, productId: string, counts: { completed: number; failed: number }) {
  for (let nth = 0; nth < counts.completed; nth++) await run(buyer, { productId });
  for (let nth = 0; nth < counts.failed; nth++) await run(buyer, { productId, ...FAILING });
}

async function buyAndRun(buyer: Client, productId: string, counts: { completed: number; failed: number }) {
  const orderId = await buyProduct(buyer, productId);
  await runs(buyer, productId, counts);
  return orderId;
}

const requestRefund = async (buyer: Client, orderId: string) => {
  const reply = await buyer.post(`/v1/purchases/${orderId}/refund`, { reason: "not_working" });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
};

test("a buyer's runs fail more often than those of others: approved by the seller's rule, and the request has the figures", async () => {
  const productId = await hasGoodProduct({ refundFailedRuns: true });
  const buyer = await market.createUser();
  const orderId = await buyAndRun(buyer, productId, { completed: 1, failed: 6 });
  const { refundable } = (await buyer.get(`/v1/purchases/${orderId}`)).body.data;
  assert.deepEqual([refundable.approval, refundable.approvalReason], ["instant", "failed_runs"]);
  const refund = await requestRefund(buyer, orderId);
  assert.deepEqual(
    [refund.status, refund.approvalReason, refund.decidedBy, refund.decideBy],
    ["succeeded", "failed_runs", "rules", null],
  );
  const { buyer: own, others, failsMoreOften } = refund.runs;
  assert.deepEqual([own.runs, own.failed, others.runs, others.failed, failsMoreOften], [7, 6, 12, 0, true]);
  assert.ok(own.interval.low > others.interval.high);
  const second = await buyAndRun(buyer, await hasGoodProduct({ refundFailedRuns: true }), {
    completed: 0,
    failed: 6,
  });
  const limited = await requestRefund(buyer, second);
  assert.deepEqual(
    [limited.status, limited.approvalReason, limited.runs.failsMoreOften],
    ["pending", "used", true],
    "as instant refunds, not twice within 30 days",
  );
});

for (const [name, rule, counts] of [
  ["without the seller's rule", false, { completed: 0, failed: 6 }],
  ["fewer than five runs", true, { completed: 0, failed: 4 }],
  ["some failures, within the interval of the others", true, { completed: 5, failed: 1 }],
] as const) {
  test(`${name}: the seller decides, with the figures`, async () => {
    const productId = await hasGoodProduct({ refundFailedRuns: rule });
    const buyer = await market.createUser();
    const refund = await requestRefund(buyer, await buyAndRun(buyer, productId, counts));
    assert.deepEqual([refund.status, refund.approvalReason], ["pending", "used"]);
    assert.deepEqual(refund.runs.buyer.failed, counts.failed);
  });
}

test("failures of the buyer's own key, and runs of others before 90 days: do not count", async () => {
  const productId = await hasGoodProduct({ refundFailedRuns: true });
  market.clock.forward(91 * 86_400_000);
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  for (let nth = 0; nth < 6; nth++) await run(buyer, { productId, options: { model: "sandbox-401" } });
  const refund = await requestRefund(buyer, orderId);
  assert.deepEqual([refund.runs.buyer.runs, refund.runs.others.runs], [0, 0]);
  assert.deepEqual([refund.runs.others.interval, refund.status], [null, "pending"]);
});

test("a product that was never used: approved as before, without figures", async () => {
  const productId = await hasGoodProduct({ refundFailedRuns: true });
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  const refund = await requestRefund(buyer, orderId);
  assert.deepEqual([refund.approvalReason, refund.runs], ["unused", null]);
});

const input = { type: "object", properties: { n: { type: "string" } } };

/** Publishes a workflow that fails unless its input is a number, and returns its id. */
async function publishWorkflow(seller: Client, steps: object[]): Promise<string> {
  const definition = { input, steps, result: "1" };
  const productId = await createWorkflow(seller, definition, { compatibility: ["openai"] });
  const reply = await seller.post(`/v1/products/${productId}/publish`);
  assert.equal(reply.status, 200, reply.text);
  return productId;
}

test("a workflow: its failed runs count, but none on a server of the buyer, in a workflow that it runs either, and no rejected approval", async () => {
  const worker = startWorker(market);
  const seller = await market.createUser();
  await (await market.createSession(seller.userId)).patch("/v1/account", { refundFailedRuns: true });
  const inner = await publishWorkflow(seller, [transformStep("number", "int(input.n)")]);
  const outer = await publishWorkflow(seller, [
    { id: "run", type: "product", productId: inner, variables: { n: "input.n" } },
  ]);
  const [buyer, other] = [await market.createUser(), await market.createUser()];
  const [, orderId] = [await buyProduct(buyer, inner), await buyProduct(buyer, outer)];
  for (const productId of [inner, outer]) await buyProduct(other, productId);
  const runTimes = async (who: Client, n: string, times: number) => {
    for (let nth = 0; nth < times; nth++) await executeWorkflow(who, outer, { input: { n } });
  };
  await runTimes(other, "1", 12);
  await runTimes(buyer, "1", 1);
  await runTimes(buyer, "one", 6);
  const approvalOf = async () =>
    (await buyer.get(`/v1/purchases/${orderId}`)).body.data.refundable.approvalReason;
  assert.equal(await approvalOf(), "failed_runs");
  const ofBuyer = "select id from executions where user_id = $1 and status = 'failed'";
  await market.query(
    `update executions set error_code = 'APPROVAL_REJECTED' where id in (${ofBuyer}) and product_id = $2`,
    [buyer.userId, requireUuid("prod", outer)],
  );
  assert.equal(await approvalOf(), "used");
  await market.query(
    `update executions set error_code = 'EXPRESSION_FAILED' where id in (${ofBuyer}) and product_id = $2`,
    [buyer.userId, requireUuid("prod", outer)],
  );
  assert.equal(await approvalOf(), "failed_runs");
  await market.query(
    `update execution_steps set provider = 'openai-compatible'
      where execution_id in (select execution_id from workflow_runs where parent_id in (${ofBuyer}))`,
    [buyer.userId],
  );
  const refund = await requestRefund(buyer, orderId);
  assert.deepEqual(
    [refund.approvalReason, refund.runs.buyer],
    ["used", { runs: 1, failed: 0, interval: refund.runs.buyer.interval }],
  );
  assert.equal(refund.runs.others.runs, 12);
  await worker.stop();
});
