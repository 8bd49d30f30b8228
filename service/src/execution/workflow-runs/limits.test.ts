import assert from "node:assert/strict";
import { suite, test } from "node:test";
import pg from "pg";
import { openEventStream } from "../../../test/event-stream.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { becomes } from "../../../test/until.ts";
import {
  cancelExecution,
  createWorkflow,
  echoStep,
  executeWorkflow,
  executionOf,
  openWorkflows,
  promptStep,
  startExecution,
  stepOf,
  stepsOf,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";

const { provider, market, author, worker, withOpenai } = await openWorkflows();

const FIVE_WEEKS_SECONDS = 35 * 86_400;
/** The maximum for a provider's count of tokens. */
const MAX_TOKENS = 2 ** 31 - 1;

suite("workflow run", () => {
  test("wait of five weeks: completes", async () => {
    const steps = [{ id: "wait", type: "delay", seconds: 60 }];
    const id = await startExecution(author, await createWorkflow(author, { steps }));
    await untilStatus(author, id, "waiting");
    market.clock.forward(FIVE_WEEKS_SECONDS * 1_000);
    const { duration } = await untilStatus(author, id, "completed");
    assert.equal(duration, FIVE_WEEKS_SECONDS);
  });

  test("token counts at the maximum: are summed", async () => {
    const usage = { input: MAX_TOKENS, output: MAX_TOKENS };
    for (let call = 0; call < 4; call++) provider.next({ answer: { text: "no JSON", usage } });
    const anything = { type: "object" };
    const workflowId = await createWorkflow(author, {
      steps: [
        promptStep("one", "1", { output: anything, onError: "continue" }),
        promptStep("two", "2", { needs: ["one"], output: anything, onError: "continue" }),
      ],
    });
    const run = await executeWorkflow(author, workflowId, withOpenai());
    assert.equal(run.status, "completed");
    assert.equal(run.usage.promptTokens, 4 * MAX_TOKENS);
    const [one] = await stepsOf(author, run.executionId);
    assert.equal(one.usage.completionTokens, 2 * MAX_TOKENS);
  });

  test("model names cut inside a surrogate pair: are stored with a replacement character", async () => {
    const steps = [promptStep("a", "1", { model: `${"a".repeat(99)}😀` })];
    provider.next("no-model");
    const failed = await executeWorkflow(author, await createWorkflow(author, { steps }), withOpenai());
    assert.deepEqual([failed.status, failed.error.code], ["failed", "PROVIDER_NOT_SUPPORTED"]);
    assert.ok(failed.error.message.includes("aaa\ufffd to this key"), failed.error.message);
    provider.next({ answer: { model: `${"a".repeat(199)}😀` } });
    const run = await executeWorkflow(
      author,
      await createWorkflow(author, { steps: [promptStep("a", "1")] }),
      withOpenai(),
    );
    assert.equal(run.status, "completed");
    assert.equal((await stepOf(author, run.executionId, "a")).model, `${"a".repeat(199)}\ufffd`);
  });

  test("deeply nested or huge output for JSON: fails within seconds of CPU time", async () => {
    const steps = [promptStep("json", "x", { output: { type: "array" } })];
    const workflowId = await createWorkflow(author, { steps });
    const deep = "[".repeat(50_000) + "]".repeat(50_000);
    for (const text of [deep, `\`\`\`${"\n".repeat(300_000)}x`]) {
      for (let call = 0; call < 2; call++) provider.next({ answer: { text } });
      const begun = process.cpuUsage();
      const run = await executeWorkflow(author, workflowId, withOpenai());
      assert.equal(run.error?.code, "OUTPUT_SCHEMA_MISMATCH");
      assert.ok(process.cpuUsage(begun).user < 3_000_000);
    }
  });

  test("end that cannot be written: fails after several attempts", async () => {
    const id = await startExecution(
      author,
      await createWorkflow(author, { steps: [{ id: "d", type: "delay", seconds: 60 }] }),
    );
    await untilStatus(author, id, "waiting");
    await market.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'refused by the test'; end $$`);
    await market.query(`
      create trigger refuse before update on executions for each row
        when (new.id = '${toUuid("exec", id)}' and new.status = 'completed') execute function refuse()`);
    market.clock.forward(60_000);
    const ended = await becomes(
      async () => {
        // A failed write is retried when the lease time is over.
        market.clock.forward(10_000);
        await worker.worker.claimDueRuns();
        return executionOf(author, id);
      },
      ({ status }) => status === "failed",
    );
    assert.equal(ended.error.code, "INTERNAL_ERROR");
    await market.query("drop trigger refuse on executions");
  });
});

test("GET /v1/ai/executions/:id/events with the last or an unknown Last-Event-ID: returns the end event", async () => {
  const { executionId } = await executeWorkflow(
    author,
    await createWorkflow(author, { steps: [transformStep("a", "1")], result: "steps.a.output" }),
  );
  const eventsAfter = async (id: string) => {
    const path = `/v1/ai/executions/${executionId}/events`;
    const listener = await openEventStream(market.origin, author.key, path, { "last-event-id": id });
    assert.equal(await listener.ended, true);
    return listener.events;
  };
  const [end, ...others] = (await eventsAfter("0")).reverse();
  assert.ok(others.length > 0);
  for (const id of [end!.id!, "999999999"]) assert.deepEqual(await eventsAfter(id), [end]);
});

test("child run deleted before its parent read its end: the parent completes", async () => {
  const called = await createWorkflow(author, {
    steps: [{ id: "wait", type: "delay", seconds: 60 }, echoStep("a", "x", { needs: ["wait"] })],
    result: "steps.a.output",
  });
  const workflowId = await createWorkflow(author, {
    steps: [{ id: "call", type: "product", productId: called }],
    result: "steps.call.output",
  });
  const id = await startExecution(author, workflowId);
  const { executionId: child } = await becomes(
    () => stepOf(author, id, "call"),
    (step) => step?.executionId,
  );
  await untilStatus(author, child, "waiting");
  // The lease of a dead worker that has not expired yet.
  await market.query(
    "update workflow_runs set lease_token = gen_random_uuid(), due_at = $2 where execution_id = $1",
    [toUuid("exec", id), new Date(market.clock.now.getTime() + 120_000)],
  );
  market.clock.forward(60_000);
  await untilStatus(author, child, "completed");
  assert.equal((await author.delete(`/v1/ai/executions/${child}`)).status, 200);
  market.clock.forward(120_000);
  const { output } = await untilStatus(author, id, "completed");
  assert.equal(output, "[sandbox] x");
  assert.equal((await author.delete(`/v1/ai/executions/${id}`)).status, 200);
  const remaining = "select from workflow_runs where execution_id = any ($1)";
  assert.equal((await market.query(remaining, [[toUuid("exec", id), toUuid("exec", child)]])).rows.length, 0);
});

test("checkpoint that waits for a cancellation: holds no lock on the run meanwhile", async () => {
  const steps = [{ id: "wait", type: "delay", seconds: 60 }];
  const id = await startExecution(author, await createWorkflow(author, { steps }));
  await untilStatus(author, id, "waiting");
  const uuid = toUuid("exec", id);
  const other = new pg.Client({ connectionString: market.target });
  await other.connect();
  await other.query("begin");
  await other.query("select from executions where id = $1 for no key update", [uuid]);
  market.clock.forward(60_000);
  await waitForBlockedStatements(market);
  await other.query("select from workflow_runs where execution_id = $1 for update nowait", [uuid]);
  await other.query("commit");
  await other.end();
  await untilStatus(author, id, "completed");
});

test("concurrent retry and deletion: one is refused", async () => {
  const workflowId = await createWorkflow(author, { steps: [{ id: "wait", type: "delay", seconds: 60 }] });
  const id = await startExecution(author, workflowId);
  await cancelExecution(author, id);
  const other = new pg.Client({ connectionString: market.target });
  await other.connect();
  await other.query("begin");
  await other.query("select from executions where id = $1 for update", [toUuid("exec", id)]);
  // Both requests have read the execution before one of them changes it.
  const replies = [author.post(`/v1/ai/executions/${id}/retry`), author.delete(`/v1/ai/executions/${id}`)];
  await waitForBlockedStatements(market, 2);
  await other.query("commit");
  await other.end();
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  assert.ok(["202,409", "404,200", "409,200"].includes(String(statuses)), String(statuses));
  const gone = "select from executions where id = $1 and deleted_at is not null and completed_at is null";
  assert.equal((await market.query(gone, [toUuid("exec", id)])).rows.length, 0);
});
