import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { newestRun } from "@stoa/service/test/runs.ts";
import { becomes, until } from "@stoa/service/test/until.ts";
import { createWorkflow, echoStep, startWorker, transformStep } from "@stoa/service/test/workflows.ts";
import { openTerminal, skipWithoutTerminal } from "./pseudo-terminal.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let worker: ReturnType<typeof startWorker>;
let author: Client;
let stoa: CommandLine;
before(async () => {
  market = await openMarket({ now: () => new Date() });
  worker = startWorker(market);
  author = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: author.key });
});
after(async () => {
  await stoa.remove();
  await worker.stop();
  await market.close();
});

const input = {
  type: "object",
  required: ["topic"],
  properties: {
    topic: { type: "string", description: "What it is about" },
    parts: { type: "integer", default: 2 },
  },
};

const createDrafts = (title: string) =>
  createWorkflow(
    author,
    {
      input,
      steps: [
        echoStep("draft", "Write about {{topic}}", {
          provider: "openai",
          model: "sandbox-echo",
          vars: { topic: "input.topic" },
        }),
        transformStep("number", "input.parts + 1", { needs: ["draft"] }),
      ],
      result: "steps.draft.output + '\\n' + string(steps.number.output)",
    },
    { title },
  );

const createApproval = (title: string) =>
  createWorkflow(
    author,
    {
      steps: [
        { id: "ok", type: "approval", prompt: "Shall it go out?", timeoutSeconds: 3_600 },
        transformStep("answer", "steps.ok.output.approved", { needs: ["ok"] }),
      ],
      result: "steps.answer.output",
    },
    { title },
  );

const untilStatus = (status: string) =>
  becomes(
    () => newestRun(author),
    (run) => run?.status === status,
  );

