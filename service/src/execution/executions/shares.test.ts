import assert from "node:assert/strict";
import { beforeEach, suite, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { assertError, type Client } from "../../../test/market.ts";
import { runToCompletion } from "../../../test/runs.ts";
import {
  createWorkflow,
  echoStep,
  executeWorkflow,
  openWorkflows,
  startExecution,
  transformStep,
} from "../../../test/workflows.ts";
import { anonymizeAccount, lockAccountForClosing } from "../../accounts/people/accounts.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { eraseOldTexts } from "./executions.ts";

const { market } = await openWorkflows();
const seller = await market.createUser({ role: "seller" });
let buyer: Client;
let productId: string;
let executionId: string;
beforeEach(async () => {
  buyer = await market.createUser({ name: "BUYERMARK" });
  productId = await createProduct(seller, { content: "PROMPTMARK on {{topic}}." });
  await buyProduct(buyer, productId);
  ({ executionId } = await runToCompletion(buyer, { productId }));
});

const pathOf = (id: string) => `/v1/ai/executions/${id}/share`;
const shareOf = async (id = executionId, owner = buyer) =>
  (await owner.get(`/v1/ai/executions/${id}`)).body.data.share;
const tokenOf = ({ url }: { url: string }) => url.replace(`${market.origin}/shared/`, "");

async function share(id = executionId, owner = buyer): Promise<string> {
  const reply = await owner.post(pathOf(id));
  assert.equal(reply.status, 200, reply.text);
  return tokenOf(reply.body.data);
}

/** As a visitor without an account. */
function read(token: string) {
  const { name, value } = market.service.ctx.guests.cookie();
  return market.as(null).get(`/v1/shared-runs/${token}`, { cookie: `${name}=${value}` });
}
const isRead = async (token: string) => {
  const reply = await read(token);
  if (reply.status !== 200) assertError(reply, 404, "SHARED_RUN_NOT_FOUND");
  return reply.status === 200;
};

const hasAdmin = async () =>
  market.createSession((await market.createUser({ role: "admin" })).userId, { secondFactor: true });

suite("POST /v1/ai/executions/{id}/share", () => {
  test("a link that visitors and every credential can read, without the owner and the prompt", async () => {
    assert.equal(await shareOf(), null);
    const { data } = (await buyer.post(pathOf(executionId))).body;
    assert.deepEqual(data, { url: data.url, createdAt: market.clock.now.toISOString() });
    assert.match(tokenOf(data), /^[\w-]{32}$/);
    const reply = await read(tokenOf(data));
    assert.equal(reply.status, 200, reply.text);
    const run = (await buyer.get(`/v1/ai/executions/${executionId}`)).body.data;
    const { title } = (await seller.get(`/v1/products/${productId}`)).body.data;
    assert.deepEqual(reply.body.data, {
      type: "PROMPT",
      product: { id: productId, title, onSale: true },
      version: "1.0.0",
      provider: "sandbox",
      model: run.model,
      input: { topic: "rain" },
      output: run.output,
      usage: run.usage,
      createdAt: run.createdAt,
    });
    for (const mark of ["BUYERMARK", "PROMPTMARK", toId("usr", buyer.userId), executionId])
      assert.ok(!reply.text.includes(mark), mark);
    const withoutPermission = await market.createUser({ permissions: [] });
    for (const reader of [withoutPermission, await market.createSession(seller.userId)])
      assert.equal((await reader.get(`/v1/shared-runs/${tokenOf(data)}`)).status, 200);
    assertError(await market.as(null).get(`/v1/shared-runs/${tokenOf(data)}`), 401, "INVALID_API_KEY");
  });

  test("again, also at once: the same link; the execution shows it", async () => {
    const replies = await Promise.all([1, 2, 3, 4].map(() => buyer.post(pathOf(executionId))));
    market.clock.forward(60_000);
    replies.push(await buyer.post(pathOf(executionId)));
    for (const { body } of replies) assert.deepEqual(body.data, replies[0]!.body.data);
    assert.deepEqual(await shareOf(), replies[0]!.body.data);
  });

  test("DELETE: ends it, also twice, and a new link is another one", async () => {
    const token = await share();
    for (let n = 0; n < 2; n++) {
      const reply = await buyer.delete(pathOf(executionId));
      assert.deepEqual(reply.body.data, { executionId, shared: false });
    }
    assert.equal(await isRead(token), false);
    assert.equal(await shareOf(), null);
    const other = await share();
    assert.notEqual(other, token);
    assert.deepEqual([await isRead(token), await isRead(other)], [false, true]);
  });

  test("another user's execution: 404, and it stays shared", async () => {
    const token = await share();
    for (const stranger of [seller, await market.createUser(), await hasAdmin()]) {
      assertError(await stranger.post(pathOf(executionId)), 404, "EXECUTION_NOT_FOUND");
      assertError(await stranger.delete(pathOf(executionId)), 404, "EXECUTION_NOT_FOUND");
    }
    assert.ok(await isRead(token));
  });

  test("an execution that failed, runs, or has no stored texts: refused", async () => {
    const failing = {
      productId,
      apiKeyId: "sandbox",
      variables: { topic: "x" },
      options: { model: "sandbox-500" },
    };
    const failed = (await buyer.post("/v1/ai/execute", failing)).body.error.details.executionId;
    const details = assertError(await buyer.post(pathOf(failed)), 409, "INVALID_STATE");
    assert.deepEqual([details.current, details.allowed], ["failed", ["completed"]]);
    const approval = { id: "ok", type: "approval", timeoutSeconds: 600 };
    const running = await startExecution(seller, await createWorkflow(seller, { steps: [approval] }));
    assertError(await seller.post(pathOf(running)), 409, "INVALID_STATE");
    const unstored = await runToCompletion(buyer, { productId, options: { store: false } });
    assertError(await buyer.post(pathOf(unstored.executionId)), 422, "VALIDATION_ERROR", "executionId");
    market.clock.forward(30 * DAY_MS + 1);
    assertError(await buyer.post(pathOf(executionId)), 422, "VALIDATION_ERROR", "executionId");
  });

  test("sandbox-echo, whose output is the prompt: refused, also in a workflow of a workflow", async () => {
    const echo = await runToCompletion(buyer, { productId, options: { model: "sandbox-echo" } });
    assertError(await buyer.post(pathOf(echo.executionId)), 422, "VALIDATION_ERROR", "executionId");
    const inner = await createWorkflow(seller, { steps: [echoStep("say", "PROMPTMARK")] });
    const outer = await createWorkflow(seller, {
      steps: [{ id: "call", type: "product", productId: inner }],
      result: "steps.call.output",
    });
    const run = await executeWorkflow(seller, outer);
    assert.equal(run.status, "completed");
    assertError(await seller.post(pathOf(run.executionId)), 422, "VALIDATION_ERROR", "executionId");
  });

  test("a workflow: its input and result", async () => {
    const workflowId = await createWorkflow(seller, {
      steps: [transformStep("a", '{"twice": input.n * 2.0}')],
      result: "steps.a.output",
    });
    const run = await executeWorkflow(seller, workflowId, { input: { n: 2.5 } });
    const { data } = (await read(await share(run.executionId, seller))).body;
    assert.deepEqual([data.type, data.input, data.output], ["WORKFLOW", { n: 2.5 }, { twice: 5 }]);
    assert.deepEqual([data.model, data.product.onSale], [null, false]);
  });

  test("the token: neither in the database nor in a reader's request log", async () => {
    const token = await share();
    const reader = await market.createUser();
    await reader.get(`/v1/shared-runs/${token}`);
    await market.service.ctx.requestLog.flush(market.service.ctx);
    const [logged] = (await reader.get("/v1/request-logs")).body.data;
    assert.deepEqual([logged.operation, logged.path], ["sharedRuns.get", "/v1/shared-runs/:token"]);
    const { rows } = await market.query("select s::text as row from execution_shares s");
    assert.ok(rows.every(({ row }) => !row.includes(token)));
  });

  test("its page in a browser: product, input and output, for no search engine; 404 when the link has ended", async () => {
    const id = await createProduct(seller, { title: "<b>Poet</b>", content: "{{topic}}" });
    await buyProduct(buyer, id);
    const variables = { topic: "<script>alert(1)</script>" };
    const run = await runToCompletion(buyer, { productId: id, variables });
    const token = await share(run.executionId);
    const page = await market.as(null).get(`/shared/${token}`, { accept: "text/html" });
    assert.equal(page.status, 200);
    assert.equal(page.headers.get("x-robots-tag"), "noindex");
    assert.equal(page.headers.get("cache-control"), "no-store");
    for (const part of ["&lt;b&gt;Poet&lt;/b&gt;", "&lt;script&gt;alert(1)", "[sandbox]"])
      assert.ok(page.text.includes(part), part);
    assert.ok(!page.text.includes("<script>alert") && !page.text.includes("BUYERMARK"));
    await buyer.delete(pathOf(run.executionId));
    assert.equal((await market.as(null).get(`/shared/${token}`)).status, 404);
  });

  test("a token of any other form: 404", async () => {
    const token = await share();
    const other = token.endsWith("A") ? "B" : "A";
    for (const wrong of [token.slice(1), `${token}A`, token.slice(0, -1) + other, "%00", "x".repeat(32)])
      assert.equal(await isRead(wrong), false, wrong);
  });
});

suite("the link of a shared run ends", () => {
  let token: string;
  beforeEach(async () => {
    token = await share();
    assert.ok(await isRead(token));
  });
  const shares = async () =>
    (await market.query("select from execution_shares where user_id = $1", [buyer.userId])).rowCount;

  test("when the run is deleted", async () => {
    assert.equal((await buyer.delete(`/v1/ai/executions/${executionId}`)).status, 200);
    assert.equal(await isRead(token), false);
    assert.equal(await shares(), 0);
    assertError(await buyer.post(pathOf(executionId)), 404, "EXECUTION_NOT_FOUND");
  });

  test("30 days after the run, before its texts are erased and after", async () => {
    market.clock.forward(30 * DAY_MS);
    assert.ok(await isRead(token));
    market.clock.forward(1);
    assert.equal(await isRead(token), false);
    assert.equal(await shareOf(), null);
    await eraseOldTexts(market.service.ctx);
    assert.equal(await shares(), 0);
  });

  test("when the account closes", async () => {
    const session = await market.createSession(buyer.userId);
    const { email } = (await session.get("/v1/account")).body.data;
    const closed = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
    assert.equal(closed.status, 200, closed.text);
    assert.equal(await isRead(token), false);
    assert.equal(await shares(), 0);
  });

  test("while the owner is banned", async () => {
    const admin = await hasAdmin();
    const path = `/v1/admin/users/${toId("usr", buyer.userId)}`;
    await admin.post(`${path}/ban`, { reason: "Spam." });
    assert.equal(await isRead(token), false);
    await admin.post(`${path}/unban`);
    assert.ok(await isRead(token));
  });

  for (const [reasonCode, ends] of [
    ["malicious", true],
    ["illegal", true],
    ["spam", false],
  ] as const) {
    test(`while the product is suspended as ${reasonCode}: ${ends}`, async () => {
      const admin = await hasAdmin();
      const path = `/v1/admin/products/${productId}`;
      assert.equal((await admin.post(`${path}/suspend`, { reasonCode, reason: "Why." })).status, 200);
      assert.equal(await isRead(token), !ends);
      assert.equal((await shareOf()) === null, ends);
      if (ends) assertError(await buyer.post(pathOf(executionId)), 409, "PRODUCT_UNAVAILABLE");
      assert.equal((await admin.post(`${path}/reinstate`)).status, 200);
      const { data } = (await read(token)).body;
      assert.equal(data.product.onSale, false, "and it is not published yet");
    });
  }

  test("a product that its author deleted: it stays", async () => {
    assert.equal((await seller.delete(`/v1/products/${productId}`)).status, 200);
    const { data } = (await read(token)).body;
    assert.equal(data.product.onSale, false);
  });
});

test("a request that came in before the account closed: makes no link", async () => {
  const { ctx } = market.service;
  const { late } = await ctx.db.transaction().execute(async (tx) => {
    await anonymizeAccount(ctx, tx, await lockAccountForClosing(tx, buyer.userId));
    const late = buyer.post(pathOf(executionId));
    await waitForBlockedStatements(market);
    return { late };
  });
  assertError(await late, 401, "INVALID_API_KEY");
});

test("a run that is deleted meanwhile: makes no link", async () => {
  const deleted = buyer.delete(`/v1/ai/executions/${executionId}`);
  const [shared] = await Promise.all([buyer.post(pathOf(executionId)), deleted]);
  assert.equal((await deleted).status, 200);
  assert.ok([200, 404].includes(shared.status), shared.text);
  const { rows } = await market.query("select from execution_shares where user_id = $1", [buyer.userId]);
  assert.equal(rows.length, 0);
});
