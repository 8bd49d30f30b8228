import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { createDraft } from "../../../test/factories.ts";
import { isFullSize } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import type { Client } from "../../../test/market.ts";
import { createProviderKey, run } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  definitionOf,
  echoStep,
  openWorkflows,
  promptStep,
  startExecution,
  startWorker,
  untilStatus,
} from "../../../test/workflows.ts";
import { DAY_MS } from "../../core/dates.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import { insertWorkflowExecution } from "./new-execution.ts";

const { market, provider, worker } = await openWorkflows();
const admin = await market.createUser({ role: "admin" });

async function setBan(action: "ban" | "unban", { userId }: Client): Promise<void> {
  const session = await market.createSession(admin.userId, { secondFactor: true });
  const body = action === "ban" ? { reason: "Fraud" } : undefined;
  const reply = await session.post(`/v1/admin/users/${toId("usr", userId)}/${action}`, body);
  assert.equal(reply.status, 200, reply.text);
}

async function close({ userId }: Client): Promise<void> {
  const session = await market.createSession(userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const reply = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(reply.status, 200, reply.text);
}

/** Reads the row, because a banned account cannot read its runs. */
async function readStatus(id: string) {
  const { rows } = await market.query("select status, error_code as code from executions where id = $1", [
    toUuid("exec", id),
  ]);
  return rows[0];
}

const untilEnded = (id: string) =>
  becomes(
    () => readStatus(id),
    ({ status }) => ["completed", "failed", "canceled"].includes(status),
  );

const openCalls = async (): Promise<number> =>
  (await market.query("select 1 from provider_calls where ended_at is null")).rows.length;

/** Starts three runs: a workflow and a prompt whose provider does not answer, and a workflow that waits for an approval. */
async function startThreeRuns(owner: Client): Promise<string[]> {
  const openai = await createProviderKey(owner);
  const slow = await createWorkflow(owner, {
    steps: [promptStep("slow", "x"), echoStep("next", "y", { needs: ["slow"] })],
  });
  const approval = { id: "ok", type: "approval", timeoutSeconds: 86_400 };
  const withApproval = await createWorkflow(owner, {
    steps: [approval, echoStep("next", "y", { needs: ["ok"] })],
  });
  for (let call = 0; call < 2; call++) provider.next("hang");
  let asked = provider.nextRequest();
  const running = await startExecution(owner, slow, { apiKeys: { openai, sandbox: "sandbox" } });
  await asked;
  asked = provider.nextRequest();
  const productId = await createDraft(owner, { models: { openai: "gpt-4o" } });
  const prompt = await run(owner, { productId, apiKeyId: openai }, { prefer: "respond-async" });
  assert.equal(prompt.status, 202, prompt.text);
  await asked;
  const waiting = await startExecution(owner, withApproval);
  await untilStatus(owner, waiting, "waiting");
  return [running, waiting, prompt.body.data.executionId];
}

test("ban: cancels all runs of the account, and an unban restarts none", async () => {
  const owner = await market.createUser();
  const ids = await startThreeRuns(owner);
  await setBan("ban", owner);
  for (const id of ids)
    assert.deepEqual(await untilEnded(id), { status: "canceled", code: "account_banned" });
  await becomes(openCalls, (count) => count === 0);
  const requests = provider.requests.length;
  await setBan("unban", owner);
  market.clock.forward(2 * DAY_MS);
  await worker.worker.claimDueRuns();
  const listed = (await market.as(owner.key).get("/v1/ai/executions")).body.data;
  assert.deepEqual(
    listed.map(({ status, error }: { status: string; error: { message: string } }) => [
      status,
      error.message,
    ]),
    ids.map(() => ["canceled", "The account was banned."]),
  );
  assert.equal(provider.requests.length, requests);
});

test("ban before any worker claimed a run: the run never starts, even if its row was inserted after the ban", async () => {
  const owner = await market.createUser();
  const workflowId = await createWorkflow(owner, { steps: [echoStep("a", "x")] });
  await worker.stop();
  const [before, after] = [await startExecution(owner, workflowId), await startExecution(owner, workflowId)];
  await setBan("ban", owner);
  // As if the request had been accepted before the ban and its row inserted after it.
  await market.query("update executions set cancel_requested_at = null, cancel_reason = null where id = $1", [
    toUuid("exec", after),
  ]);
  const other = startWorker(market);
  for (const id of [before, after])
    assert.deepEqual(await untilEnded(id), { status: "canceled", code: "account_banned" });
  const { rows } = await market.query("select from execution_steps where execution_id = $1", [
    toUuid("exec", after),
  ]);
  assert.equal(rows.length, 0);
  await other.stop();
});

test("ban before the row of a run was inserted: the worker of the same process makes no call", async () => {
  const other = startWorker(market);
  const owner = await market.createUser();
  const apiKeys = { openai: await createProviderKey(owner) };
  const definition = definitionOf({ steps: [promptStep("a", "x")] });
  const workflowId = await createWorkflow(owner, { steps: [promptStep("a", "x")] });
  await setBan("ban", owner);
  const requests = provider.requests.length;
  const id = await insertWorkflowExecution(market.service.ctx, owner.userId, {
    ...{ productId: requireUuid("prod", workflowId), version: "1.0.0", definition, input: {}, apiKeys },
    ...{ maxCost: null, callbackId: null, depth: 1, parent: null },
  });
  assert.deepEqual(await untilEnded(toId("exec", id)), { status: "canceled", code: "account_banned" });
  const { rows } = await market.query("select status from execution_steps where execution_id = $1", [id]);
  assert.deepEqual(rows, [{ status: "canceled" }]);
  assert.equal(provider.requests.length, requests);
  await other.stop();
});

test("ban while runs start, continue and end: every run ends without a failure", async () => {
  const other = startWorker(market);
  for (let round = 0; round < (isFullSize ? 3 : 2); round++) {
    const owner = await market.createUser();
    const steps = [1, 2, 3, 4].map((n) => echoStep(`s${n}`, "x", { needs: n === 1 ? [] : [`s${n - 1}`] }));
    const workflowId = await createWorkflow(owner, { steps });
    const ids = await Promise.all(
      Array.from({ length: isFullSize ? 20 : 8 }, () => startExecution(owner, workflowId)),
    );
    await becomes(
      () => readStatus(ids[round * 3]!),
      ({ status }) => status !== "queued",
    );
    await setBan("ban", owner);
    for (const id of ids) assert.notEqual((await untilEnded(id)).status, "failed");
  }
  await other.stop();
});

test("ban that waits for a lock of a checkpoint: holds no lock that the checkpoint needs", async () => {
  const owner = await market.createUser();
  const id = toUuid(
    "exec",
    await startExecution(owner, await createWorkflow(owner, { steps: [echoStep("a", "x")] })),
  );
  const banned = await market.service.ctx.db.transaction().execute(async (tx) => {
    await sql`select from executions where id = ${id} for no key update`.execute(tx);
    const ban = setBan("ban", owner);
    await waitForBlockedStatements(market);
    await sql`select from workflow_runs where execution_id = ${id} for no key update nowait`.execute(tx);
    return { ban };
  });
  await banned.ban;
});

test("closed account: cancels all runs and deletes their rows", async () => {
  const other = startWorker(market);
  const owner = await market.createUser();
  const ids = await startThreeRuns(owner);
  await close(owner);
  for (const id of ids)
    assert.deepEqual(await untilEnded(id), { status: "canceled", code: "account_closed" });
  await becomes(openCalls, (count) => count === 0);
  await other.worker.idle();
  const { rows } = await market.query("select from workflow_runs where user_id = $1", [owner.userId]);
  assert.equal(rows.length, 0);
  await other.stop();
});
