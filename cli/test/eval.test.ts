import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { type CommandLine, openCommandLine } from "./stoa.ts";

let market: Market;
let stoa: CommandLine;
let haiku: string;
before(async () => {
  market = await openMarket({ now: () => new Date() });
  const seller = await market.createUser();
  stoa = await openCommandLine({ origin: market.origin, key: seller.key });
  haiku = await createProduct(seller, { title: "Haiku about anything" });
});
after(async () => {
  await stoa.remove();
  await market.close();
});

async function evaluate(name: string, content: string, ...more: string[]) {
  const file = join(stoa.folder, name);
  await writeFile(file, content);
  return stoa.run(["eval", haiku, file, "--key", "sandbox", "--model", "sandbox-echo", ...more]);
}

const PASSING = `
tests:
  - description: Names the topic
    vars: { topic: rain }
    assert:
      - { type: icontains, value: "{{topic}}" }
      - { type: not-icontains, value: snow }
`;
const FAILING = `
  - description: Is JSON
    vars: { topic: sun }
    assert:
      - { type: is-json, value: { type: array } }
`;

const MISSING = `
tests:
  - vars: { other: x }
    assert:
      - { type: contains, value: x }
`;

test("promptfoo YAML: prints the verdict of each test, and exits by the pass rate", async () => {
  const [passing, failing, tolerated] = [
    await evaluate("pass.yaml", PASSING, "--repeats", "2"),
    await evaluate("fail.yaml", PASSING + FAILING),
    await evaluate("half.yaml", PASSING + FAILING, "--min-pass-rate", "0.5", "--json"),
  ];
  assert.equal(passing.code, 0, passing.stderr);
  assert.equal(passing.stdout, "passed  Names the topic\npassed  Names the topic (run 2)\n");
  assert.match(passing.stderr, /2 of 2 passed: 100 % \(95 % interval \d+ % to 100 %\), USD 0/);
  assert.equal(failing.code, 3, failing.stderr);
  assert.match(failing.stdout, /^passed {2}Names the topic\nFAILED {2}Is JSON\n +is-json: .+\n$/);
  assert.equal(tolerated.code, 0, tolerated.stderr);
  const { passed, runs, results } = JSON.parse(tolerated.stdout);
  assert.deepEqual([passed, runs, results[1].isPassed], [1, 2, false]);
  assert.match(results[0].executionId, /^exec_/);
});

test("CSV: the same tests in columns", async () => {
  const { code, stdout, stderr } = await evaluate("tests.csv", "topic,__expected\nrain,contains: rain\n");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^passed {2}/);
});

test("what cannot be evaluated: named by line, and nothing runs unless it is left out", async () => {
  const yaml = `${PASSING}      - { type: javascript, value: "output.length > 1" }\n`;
  const refused = await evaluate("code.yaml", yaml);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /code\.yaml:8: .*javascript/);
  const skipped = await evaluate("code.yaml", yaml, "--skip-unsupported");
  assert.equal(skipped.code, 0, skipped.stderr);
});

test("a variable that the prompt refuses: the run fails, and so does the test", async () => {
  const { code, stdout } = await evaluate("missing.yaml", MISSING);
  assert.equal(code, 3);
  assert.match(stdout, /FAILED .*\n +the run failed: VALIDATION_ERROR/);
});

test("unusable options and files: what to change", async () => {
  for (const [args, message] of [
    [["eval", haiku, "nothing.yaml"], /Cannot read nothing\.yaml \(ENOENT\)/],
    [["eval", haiku, "tests.txt", "--min-pass-rate", "2"], /not a number from 0 to 1/],
  ] as const) {
    const { code, stderr } = await stoa.run([...args]);
    assert.equal(code, 1, stderr);
    assert.match(stderr, message);
  }
  const { code, stderr } = await evaluate("empty.yaml", "tests: []\n");
  assert.deepEqual([code, /has no tests/.test(stderr)], [1, true], stderr);
});
