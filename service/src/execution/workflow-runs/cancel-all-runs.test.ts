import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { createDraft } from "../../../test/factories.ts";
import type { Client } from "../../../test/market.ts";
import { createProviderKey, run } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  echoStep,
  openWorkflows,
  promptStep,
  startExecution,
  startWorker,
  untilStatus,
} from "../../../test/workflows.ts";
import { DAY_MS } from "../../core/dates.ts";
import { toId, toUuid } from "../../core/ids.ts";

const { market, provider, worker } = await openWorkflows();
const admin = await market.createUser({ role: "admin" });

async function judge(verdict: "ban" | "unban", { userId }: Client): Promise<void> {
  const session = await market.createSession(admin.userId, { secondFactor: true });
  const wish = verdict === "ban" ? { reason: "Fraud" } : undefined;
  const reply = await session.post(`/v1/admin/users/${toId("usr", userId)}/${verdict}`, wish);
  assert.equal(reply.status, 200, reply.text);
}

async function close({ userId }: Client): Promise<void> {
  const session = await market.createSession(userId);
  const { email } = (await session.get("/v1/account")).body.data;
  const reply = await session.request("DELETE", "/v1/account", { json: { confirm: email } });
  assert.equal(reply.status, 200, reply.text);
}

/** How a run stands, whoever may read it. */
async function standOf(id: string) {
  const { rows } = await market.query("select status, error_code as code from executions where id = $1", [
    toUuid("exec", id),
  ]);
  return rows[0];
}

const untilEnded = (id: string) =>
  becomes(
    () => standOf(id),
    ({ status }) => ["completed", "failed", "canceled"].includes(status),
  );

const openCalls = async (): Promise<number> =>
  (await market.query("select 1 from provider_calls where ended_at is null")).rows.length;

/** A workflow's run that a provider does not answer, one that waits for a decision, and a prompt's. */
async function hasUnderWay(owner: Client): Promise<string[]> {
  const openai = await createProviderKey(owner);
  const slow = await createWorkflow(owner, {
    steps: [promptStep("slow", "x"), echoStep("next", "y", { needs: ["slow"] })],
  });
  const approval = { id: "ok", type: "approval", timeoutSeconds: 86_400 };
  const patient = await createWorkflow(owner, {
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
  const waiting = await startExecution(owner, patient);
  await untilStatus(owner, waiting, "waiting");
  return [running, waiting, prompt.body.data.executionId];
}

test("all that somebody runs ends when they are banned, and none of it begins by itself when they are let in again", async () => {
  const owner = await market.createUser();
  const ids = await hasUnderWay(owner);
  await judge("ban", owner);
  for (const id of ids)
    assert.deepEqual(await untilEnded(id), { status: "canceled", code: "account_banned" });
  await becomes(openCalls, (count) => count === 0);
  const asked = provider.requests.length;
  await judge("unban", owner);
  market.clock.forward(2 * DAY_MS);
  await worker.worker.claimDueRuns();
  const told = (await market.as(owner.key).get("/v1/ai/executions")).body.data;
  assert.deepEqual(
    told.map(({ status, error }: { status: string; error: { message: string } }) => [status, error.message]),
    ids.map(() => ["canceled", "The account was banned."]),
  );
  assert.equal(provider.requests.length, asked);
});

test("a run that no worker had begun when its owner was banned never begins, even if it is written down after the ban", async () => {
  const owner = await market.createUser();
  const workflowId = await createWorkflow(owner, { steps: [echoStep("a", "x")] });
  await worker.stop();
  const [before, after] = [await startExecution(owner, workflowId), await startExecution(owner, workflowId)];
  await judge("ban", owner);
  // As if its request had come in before the ban, and its row after it.
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

test("a ban does not lose against runs that begin, go on and end in the same moment", async () => {
  const other = startWorker(market);
  for (let round = 0; round < 3; round++) {
    const owner = await market.createUser();
    const steps = [1, 2, 3, 4].map((n) => echoStep(`s${n}`, "x", { needs: n === 1 ? [] : [`s${n - 1}`] }));
    const workflowId = await createWorkflow(owner, { steps });
    const ids = await Promise.all(Array.from({ length: 20 }, () => startExecution(owner, workflowId)));
    await becomes(
      () => standOf(ids[round * 3]!),
      ({ status }) => status !== "queued",
    );
    await judge("ban", owner);
    for (const id of ids) assert.notEqual((await untilEnded(id)).status, "failed");
  }
  await other.stop();
});

test("a ban that waits for whoever moves a run holds nothing that they need", async () => {
  const owner = await market.createUser();
  const id = toUuid(
    "exec",
    await startExecution(owner, await createWorkflow(owner, { steps: [echoStep("a", "x")] })),
  );
  const waits = async () =>
    (await market.query("select from pg_locks where not granted and locktype = 'transactionid'")).rows.length;
  const banned = await market.service.ctx.db.transaction().execute(async (tx) => {
    await sql`select from executions where id = ${id} for no key update`.execute(tx);
    const ban = judge("ban", owner);
    await becomes(waits, (count) => count > 0);
    await sql`select from workflow_runs where execution_id = ${id} for no key update nowait`.execute(tx);
    return { ban };
  });
  await banned.ban;
});

test("all that somebody runs ends when their account closes", async () => {
  const other = startWorker(market);
  const owner = await market.createUser();
  const ids = await hasUnderWay(owner);
  await close(owner);
  for (const id of ids)
    assert.deepEqual(await untilEnded(id), { status: "canceled", code: "account_closed" });
  await becomes(openCalls, (count) => count === 0);
  await other.worker.idle();
  const { rows } = await market.query("select from workflow_runs where user_id = $1", [owner.userId]);
  assert.equal(rows.length, 0);
  await other.stop();
});
