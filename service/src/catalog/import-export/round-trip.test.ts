import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { providers, toVisibleLine } from "@stoa/contract";
import fc from "fast-check";
import { createDraft, haiku } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { exportOf, JSONL, jsonLines, sendImport, ZIP, zipExportOf } from "../../../test/import-export.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { storableText } from "../../../test/storable-text.ts";
import { readMarkdown, toMarkdown } from "./markdown.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const workflow = {
  format: "workflow/1",
  input: { type: "object", properties: { topic: { type: "string", maxLength: 500 } } },
  steps: [
    {
      id: "outline",
      type: "prompt",
      provider: "openai",
      model: "gpt-5-mini",
      messages: [{ role: "user", content: "Outline {{topic}}" }],
      vars: { topic: "input.topic" },
    },
  ],
  result: "steps.outline.output",
};

/** Contents that an incorrect reader or writer would change. */
const contents = [
  "one line",
  "a\r\nb\r\n",
  "a\rb\r",
  "ends in two line ends\n\n",
  "\n\nbegins with two",
  "---\ntitle: not front matter\n---\n",
  "a\n---\nb\n---",
  "---",
  "  leading spaces\n\tand a tab  ",
  "\ufeffa byte order mark",
  "👩‍👩‍👧 עברית 日本語 e\u0301",
  "line\u2028paragraph\u2029next\u0085line",
  "# A heading\n\n```sh\necho '{{topic}}'\n```",
  "{{topic=a: b # c}} \\{{literal}}",
  "x".repeat(200_000),
  "日".repeat(200_000),
];

const line = (max: number) =>
  storableText.map((text) => toVisibleLine(text.slice(0, max).toWellFormed()) || "x");

const products = fc.record(
  {
    title: line(120),
    description: storableText,
    type: fc.constant("PROMPT"),
    category: fc.constantFrom("writing", "business"),
    price: fc.integer({ min: 1, max: 99_999 }).map((cents) => cents / 100),
    content: fc.oneof(
      fc.constantFrom(...contents),
      storableText.map((text) => text || "x"),
    ),
    preview: storableText,
    requirements: fc.array(line(500), { maxLength: 3 }),
    features: fc.array(line(500), { maxLength: 3 }),
    license: line(100),
    samples: fc.array(
      fc.record({
        input: fc.dictionary(fc.constantFrom("topic", "language"), storableText, { noNullPrototype: true }),
        output: storableText.map((text) => `x${text}`),
        model: fc.constantFrom("gpt-5-mini", "no"),
      }),
      { maxLength: 3 },
    ),
    tags: fc.array(line(40), { maxLength: 3 }),
    compatibility: fc.subarray([...providers], { maxLength: 3 }),
    changelog: storableText,
    version: fc.constantFrom("1.0.0", "0.1.0", "12.3.45"),
    lang: fc.constantFrom("en", "pt-BR"),
    models: fc.constantFrom({}, { openai: "gpt-5-mini", google: "yes" }),
  },
  { requiredKeys: ["title", "type", "price", "content"] },
);

const everywhere = ({ id: _, ...product }: Record<string, unknown>) => product;

async function shopOfOddities(): Promise<Client> {
  const seller = await market.createUser();
  const made = fc.sample(products, { seed: 20260615, numRuns: runs(120) });
  const special = [
    ...contents.map((content) => ({ ...haiku, content })),
    {
      ...haiku,
      type: "WORKFLOW",
      content: JSON.stringify(workflow, null, 2),
      samples: [
        { input: { topic: null, n: [1, -0.5, true] }, output: { "a b": "---\n", no: ["1", {}] }, model: "x" },
      ],
    },
    {
      ...haiku,
      contentFormat: "messages",
      content: '[{"role":"user",\n "content":"On {{topic}}\\n---\\n"}]',
    },
    {
      ...haiku,
      variables: [
        { name: "topic", description: "what: about\n", default: "" },
        { name: "language", enum: ["no", "1"] },
      ],
    },
    // Code, as the longest sample that is usual: many lines and commas, and deep results of workflows.
    {
      ...haiku,
      samples: Array.from({ length: 5 }, (_, at) => ({
        input: { topic: `${at}` },
        output: "f(a, b);\n".repeat(1_900),
        model: "x",
      })),
    },
    {
      ...haiku,
      type: "WORKFLOW",
      content: JSON.stringify(workflow),
      samples: [{ input: {}, output: JSON.parse(`${"[".repeat(32)}${"]".repeat(32)}`), model: "x" }],
    },
    { ...haiku, price: 500, currency: "JPY" },
    { ...haiku, price: 1.234, currency: "KWD" },
    { ...haiku, commissionBasisPoints: 250 },
  ];
  for (const draft of [...special, ...made]) {
    const reply = await seller.post("/v1/products", draft);
    assert.equal(reply.status, 201, `${reply.text.slice(0, 500)} ${JSON.stringify(draft).slice(0, 500)}`);
  }
  return seller;
}

