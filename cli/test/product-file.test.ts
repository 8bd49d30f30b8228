import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { readMarkdown } from "@stoa/service/catalog/import-export/markdown.ts";
import { isFullSize } from "@stoa/service/test/full-size.ts";
import { storableText } from "@stoa/service/test/storable-text.ts";
import fc from "fast-check";
import type { Fields } from "../src/project/product-fields.ts";
import {
  type FileName,
  formatProductFile,
  inFileOrder,
  parseProductFile,
  updateProductFile,
} from "../src/project/product-file.ts";

const plain = { noNullPrototype: true };
const variable = fc.record(
  {
    name: fc.constantFrom("topic", "no", "_1"),
    description: storableText,
    default: storableText,
    enum: fc.array(storableText),
  },
  { requiredKeys: ["name"], noNullPrototype: true },
);
const front = fc.record(
  {
    title: storableText,
    description: storableText,
    lang: fc.constantFrom("en", "no"),
    price: fc.double({ noNaN: true, noDefaultInfinity: true }).map((price) => price + 0),
    tags: fc.array(storableText, { maxLength: 3 }),
    models: fc.dictionary(fc.constantFrom("openai", "google"), storableText, plain),
    preview: storableText,
    variables: fc.array(variable, { maxLength: 3 }),
    images: fc.dictionary(fc.constantFrom("a.png", "null", "1"), storableText, plain),
  },
  { requiredKeys: ["title"], noNullPrototype: true },
);

const parse = (name: FileName, file: string) => parseProductFile(name, Buffer.from(file));
const withDefaults = (type: string, fields: Fields) => ({ ...fields, type, contentFormat: "text" });
const options = { numRuns: isFullSize ? 1_000 : 50, seed: 20260615 };

suite("the file of a product", () => {
  test("prompt.md, any texts: read as written, and written again byte for byte", async () => {
    const property = fc.asyncProperty(front, storableText, async (fields, content) => {
      const product = { ...fields, type: "PROMPT", content };
      const file = await formatProductFile("prompt.md", inFileOrder(product));
      const read = await parse("prompt.md", file);
      assert.deepEqual(read.fields, withDefaults("PROMPT", product));
      assert.equal(await formatProductFile("prompt.md", inFileOrder(read.fields)), file);
    });
    await fc.assert(property, options);
  });

  test("prompt.md, any texts: an import reads the same product", async () => {
    const property = fc.asyncProperty(front, storableText, async ({ images: _, ...fields }, content) => {
      const product = { ...fields, type: "PROMPT", content };
      const read = await readMarkdown(
        Buffer.from(await formatProductFile("prompt.md", inFileOrder(product))),
      );
      assert.ok("value" in read, JSON.stringify(read));
      assert.deepEqual(read.value, product);
    });
    await fc.assert(property, options);
  });

  test("workflow.yaml, any JSON: the definition keeps its value and order", async () => {
    const json = fc.dictionary(storableText, fc.jsonValue({ maxDepth: 3 }), plain);
    const property = fc.asyncProperty(front, json, async (fields, definition) => {
      const content = JSON.stringify(definition);
      const product = { ...fields, type: "WORKFLOW", content };
      const file = await formatProductFile("workflow.yaml", inFileOrder(product));
      const read = await parse("workflow.yaml", file);
      assert.equal(
        JSON.stringify(JSON.parse(String(read.fields["content"]))),
        JSON.stringify(JSON.parse(content)),
      );
      assert.equal(await formatProductFile("workflow.yaml", inFileOrder(read.fields)), file);
    });
    await fc.assert(property, options);
  });

  test("a change of some fields: they have the new values, comments and the rest stay", async () => {
    const file = "---\n# Ours\ntitle: Old # for now\nprice: 4.990\ntags: [a,  b]\n---\nWrite.\n";
    const read = await parse("prompt.md", file);
    const changed = await updateProductFile(read, { price: 5, lang: "en", tags: undefined });
    assert.equal(changed, "---\n# Ours\ntitle: Old # for now\nprice: 5\nlang: en\n---\n\nWrite.\n");
    const property = fc.asyncProperty(front, front, storableText, async (fields, changes, content) => {
      const product = { ...fields, type: "PROMPT", content: "x" };
      const before = await parse("prompt.md", await formatProductFile("prompt.md", inFileOrder(product)));
      const after = await parse("prompt.md", await updateProductFile(before, { ...changes, content }));
      assert.deepEqual(after.fields, { ...before.fields, ...changes, content });
    });
    await fc.assert(property, options);
  });

  test("Windows line ends and a byte order mark: the same product", async () => {
    const file = "---\ntitle: Haiku\nprice: 1\n---\n\none\ntwo\n";
    const windows = `\ufeff${file.replaceAll("\n", "\r\n")}`;
    assert.deepEqual((await parse("prompt.md", windows)).fields, (await parse("prompt.md", file)).fields);
  });

  for (const [what, file, message] of [
    ["no front matter", "# A heading\n", /^prompt\.md:1: the front matter is missing/],
    ["front matter without an end", "---\ntitle: x\n", /^prompt\.md:1: the front matter has no second line/],
    ["a list", "---\n- a\n---\n", /^prompt\.md:2: the front matter must be name: value lines/],
    ["broken YAML", "---\ntitle: x\ntags: [a\n---\n", /^prompt\.md:[34]: /],
    ["a key twice", "---\ntitle: x\ntitle: y\n---\n", /^prompt\.md:3: Map keys must be unique/],
    ["an unknown field", "---\ntitle: x\ncategroy: y\n---\n", /^prompt\.md:3: "categroy" is no field/],
    ["content above", "---\ncontent: x\n---\n", /^prompt\.md:2: "content" is no field/],
    ["another type", "---\ntype: WORKFLOW\n---\n", /^prompt\.md:2: type must be PROMPT/],
    ["aliases that grow", `---\na: &a [1]\nb: [${"*a,".repeat(200)}]\n---\n`, /^prompt\.md:\d: /],
  ] as const)
    test(`${what}: an error with its line`, async () => {
      await assert.rejects(parse("prompt.md", file), (error: Error & { fix?: string }) => {
        assert.match(error.message, message);
        assert.ok(error.fix, error.message);
        return true;
      });
    });

  test("a workflow's mistakes: found by their path", async () => {
    const file =
      "---\ntitle: x\ntags:\n  - a\n  - b\n---\nformat: workflow/1\nsteps:\n  - id: a\n  - id: b\n    needs:\n      - c\n";
    const { lineOf } = await parse("workflow.yaml", file);
    assert.deepEqual(
      ["tags[1]", "content.steps[1].needs[0]", "content.steps[1].vars", "content.result"].map(lineOf),
      [5, 12, 10, 7],
    );
    await assert.rejects(
      parse("workflow.yaml", "---\ntitle: x\n---\n\nsteps: [\n"),
      /^UsageError: workflow.yaml:[56]: |workflow.yaml:[56]: /,
    );
    await assert.rejects(
      parse("workflow.yaml", "---\ntitle: x\n---\n\n"),
      /workflow.yaml:\d: the workflow must be/,
    );
  });
});
