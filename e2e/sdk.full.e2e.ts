import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createProduct } from "@stoa/service/test/factories.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { installSdk } from "./packages.ts";
import { shell, temporaryFolder } from "./service-process.ts";

const GUIDE = new URL("../docs/guides/sdk.md", import.meta.url);

let market: Market;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let blocks: Map<string, string[]>;
before(async () => {
  // The feed of events needs a worker, and workers the real time.
  market = await openMarket({ config: { roles: { api: true, worker: true } }, now: () => new Date() });
  await createProduct(await market.createUser());
  folder = await temporaryFolder();
  await installSdk(folder.path);
  blocks = blocksOf(await readFile(GUIDE, "utf8"));
});
after(async () => {
  await market.close();
  await folder.remove();
});

/** The programs of the guide by heading. */
function blocksOf(guide: string): Map<string, string[]> {
  return new Map(
    guide.split(/^## /m).map((section) => {
      const programs = [...section.matchAll(/```js\n(.*?)```/gs)].map(([, lines]) => lines!);
      return [section.split("\n")[0]!, programs];
    }),
  );
}

/** Runs the first program of the guide and then another, as one module. Returns what the second printed. */
async function runBlock(program: string): Promise<string[]> {
  const [first] = blocks.get("Buy a prompt and run it") ?? [];
  const { key } = await market.createUser();
  const start = first!.replace(/console\.log.*\n/, "");
  await writeFile(join(folder.path, "program.mjs"), `${start}${program}`);
  const { code, stdout, stderr } = await shell(`cd ${folder.path} && node program.mjs`, {
    STOA_BASE_URL: `${market.origin}/v1`,
    STOA_API_KEY: key,
  });
  assert.equal(code, 0, stderr);
  return stdout.trim().split("\n");
}

const expectations: Record<string, RegExp[][]> = {
  "Buy a prompt and run it": [[/^\[sandbox\]/]],
  "Stream a run": [[/^\[sandbox\]/]],
  "Read lists": [[/^4\.99 Haiku about anything$/, /^1 of 1 purchases$/]],
  "Handle errors": [[/^true PRODUCT_NOT_FOUND \S+ http\S+PRODUCT_NOT_FOUND$/]],
  "Receive events": [[/^purchase\.completed 4\.99$/], [/^test$/]],
  Files: [[/^13$/, /^application\/jsonl/]],
};

for (const [heading, programs] of Object.entries(expectations))
  test(`guide sdk, ${heading}: its programs give the described results`, async () => {
    const found = blocks.get(heading)!;
    assert.equal(found.length, programs.length);
    for (const [at, program] of found.entries()) {
      const lines = await runBlock(heading.startsWith("Buy") ? "console.log(run.output);" : program);
      for (const [n, expected] of programs[at]!.entries()) assert.match(lines[n] ?? "", expected);
    }
  });

test("guide sdk: every program has a test", () => {
  const withPrograms = [...blocks].filter(([, programs]) => programs.length > 0);
  assert.deepEqual(
    withPrograms.map(([heading]) => heading),
    Object.keys(expectations),
  );
});

test("the built package: each error has the name of its class", async () => {
  const program = `import * as sdk from "@stoa/sdk"; import { WebhookError } from "@stoa/sdk/webhooks";
    const errors = Object.entries({ ...sdk, WebhookError }).filter(([, type]) => type.prototype instanceof Error);
    console.log(JSON.stringify(errors.map(([name, type]) => [name, new type({ message: "x" }).name])));`;
  await writeFile(join(folder.path, "names.mjs"), program);
  const { code, stdout, stderr } = await shell(`cd ${folder.path} && node names.mjs`, {});
  assert.equal(code, 0, stderr);
  const names = JSON.parse(stdout) as [string, string][];
  assert.ok(names.length > 14);
  for (const [className, errorName] of names) assert.equal(errorName, className);
});