suite("an export", () => {
  let seller: Client;
  let whole: Record<string, unknown>[];
  let zip: Uint8Array<ArrayBuffer>;
  before(async () => {
    seller = await shopOfOddities();
    whole = await exportOf(seller);
    zip = await zipExportOf(seller, market.origin);
  });

  test("imported into an empty shop as JSON Lines: the same products", async () => {
    const other = await market.createUser();
    const reply = await sendImport(other, (await seller.get("/v1/products/export")).text, { type: JSONL });
    assert.equal(reply.status, 200, reply.text.slice(0, 2_000));
    assert.deepEqual((await exportOf(other)).map(everywhere), whole.map(everywhere));
  });

  test("imported into an empty shop as Markdown: the same products", async () => {
    const other = await market.createUser();
    const reply = await sendImport(other, zip, { type: ZIP });
    assert.equal(reply.status, 200, reply.text.slice(0, 2_000));
    assert.equal(reply.body.data.created, whole.length);
    assert.deepEqual((await exportOf(other)).map(everywhere), whole.map(everywhere));
  });

  test("imported where it came from, in either format: changes nothing", async () => {
    const lines = await sendImport(seller, jsonLines(...whole));
    const files = await sendImport(seller, zip, { type: ZIP });
    for (const { body } of [lines, files]) {
      const { created, updated, unchanged } = body.data;
      assert.deepEqual([created, updated, unchanged], [0, 0, whole.length]);
    }
  });

  test("read and written by standard tools", async () => {
    const { default: yauzl } = await import("yauzl");
    const archive = await yauzl.fromBufferPromise(Buffer.from(zip), {
      lazyEntries: true,
      strictFileNames: true,
    });
    const names: string[] = [];
    for await (const { fileName } of archive.eachEntry()) names.push(fileName);
    assert.equal(new Set(names).size, whole.length, "no two of one name");
    for (const name of names) assert.match(name, /^[a-z0-9-]+-[a-z0-9]{8}\.md$/);
  });
});

test("any text in Markdown: unchanged after export and import", async () => {
  const front = fc.record({
    title: storableText,
    tags: fc.array(storableText, { maxLength: 3 }),
    price: fc.double({ noNaN: true, noDefaultInfinity: true }),
  });
  const property = fc.asyncProperty(front, storableText, async (fields, content) => {
    const read = await readMarkdown(Buffer.from(await toMarkdown({ ...fields, content })));
    assert.ok("value" in read, JSON.stringify(read));
    assert.deepEqual(read.value, { ...fields, content });
  });
  await fc.assert(property, { numRuns: runs(1_000), seed: 20260615 });
});

test("imported by another seller: no access to the products", async () => {
  const [seller, thief] = [await market.createUser(), await market.createUser()];
  const id = await createDraft(seller);
  const reply = await sendImport(thief, jsonLines({ ...haiku, id, title: "Stolen" }));
  assert.equal(reply.body.data.created, 1, "their id is a name like any other");
  assert.notEqual(reply.body.data.products[0].id, id);
  assert.equal((await seller.get(`/v1/products/${id}`)).body.data.title, haiku.title);
  assert.deepEqual(
    (await exportOf(thief)).map(({ title }) => title),
    ["Stolen"],
  );
});
