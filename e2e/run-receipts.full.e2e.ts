import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { createDraft } from "@stoa/service/test/factories.ts";
import { type Client, type Market, openMarket } from "@stoa/service/test/market.ts";
import { runToCompletion } from "@stoa/service/test/runs.ts";
import { createWorkflow, executeWorkflow, startWorker, transformStep } from "@stoa/service/test/workflows.ts";
import { shell, temporaryFolder } from "./service-process.ts";

const execute = promisify(execFile);
const variables = { language: "Deutsch", topic: 'Schön ✓ "rain" \\ \n' };

let market: Market;
let author: Client;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let guide: string;
/** Files that a user needs to verify a receipt. */
let files: Record<"answer" | "variables" | "output" | "other", string>;
/** The same for a workflow; the JSON has unordered names. */
let ofWorkflow: Pick<typeof files, "answer" | "variables" | "output">;
before(async () => {
  market = await openMarket();
  folder = await temporaryFolder();
  guide = await readFile(new URL("../docs/guides/receipts-of-runs.md", import.meta.url), "utf8");
  author = await market.createUser();
  const run = await runToCompletion(author, { productId: await createDraft(author), variables });
  files = {
    answer: await writeTo("answer.json", await receiptOf(run.executionId)),
    variables: await writeTo("variables.json", JSON.stringify(variables, null, 2)),
    output: await writeTo("output.txt", run.output),
    other: await writeTo("other.json", JSON.stringify({ ...variables, topic: "snow" })),
  };
  ofWorkflow = await hasRunOfWorkflow();
});
after(async () => {
  await market.close();
  await folder.remove();
});

const receiptOf = async (executionId: string) =>
  (await author.get(`/v1/ai/executions/${executionId}/receipt`)).text;

async function hasRunOfWorkflow() {
  const worker = startWorker(market);
  const input = { to: { street: "Ü 1", city: ["b", { z: 1, a: 0.5 }] }, at: null };
  const steps = [transformStep("told", "{'to': input.to, 'all': {'b': [true], 'a': 'é'}}")];
  const workflow = await createWorkflow(author, { steps, result: "steps.told.output" });
  const { executionId, output } = await executeWorkflow(author, workflow, { input });
  await worker.stop();
  return {
    answer: await writeTo("workflow.json", await receiptOf(executionId)),
    variables: await writeTo("input.json", JSON.stringify(input)),
    output: await writeTo("result.json", JSON.stringify(output, null, 2)),
  };
}

async function writeTo(name: string, text: string): Promise<string> {
  const path = join(folder.path, name);
  await writeFile(path, text);
  return path;
}

/** The guide's program, unchanged. */
const programIn = (language: string) => new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "s").exec(guide)![1]!;

const checkers = {
  "in Node": { language: "js", command: process.execPath, file: "verify.mjs", needs: ["--version"] },
  "in Python": {
    ...{ language: "python", command: "python3", file: "verify.py" },
    needs: ["-c", "import cryptography"],
  },
};

for (const [name, { language, command, file, needs }] of Object.entries(checkers)) {
  const isThere = spawnSync(command, needs).status === 0;
  suite(`guide receipts-of-runs: the verifier ${name}`, {
    skip: !isThere && `there is no ${command} on this machine that can do it`,
  }, () => {
    let program: string;
    before(async () => {
      program = await writeTo(file, programIn(language));
    });

    /** Returns the output by line; rejects when the program fails. */
    const check = async (...given: string[]) =>
      (await execute(command, [program, market.origin, ...given])).stdout.trim().split("\n");

    test("prints the content of a receipt, and whether given texts are those of the run", async () => {
      const printed = "completed 1.0.0 sandbox 0 USD";
      assert.deepEqual(await check(files.answer), [printed]);
      assert.deepEqual(await check(files.answer, files.variables, files.output), [
        printed,
        "these variables",
        "this output",
      ]);
      assert.deepEqual(await check(files.answer, files.other, files.variables), [
        printed,
        "other variables",
        "another output",
      ]);
    });

    test("verifies input and output of a workflow in any JSON formatting", async () => {
      const [, ...printed] = await check(ofWorkflow.answer, ofWorkflow.variables, ofWorkflow.output);
      assert.deepEqual(printed, ["these variables", "this output"]);
    });

    test("changed receipt: refused", async () => {
      const { data } = JSON.parse(await readFile(files.answer, "utf8"));
      const [header, payload, signature] = data.receipt.split(".");
      const changed = Buffer.from(payload, "base64url").toString().replace("completed", "failed");
      const receipt = [header, Buffer.from(changed).toString("base64url"), signature].join(".");
      const forged = await writeTo("forged.json", JSON.stringify({ data: { ...data, receipt } }));
      await assert.rejects(check(forged));
    });
  });
}

suite("guide receipts-of-runs: its shell blocks", () => {
  const blocks = () => {
    const [setUp, ask, check, ...others] = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(
      ([, lines]) => lines!,
    );
    assert.deepEqual(others, [], "a shell block without an assertion");
    const begun = setUp!.replace("http://127.0.0.1:4000", market.origin).replace("stoa_test_…", author.key);
    return { begun, ask, check };
  };
  const run = (lines: string) => shell(lines, { TMPDIR: folder.path });

  test("run a prompt, get its receipt and verify it", async () => {
    const { begun, ask, check } = blocks();
    const program = await writeTo("verify.mjs", programIn("js"));
    const { code, stdout, stderr } = await run(`${begun}${ask}cp '${program}' .\n${check}`);
    assert.equal(code, 0, stderr);
    assert.deepEqual(stdout.trim().split("\n"), ["completed 1.0.0 sandbox 0 USD", "these variables"]);
  });

  test("a refused request prints its status and leaves no file", async () => {
    const { begun, ask } = blocks();
    const wrong = "AUTH='Authorization: Bearer stoa_test_wrong'";
    const { code, stdout, stderr } = await run(`${begun}trap ls EXIT\n${wrong}\n${ask}`);
    assert.notEqual(code, 0);
    assert.match(stderr, /401/);
    assert.equal(stdout.trim(), "variables.json");
  });
});
