import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import type { Client } from "../../../test/market.ts";
import { run } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { createWorkflow, openWorkflows, startExecution, untilStatus } from "../../../test/workflows.ts";
import { HOUR_MS } from "../../core/dates.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { foldRuns, reopenRun } from "./run-sums.ts";

const { market } = await openWorkflows();
const admin = await market.createUser({ role: "admin" });
const RECENT_DAYS = 30;

const approval = { id: "ok", type: "approval", timeoutSeconds: 604_800 };

const ENDS = ["completed", "failed", "canceled"];

/** A history takes half a second. */
const HISTORIES = 5;

/** A number is hours that pass. Drafts give a seller more products than there are runs since the last fold, so that these are read first. */
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("run", "fail", "run as author") },
  { weight: 4, arbitrary: fc.constantFrom("start", "cancel", "reject", "retry", "retry", "approve") },
  { weight: 3, arbitrary: fc.constantFrom("fold", "fold", "fold", "draft") },
  { weight: 4, arbitrary: fc.constantFrom(1, 20, 30, 200) },
);
const anyHistory = fc.array(fc.tuple(anyStep, fc.nat(9)), { minLength: 15, maxLength: 40 });
/** Runs that end, and are retried, before and after their days are folded. */
const LATE_ENDS = [
  "draft",
  "draft",
  "start",
  "start",
  "fail",
  "cancel",
  30,
  "fold",
  "retry",
  "run",
  30,
  "fold",
  "cancel",
  "fold",
  "approve",
  "run",
];
/** The only failure of a product, which a retry takes out of its day. */
const RETRIED_FAILURE = ["start", "reject", 30, "fold", "retry"];
/** A clock that was ahead by a year when it folded, and a run after it was put right. */
const CLOCK_AHEAD = ["run", 30, "fold", 8_760, "fold", -8_760, "run", "fail", "fold"];
/** Runs on the day in whose middle the last 30 days begin. */
const PART_OF_DAY = ["run", 6, "fail", 6, "run", 6, "run", 706, "fold"];
const EXAMPLES = [LATE_ENDS, RETRIED_FAILURE, PART_OF_DAY, CLOCK_AHEAD];
const toExample = (steps: (string | number)[]): [[string | number, number][]] => [
  steps.map((step) => [step, 0]),
];

test("runs of products, any history: the counts equal a recount, whenever runs are folded", async () => {
  await fc.assert(
    fc.asyncProperty(anyHistory, async (steps) => {
      const seller = await market.createUser();
      const history = await play(seller, steps);
      await assertEqualToRecount(seller, history.products);
      await foldRuns(market.service.ctx);
      await assertEqualToRecount(seller, history.products);
    }),
    {
      numRuns: runs(EXAMPLES.length + HISTORIES),
      endOnFailure: true,
      examples: EXAMPLES.map(toExample),
    },
  );
});

async function play(seller: Client, steps: [string | number, number][]) {
  const buyers = await Promise.all([market.createUser(), market.createUser()]);
  const prompt = await createProduct(seller);
  const workflow = await createWorkflow(seller, { steps: [approval] }, { compatibility: ["openai"] });
  const published = await seller.post(`/v1/products/${workflow}/publish`);
  assert.equal(published.status, 200, published.text);
  for (const buyer of buyers) for (const product of [prompt, workflow]) await buyProduct(buyer, product);
  const started: { id: string; buyer: Client }[] = [];
  for (const [step, number] of steps) {
    const buyer = buyers[number % 2]!;
    const one = started[number % Math.max(1, started.length)];
    if (typeof step === "number") market.clock.forward(step * HOUR_MS);
    if (step === "draft") await createDraft(seller);
    if (step === "fold") await foldRuns(market.service.ctx);
    if (step === "run") await run(buyer, { productId: prompt });
    if (step === "run as author") await run(seller, { productId: prompt });
    if (step === "fail")
      await run(buyer, { productId: prompt, options: { model: number < 5 ? "sandbox-500" : "sandbox-401" } });
    if (step === "start") {
      const id = await startExecution(buyer, workflow);
      await untilStatus(buyer, id, "waiting");
      started.push({ id, buyer });
    }
    // Each may be refused, because of the state that the run has by now.
    if (one && step === "retry") await one.buyer.post(`/v1/ai/executions/${one.id}/retry`);
    if (one && step === "approve") await one.buyer.post(`/v1/ai/executions/${one.id}/steps/ok/approve`);
    if (one && (step === "cancel" || step === "reject")) {
      const path = `/v1/ai/executions/${one.id}/${step === "cancel" ? "cancel" : "steps/ok/reject"}`;
      if ((await one.buyer.post(path)).status === 200)
        await becomes(
          () => statusOf(one),
          (status) => ENDS.includes(status),
        );
    }
  }
  return { products: [prompt, workflow] };
}

const statusOf = async ({ id, buyer }: { id: string; buyer: Client }) =>
  (await buyer.get(`/v1/ai/executions/${id}`)).body.data.status;

