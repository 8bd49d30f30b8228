import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isFullSize } from "@stoa/service/test/full-size.ts";
import { type Market, openMarket } from "@stoa/service/test/market.ts";
import { storableText } from "@stoa/service/test/storable-text.ts";
import fc from "fast-check";
import { Stoa } from "../../sdk/src/index.ts";
import type { Cli } from "../src/cli.ts";
import { formatProductFile, inFileOrder } from "../src/project/product-file.ts";
import { pull } from "../src/project/pull.ts";
import { push } from "../src/project/push.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

/** Commands in this process, without their messages. */
async function openCli(): Promise<Cli> {
  const { key } = await market.createUser();
  const baseUrl = `${market.origin}/v1`;
  const stoa = new Stoa({ baseUrl, apiKey: key });
  const output = { report: () => {}, style: (_style: unknown, text: string) => text };
  const { signal } = new AbortController();
  return { output, signal, stoa: async () => stoa, settings: async () => ({ baseUrl }) } as unknown as Cli;
}

const line = fc.constantFrom(
  "Haiku",
  " spaced ",
  "עברית",
  "👩‍👩‍👧 emoji",
  "no",
  "1.0",
  "# x",
  "a: b",
  "---",
  "'",
  '"',
);
const product = fc.record(
  {
    title: line,
    price: fc.integer({ min: 100, max: 9_999 }).map((cents) => cents / 100),
    description: storableText,
    preview: storableText,
    tags: fc.array(line, { maxLength: 3 }),
    features: fc.array(line, { maxLength: 3 }),
    license: fc.constantFrom("MIT", "CC-BY-4.0", "no", "Ask: me # first"),
    samples: fc.array(
      fc.record(
        {
          input: fc.dictionary(fc.constantFrom("a", "b"), storableText, { noNullPrototype: true }),
          output: storableText.map((text) => `x${text}`),
          model: fc.constantFrom("gpt-5-mini", "1.0"),
        },
        { noNullPrototype: true },
      ),
      { maxLength: 2 },
    ),
    variables: fc.constantFrom(
      [{ name: "a", description: "x" }],
      [
        { name: "a", required: false, default: "no" },
        { name: "b", enum: ["1", "no"] },
      ],
    ),
    content: storableText.map((some) => some || "x"),
  },
  { requiredKeys: ["title", "price", "content"], noNullPrototype: true },
);

test("any product: after a push, pull changes no byte, and pulls into new folders are the same", async () => {
  const cli = await openCli();
  const root = await mkdtemp(join(tmpdir(), "stoa-round-trip-"));
  let number = 0;
  const property = fc.asyncProperty(product, async (fields) => {
    const folders = ["pushed", "first", "second"].map((name) => join(root, `${name}-${number}`));
    number++;
    const [pushed = "", first = "", second = ""] = folders;
    const file = await formatProductFile("prompt.md", inFileOrder(fields));
    await mkdir(pushed);
    await writeFile(join(pushed, "prompt.md"), file);
    const { id, content } = await push(cli, pushed, {});
    assert.equal(content, fields.content);
    assert.deepEqual((await pull(cli, pushed, undefined, {})).taken, []);
    assert.equal(await readFile(join(pushed, "prompt.md"), "utf8"), file);
    await pull(cli, first, id, {});
    await push(cli, first, {});
    await pull(cli, second, id, {});
    const [one, two] = await Promise.all(
      [first, second].map((folder) => readFile(join(folder, "prompt.md"), "utf8")),
    );
    assert.equal(one, two);
    assert.ok(two?.endsWith(`---\n\n${fields.content}\n`));
  });
  try {
    await fc.assert(property, { numRuns: isFullSize ? 60 : 4, seed: 20260615 });
  } finally {
    await rm(root, { recursive: true });
  }
});