suite("stoa workflows run", () => {
  test("shows the steps on standard error and the result on standard output", async () => {
    const id = await createDrafts("Drafts");
    await writeFile(join(stoa.folder, "input.yaml"), "topic: rain\nparts: 4\n");
    const [byVariables, byFile] = await Promise.all([
      stoa.run(["workflows", "run", "drafts", "--var", "topic=rain"]),
      stoa.run(["workflows", "run", id, "--input", "input.yaml", "--key", "sandbox", "--json"]),
    ]);
    assert.equal(byVariables.code, 0, byVariables.stderr);
    assert.match(byVariables.stdout, /^\[sandbox\] .*\n3$/);
    assert.match(byVariables.stderr, /^No valid key of openai: using the sandbox/);
    assert.match(
      byVariables.stderr,
      /● draft {2}running\n(.*\n)*✓ draft {2}completed {2}USD 0, \[sandbox\] .*…\n/,
    );
    assert.match(byVariables.stderr, /✓ number {2}completed {2}3\n/);
    assert.match(byVariables.stderr, /tokens, USD 0 · [\d.]+ s · exec_\w+\n$/);
    assert.match(JSON.parse(byFile.stdout).output, /^\[sandbox\] .*\n5$/);
  });

  test("missing and wrong values: errors that name them", async () => {
    const id = await createDrafts("Wrong values");
    const [missing, wrong] = await Promise.all([
      stoa.run(["workflows", "run", id]),
      stoa.run(["workflows", "run", id, "--var", "topic=a", "--var", "parts=many"]),
    ]);
    assert.deepEqual([missing.code, wrong.code], [1, 1]);
    assert.match(missing.stderr, /topic: What it is about\nfix: .*--var topic=…/);
    assert.match(wrong.stderr, /parts must be of the type integer/);
  });

  test("--approve-all and --reject-all: decide", async () => {
    const id = await createApproval("Decided");
    const [approved, rejected] = await Promise.all([
      stoa.run(["workflows", "run", id, "--approve-all"]),
      stoa.run(["workflows", "run", id, "--reject-all"]),
    ]);
    assert.deepEqual([approved.code, approved.stdout], [0, "true\n"], approved.stderr);
    assert.equal(rejected.code, 2);
    assert.match(
      rejected.stderr,
      /The run exec_\w+ failed: .*\(APPROVAL_REJECTED\)\nfix: .*workflows retry exec_/,
    );
  });

  test("without a terminal: says how to approve, and follow goes on to the result", async () => {
    const id = await createApproval("Left waiting");
    const run = await stoa.run(["workflows", "run", id]);
    assert.equal(run.code, 2);
    assert.match(
      run.stderr,
      /error: The run waits for an approval: Shall it go out\?\nfix: Decide: stoa workflows approve/,
    );
    const { id: executionId } = await untilStatus("waiting");
    const follow = stoa
      .start(["workflows", "follow", executionId, "--json", "--fields", "output"])
      .ended.catch(() => null);
    assert.equal(
      (await stoa.run(["workflows", "approve", executionId])).stdout,
      "step      ok\ndecision  approved\n",
    );
    const none = await stoa.run(["workflows", "reject", executionId]);
    assert.deepEqual([none.code, /No step of .* waits/.test(none.stderr)], [2, true]);
    await follow;
    const again = await stoa.run(["workflows", "follow", executionId]);
    assert.equal(again.stdout, "true\n");
  });

  test("a run that fails goes on by retry, and one that was canceled too", async () => {
    const id = await createApproval("Retried");
    await stoa.run(["workflows", "run", id, "--reject-all"]);
    const { id: failed } = await untilStatus("failed");
    const retried = await stoa.run(["workflows", "retry", failed, "--approve-all"]);
    assert.deepEqual([retried.code, retried.stdout], [0, "true\n"], retried.stderr);
    const detached = await stoa.run(["workflows", "run", id, "--detach"]);
    const executionId = detached.stdout.trim();
    const canceled = await stoa.run(["workflows", "cancel", executionId]);
    assert.match(canceled.stdout, new RegExp(executionId));
    await untilStatus("canceled");
  });

  test("Ctrl-C: cancels the run", async () => {
    const id = await createWorkflow(
      author,
      { steps: [{ id: "wait", type: "delay", seconds: 3_600 }] },
      { title: "Waits" },
    );
    const command = stoa.start(["workflows", "run", id]);
    await until("the step waits", () => command.output.stderr.includes("wait  waiting"));
    command.child.kill("SIGINT");
    const { code, stderr } = await command.ended;
    assert.equal(code, 130);
    const { id: executionId } = await untilStatus("canceled");
    assert.match(stderr, new RegExp(`Canceled: ${executionId}\n$`));
  });
});

test("stoa workflows run in a terminal: lines with wide characters fit into it", {
  skip: skipWithoutTerminal,
}, async () => {
  const wide = transformStep("translate", `"${"海".repeat(80)}"`);
  const id = await createWorkflow(author, { steps: [wide], result: "1" }, { title: "Wide" });
  const run = openTerminal(stoa, ["workflows", "run", id]);
  assert.equal(await run.ended, 0, run.screen());
  const [, shown] = /^✓ translate {2}completed {2}(海+)…$/m.exec(run.screen()) ?? [];
  assert.ok(shown && shown.length <= 30, run.screen());
});

test("stoa workflows run in a terminal: asks for approvals; Ctrl-C at the question cancels the run", {
  skip: skipWithoutTerminal,
}, async () => {
  const id = await createApproval("Asked");
  const approved = openTerminal(stoa, ["workflows", "run", id]);
  await approved.sees("Shall it go out?");
  approved.type("y");
  assert.equal(await approved.ended, 0, approved.screen());
  assert.match(approved.screen(), /✓ answer {2}completed.*\n(.*\n)*true\n/);
  const left = openTerminal(stoa, ["workflows", "run", id]);
  await left.sees("Shall it go out?");
  left.type("\u0003");
  assert.equal(await left.ended, 130, left.screen());
  await untilStatus("canceled");
});