/** The worker may go on with a run meanwhile: a recount before and one after must agree. */
async function assertEqualToRecount(seller: Client, products: string[]): Promise<void> {
  // A history may last longer than a session.
  const moderator = await market.createSession(admin.userId, { secondFactor: true });
  for (let attempt = 0; attempt < 20; attempt++) {
    const before = await recount(seller);
    const list = await seller.get("/v1/products/runs?sort=failures");
    const each = await Promise.all(products.map((id) => seller.get(`/v1/products/${id}/runs`)));
    const ofSeller = await recountSeller(seller);
    const checks = await moderator.get(`/v1/admin/products/${products[0]}/checks`);
    if (JSON.stringify(before) !== JSON.stringify(await recount(seller))) continue;
    if (JSON.stringify(ofSeller) !== JSON.stringify(await recountSeller(seller))) continue;
    assert.deepEqual(checks.body.data.sellerRuns, ofSeller, checks.text);
    const counted = new Map(before.map(({ id, ...counts }) => [id, counts]));
    const listed = list.body.data.map(({ product, ...counts }: { product: { id: string } }) => [
      product.id,
      counts,
    ]);
    assert.deepEqual(new Map(listed), counted);
    assert.equal(list.body.meta.total, counted.size);
    for (const [at, reply] of each.entries()) {
      const none = { total: 0, completed: 0, failed: 0, canceled: 0, buyers: 0, last30Days: 0 };
      const { failed30Days: _, failures30Days: __, ...counts } = { ...none, ...counted.get(products[at]!) };
      assert.deepEqual(reply.body.data, counts);
    }
    return;
  }
  assert.fail("the runs do not come to rest");
}

test("reopenRun: a run that is reopened by another call and fails again meanwhile leaves the sums once", async () => {
  const { ctx } = market.service;
  const seller = await market.createUser();
  const { products } = await play(
    seller,
    RETRIED_FAILURE.slice(0, 4).map((step) => [step, 0]),
  );
  const { rows }: { rows: { id: string; userId: string }[] } = await market.query(
    `select id, user_id as "userId" from executions where product_id = any($1) and type = 'WORKFLOW'`,
    [products.map((id) => toUuid("prod", id))],
  );
  const [failed] = rows;
  assert.ok(failed);
  const retry = await ctx.db.transaction().execute(async (tx) => {
    assert.ok(await reopenRun(tx, failed.id));
    const concurrent = ctx.db.transaction().execute((other) => reopenRun(other, failed.id));
    await waitForBlockedStatements(market);
    await tx
      .updateTable("executions")
      .set({ status: "failed", completedAt: market.clock.now })
      .where("id", "=", failed.id)
      .execute();
    return { concurrent };
  });
  assert.equal(await retry.concurrent, true);
  const sums = await market.query("select runs::int from run_sums where product_id = any($1) and runs <> 0", [
    products.map((id) => toUuid("prod", id)),
  ]);
  assert.deepEqual(sums.rows, []);
});

interface RunRow {
  productId: string;
  userId: string;
  status: string;
  code: string | null;
  at: Date;
}

const readRuns = async (seller: Client): Promise<RunRow[]> => {
  const { rows } = await market.query(
    `select e.product_id as "productId", e.user_id as "userId", e.status, e.error_code as code, e.created_at as at
       from executions e join products p on p.id = e.product_id and p.author_id <> e.user_id
      where p.author_id = $1 order by e.id`,
    [seller.userId],
  );
  return rows as RunRow[];
};

const isRecent = ({ at }: RunRow): boolean =>
  at.getTime() >= market.clock.now.getTime() - RECENT_DAYS * 24 * HOUR_MS;

/** What moderators see. */
async function recountSeller(seller: Client) {
  const recent = (await readRuns(seller)).filter(isRecent);
  const failed = recent.filter(({ status }) => status === "failed").length;
  return { failed, n: failed + recent.filter(({ status }) => status === "completed").length };
}

/** From the rows of the runs, in this process. */
async function recount(seller: Client) {
  const rows = await readRuns(seller);
  return [...new Set(rows.map(({ productId }) => productId))].map((productId) => {
    const all = rows.filter((row) => row.productId === productId);
    const recent = all.filter(isRecent);
    const failures = recent.filter(({ status }) => status === "failed");
    const count = (status: string) => all.filter((row) => row.status === status).length;
    const codes = [...new Set(failures.map(({ code }) => code ?? "UNKNOWN"))].map((code) => ({
      code,
      runs: failures.filter((row) => (row.code ?? "UNKNOWN") === code).length,
    }));
    return {
      id: toId("prod", productId),
      ...{ total: all.length, completed: count("completed"), failed: count("failed") },
      canceled: count("canceled"),
      buyers: new Set(all.map(({ userId }) => userId)).size,
      ...{ last30Days: recent.length, failed30Days: failures.length },
      failures30Days: codes.toSorted((a, b) => b.runs - a.runs || (a.code < b.code ? -1 : 1)),
    };
  });
}
