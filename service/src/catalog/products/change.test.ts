import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, suite, test } from "node:test";
import { buyProduct, createDraft, createProduct, workflow } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { toUuid } from "../../core/ids.ts";

let market: Market;
let author: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
});
after(() => market.close());

type Change = Record<string, unknown>;

const read = async (id: string) => (await author.get(`/v1/products/${id}`)).body.data;
const sha256 = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

/** Changes the product a second later and returns the author's detail. */
async function change(id: string, fields: Change) {
  market.clock.forward(1_000);
  const reply = await author.patch(`/v1/products/${id}`, fields);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

async function changesOf(id: string): Promise<Record<string, { old: unknown; new: unknown }>[]> {
  const { body } = await author.get("/v1/events?type=product.updated&limit=100");
  return body.data
    .filter((event: { data: { product: { id: string } } }) => event.data.product.id === id)
    .map((event: { data: { product: { changes: unknown } } }) => event.data.product.changes)
    .reverse();
}

async function versionsOf(id: string): Promise<unknown[]> {
  const { rows } = await market.query(
    "select version, content, changelog from product_versions where product_id = $1 order by numbers",
    [toUuid("prod", id)],
  );
  return rows;
}

async function assertRefused(id: string, status: 400 | 422, field: string, fields: Change): Promise<void> {
  const before = await read(id);
  const reply = await author.patch(`/v1/products/${id}`, fields);
  assertError(reply, status, status === 400 ? "INVALID_REQUEST" : "VALIDATION_ERROR", field);
  assert.deepEqual(await read(id), before, "a refused change changes nothing");
}

test("PUT /products/:id/draft: stored as it is, never over what the client has not seen, and not published", async () => {
  const id = await createProduct(author, { title: "On sale" });
  const path = `/v1/products/${id}/draft`;
  const none = await author.get(path);
  assert.deepEqual(none.body.data, { changes: null, savedAt: null });
  const seen = { "if-match": none.headers.get("etag") ?? "" };
  const changes = { title: "Later", hostile: { text: "</script> 👩‍👩‍👧", deep: [{ a: null }] } };
  const saves = await Promise.all(
    [changes, { title: "Other" }].map((one) => author.put(path, { changes: one }, seen)),
  );
  assert.deepEqual(saves.map(({ status }) => status).sort(), [200, 412]);
  market.clock.forward(1_000);
  const saved = await author.put(path, { changes });
  assert.deepEqual(saved.body.data.changes, changes);
  const again = await author.get(path);
  assert.deepEqual(again.body.data, saved.body.data);
  assert.equal(again.headers.get("etag"), saved.headers.get("etag"));
  assert.equal((await read(id)).title, "On sale");
  const buyer = await market.createUser();
  assertError(await buyer.get(path), 403, "UNAUTHORIZED");
  assertError(await buyer.put(path, { changes: {} }), 403, "UNAUTHORIZED");
  assertError(await author.put(path, { changes: [] }), 400, "INVALID_REQUEST", "changes");
  assert.equal((await author.put(path, { changes: null })).body.data.changes, null);
  assert.equal((await author.delete(`/v1/products/${id}`)).status, 200);
  for (const reply of [await author.get(path), await author.put(path, { changes })])
    assertError(reply, 404, "PRODUCT_NOT_FOUND");
});

test("PATCH /products/:id: changes only the sent fields, returns the author's detail", async () => {
  const id = await createDraft(author);
  const before = await read(id);
  const { warnings, ...answer } = await change(id, {
    title: "Haiku, again",
    price: 6.5,
    tags: ["poetry", "japan"],
  });
  assert.deepEqual(warnings, []);
  assert.deepEqual(answer, {
    ...before,
    title: "Haiku, again",
    price: 6.5,
    totalPrice: 6.5,
    tags: ["poetry", "japan"],
    updatedAt: market.clock.now.toISOString(),
  });
  assert.deepEqual(await read(id), answer);
});

test("PATCH /products/:id: content with {{#if}} warns as long as the content has it", async () => {
  const id = await createDraft(author);
  const fieldsOf = (answer: { warnings: { field: string }[] }) => answer.warnings.map(({ field }) => field);
  assert.deepEqual(fieldsOf(await change(id, { content: "{{#if a}}x{{/if}}" })), ["content"]);
  assert.deepEqual(fieldsOf(await change(id, { title: "Another" })), ["content"]);
  assert.deepEqual(fieldsOf(await change(id, { content: "{{a}}" })), []);
});

test("a change: its event has the old and the new value of each field", async () => {
  const id = await createDraft(author, { content: "One {{x}}" });
  await change(id, { price: 10, description: "New.", category: "programming" });
  await change(id, { content: "Two {{y}}" });
  const [first, second] = await changesOf(id);
  assert.deepEqual(first, {
    price: { old: 4.99, new: 10 },
    description: { old: "Three lines on the topic that you name.", new: "New." },
    category: { old: "writing", new: "programming" },
  });
  assert.deepEqual(second, {
    content: { old: sha256("One {{x}}"), new: sha256("Two {{y}}") },
    variables: { old: [{ name: "x", required: true }], new: [{ name: "y", required: true }] },
  });
});

test("a change of a long text: its event has the digest", async () => {
  const [old, changed] = ["o".repeat(10_000), "n".repeat(10_000)];
  const id = await createDraft(author, { description: old });
  await change(id, { description: changed, requirements: Array(50).fill("r".repeat(500)) });
  const [changes] = await changesOf(id);
  assert.deepEqual(changes!["description"], {
    old: sha256(JSON.stringify(old)),
    new: sha256(JSON.stringify(changed)),
  });
  assert.deepEqual(changes!["requirements"]!.old, []);
  assert.match(String(changes!["requirements"]!.new), /^sha256:[0-9a-f]{64}$/);
});

test("a change without effect: the same updatedAt, no event", async () => {
  const models = { openai: "gpt-5", anthropic: "claude-sonnet-5" };
  const variables = [
    { name: "topic", description: "What it is about", required: true, maxLength: 80 },
    { name: "language", default: "English", required: false },
  ];
  for (const id of [
    await createDraft(author, { models, variables }),
    await createProduct(author, { models, variables }),
  ]) {
    const product = await read(id);
    await change(id, {});
    const { title, description, category, price, currency, content, contentFormat, version } = product;
    await change(id, { title, description, category, price, currency, content, contentFormat, version });
    await change(id, {
      changelog: product.changelog,
      tags: product.tags,
      compatibility: product.compatibility,
    });
    await change(id, { models: { anthropic: "claude-sonnet-5", openai: "gpt-5" } });
    await change(id, { variables });
    assert.deepEqual(await read(id), product);
    assert.deepEqual(await changesOf(id), []);
  }
});

test("derived variables, new content: derived again", async () => {
  const id = await createDraft(author, { content: "{{topic}} in {{language=English}}" });
  const { variables } = await change(id, { content: "{{theme}} in {{language=French}}" });
  assert.deepEqual(variables, [
    { name: "theme", required: true },
    { name: "language", default: "French", required: false },
  ]);
});

test("declared variables, new content with another one: refused", async () => {
  const declared = [{ name: "topic", description: "What it is about", required: true }];
  const id = await createDraft(author, { content: "{{topic}}", variables: declared });
  assert.deepEqual((await change(id, { content: "More on {{topic}}" })).variables, declared);
  await assertRefused(id, 400, "variables", { content: "{{theme}}" });
});

test("a draft: its version can be changed, also to a lower one", async () => {
  const id = await createDraft(author, { version: "2.0.0" });
  assert.equal((await change(id, { content: "Another {{x}}" })).version, "2.0.0");
  const changed = await change(id, { version: "1.5.0", changelog: "First." });
  assert.deepEqual([changed.version, changed.changelog], ["1.5.0", "First."]);
  assert.deepEqual(await versionsOf(id), [
    { version: "1.5.0", content: "Another {{x}}", changelog: "First." },
  ]);
});

test("published, new content: a new minor version, the old one stays", async () => {
  const id = await createProduct(author, { content: "Old {{x}}", changelog: "First." });
  const changed = await change(id, { content: "New {{x}}" });
  assert.deepEqual([changed.version, changed.changelog], ["1.1.0", ""]);
  const noted = await change(id, { content: "Newer {{x}}", changelog: "Better." });
  assert.deepEqual([noted.version, noted.changelog], ["1.2.0", "Better."]);
  assert.deepEqual(await versionsOf(id), [
    { version: "1.0.0", content: "Old {{x}}", changelog: "First." },
    { version: "1.1.0", content: "New {{x}}", changelog: "" },
    { version: "1.2.0", content: "Newer {{x}}", changelog: "Better." },
  ]);
});

test("a given version: must be greater than the current one", async () => {
  const id = await createProduct(author, { version: "1.9.0", content: "Nine {{x}}" });
  assert.equal((await change(id, { version: "1.10.0", content: "Ten {{x}}" })).version, "1.10.0");
  assert.equal((await change(id, { version: "2.0.0" })).version, "2.0.0");
  await assertRefused(id, 422, "version", { version: "1.99.99", content: "Back {{x}}" });
  await assertRefused(id, 422, "version", { version: "2.0.0", content: "Same {{x}}" });
  await assertRefused(id, 422, "version", { version: "0.1.0" });
});

test("a changelog: only with a new version, so published ones never change", async () => {
  const id = await createProduct(author, { changelog: "First." });
  await assertRefused(id, 422, "changelog", { changelog: "Rewritten." });
  await assertRefused(id, 422, "changelog", { changelog: "Rewritten.", version: "1.0.0" });
  assert.equal((await change(id, { version: "1.0.1", changelog: "Said better." })).changelog, "Said better.");
});

suite("PATCH /products/:id: a new version of the same major line accepts the old inputs", () => {
  const topic = { name: "topic", required: true };
  const tone = { name: "tone", required: false, enum: ["warm", "dry"], maxLength: 20 };
  const declared = { content: "{{topic}} {{tone}}", variables: [topic, tone] };
  const narrower: [string, string, Change][] = [
    ["a new required variable", "variables.mood", { content: "{{topic}} {{tone}} {{mood}}" }],
    ["a required variable that was optional", "variables.tone", { variables: [topic, { name: "tone" }] }],
    ["a removed variable", "variables.tone", { content: "{{topic}}", variables: [topic] }],
    ["fewer values", "variables.tone", { variables: [topic, { ...tone, enum: ["warm"] }] }],
    ["values where there were none", "variables.topic", { variables: [{ ...topic, enum: ["rain"] }, tone] }],
    ["a shorter value", "variables.tone", { variables: [topic, { ...tone, maxLength: 19 }] }],
    ["a shorter value where any was", "variables.topic", { variables: [{ ...topic, maxLength: 9 }, tone] }],
  ];
  for (const [name, field, fields] of narrower) {
    test(`${name}: refused in a minor version, accepted in a major one`, async () => {
      const content = "mood" in fields ? "{{topic}} {{tone}}" : declared.content;
      const isDerived = field === "variables.mood";
      const id = await createProduct(author, isDerived ? { content } : declared);
      await assertRefused(id, 422, field, fields);
      await assertRefused(id, 422, field, { ...fields, version: "1.9.0" });
      assert.equal((await change(id, { ...fields, version: "2.0.0" })).version, "2.0.0");
    });
  }

  test("a variable with a default, more values, longer ones: accepted in a minor version", async () => {
    const id = await createProduct(author, declared);
    const wider = { name: "tone", required: false, enum: ["warm", "dry", "odd"], maxLength: 30 };
    const content = "{{topic}} {{tone}} {{mood}}";
    const mood = { name: "mood", default: "calm" };
    assert.equal((await change(id, { content, variables: [topic, wider, mood] })).version, "1.1.0");
  });

  test("inputs of a workflow: a new type, and a removed input of a closed schema, need a major version", async () => {
    const withInput = (input: object) => ({ content: JSON.stringify({ ...workflow, input }) });
    const { input } = workflow;
    const id = await createProduct(author, { type: "WORKFLOW", ...withInput(input) });
    const { topic, parts } = input.properties;
    const texts = { ...parts, type: "string", default: "3" };
    await assertRefused(
      id,
      422,
      "variables.parts",
      withInput({ ...input, properties: { topic, parts: texts } }),
    );
    const numbers = { ...parts, type: "number" };
    await change(id, withInput({ ...input, properties: { topic, parts: numbers } }));
    const closed = { type: "object", properties: { topic, parts: numbers, extra: { type: "string" } } };
    await change(id, withInput({ ...closed, required: ["topic"], additionalProperties: false }));
    const { extra: _, ...rest } = closed.properties;
    const removed = { ...closed, properties: rest, required: ["topic"], additionalProperties: false };
    await assertRefused(id, 422, "variables.extra", withInput(removed));
  });

  test("a buyer's run of the newest minor version: accepts the inputs of the bought version", async () => {
    const id = await createProduct(author, { content: "{{topic}}" });
    const buyer = await market.createUser();
    await buyProduct(buyer, id);
    await assertRefused(id, 422, "variables.tone", { content: "{{topic}} in a {{tone}} tone" });
    await change(id, { content: "{{topic}} in a {{tone=warm}} tone" });
    const run = { productId: id, apiKeyId: "sandbox", variables: { topic: "rain" } };
    assert.equal((await buyer.post("/v1/ai/execute", run)).status, 200);
  });
});

test("an unpublished product: as immutable as a published one", async () => {
  const id = await createProduct(author, { content: "One {{x}}" });
  await author.post(`/v1/products/${id}/unpublish`);
  assert.equal((await change(id, { content: "Other {{x}}" })).version, "1.1.0");
});

test("the currency: changes until the first publish only", async () => {
  const id = await createDraft(author);
  assert.equal((await change(id, { currency: "EUR" })).currency, "EUR");
  await assertRefused(id, 400, "price", { currency: "JPY" });
  assert.equal((await change(id, { currency: "JPY", price: 500 })).price, 500);
  await author.post(`/v1/products/${id}/publish`);
  await assertRefused(id, 422, "currency", { currency: "USD" });
  await author.post(`/v1/products/${id}/unpublish`);
  await assertRefused(id, 422, "currency", { currency: "USD" });
});

test("a changed price: the rules of a new one apply", async () => {
  const id = await createDraft(author, { currency: "JPY", price: 400 });
  await assertRefused(id, 400, "price", { price: 4.5 });
  await assertRefused(id, 400, "price", { price: 0 });
  await assertRefused(id, 400, "price", { price: 100_000_000 });
});

test("a published product: cannot lose what the checklist requires", async () => {
  const id = await createProduct(author);
  await assertRefused(id, 422, "description", { description: "" });
  await assertRefused(id, 422, "compatibility", { compatibility: [] });
  await assertRefused(id, 422, "content", { content: "  " });
  await author.post(`/v1/products/${id}/unpublish`);
  await change(id, { description: "", compatibility: [] });
});

test("a workflow: stays runnable, and its inputs follow the definition", async () => {
  const content = JSON.stringify(workflow);
  const id = await createProduct(author, { type: "WORKFLOW", content });
  const without = { ...workflow, steps: workflow.steps.slice(1) };
  await assertRefused(id, 400, "content.steps[0].needs", { content: JSON.stringify(without) });
  await assertRefused(id, 422, "compatibility", { content: content.replace("openai", "mistral") });
  const more = { ...workflow.input.properties, tone: { type: "string" } };
  const next = { ...workflow, input: { ...workflow.input, properties: more } };
  const product = await change(id, { content: JSON.stringify(next) });
  assert.equal(product.version, "1.1.0");
  assert.deepEqual(
    product.variables.map(({ name }: { name: string }) => name),
    ["topic", "parts", "tone"],
  );
});

test("PATCH /products/:id: a draft that was never published, its type changes: the content is checked again", async () => {
  const id = await createDraft(author, { variables: undefined });
  await assertRefused(id, 400, "content", { type: "WORKFLOW" });
  const content = JSON.stringify(workflow);
  const changed = await change(id, { type: "WORKFLOW", content });
  assert.deepEqual([changed.type, changed.content], ["WORKFLOW", content]);
  assert.deepEqual(
    changed.variables.map(({ name }: { name: string }) => name),
    ["topic", "parts"],
  );
  assert.deepEqual((await changesOf(id)).at(-1)!["type"], { old: "PROMPT", new: "WORKFLOW" });
  const listed = await author.get("/v1/products?author=me&type=workflow&limit=100");
  assert.ok(
    listed.body.data.some((card: { id: string; type: string }) => card.id === id && card.type === "WORKFLOW"),
  );
  await change(id, { type: "PROMPT", content: "Write about {{topic}}." });
  assert.equal((await author.post(`/v1/products/${id}/publish`)).status, 200);
  await assertRefused(id, 422, "type", { type: "WORKFLOW", content });
  await author.post(`/v1/products/${id}/unpublish`);
  await assertRefused(id, 422, "type", { type: "WORKFLOW", content });
});

test("the type of a published product: accepted when unchanged, and stays", async () => {
  const id = await createProduct(author);
  const { updatedAt } = (await author.get(`/v1/products/${id}`)).body.data;
  const same = await author.patch(`/v1/products/${id}`, { type: "PROMPT" });
  assert.deepEqual([same.status, same.body.data.updatedAt], [200, updatedAt]);
  await assertRefused(id, 422, "type", { type: "WORKFLOW" });
  await assertRefused(id, 400, "type", { type: "PICTURE" });
});

test("PATCH with status: refused", async () => {
  const id = await createDraft(author);
  await assertRefused(id, 400, "status", { status: "published" });
  await assertRefused(id, 400, "title", { title: null });
  await assertRefused(id, 400, "category", { category: "nowhere" });
});

test("an outdated ETag: refused; the current one: applied", async () => {
  const id = await createDraft(author);
  const { headers } = await author.get(`/v1/products/${id}`);
  const etag = headers.get("etag")!;
  const first = await author.patch(`/v1/products/${id}`, { title: "One" }, { "if-match": etag });
  assert.equal(first.status, 200);
  assertError(
    await author.patch(`/v1/products/${id}`, { title: "Two" }, { "if-match": etag }),
    412,
    "PRECONDITION_FAILED",
  );
  const next = first.headers.get("etag")!;
  assert.equal(
    (await author.patch(`/v1/products/${id}`, { title: "Two" }, { "if-match": next })).status,
    200,
  );
  assert.equal(
    (await author.patch(`/v1/products/${id}`, { title: "Three" }, { "if-match": "*" })).status,
    200,
  );
});

test("parallel changes of different fields of a draft: all apply", async () => {
  const id = await createDraft(author);
  const changes = {
    content: "Fresh {{x}}",
    title: "Fresh",
    tags: ["fresh"],
    price: 7,
    preview: "F",
    changelog: "F.",
  };
  await Promise.all(Object.entries(changes).map(([field, value]) => change(id, { [field]: value })));
  const { preview, ...same } = changes;
  assert.partialDeepStrictEqual(await read(id), { ...same, contentPreview: preview });
});

test("parallel changes of a published product: none is lost", async () => {
  const id = await createProduct(author, { content: "Take {{x}}" });
  await Promise.all(Array.from({ length: 8 }, (_, at) => change(id, { content: `Take ${at} {{x}}` })));
  assert.equal((await read(id)).version, "1.8.0");
  const events = await changesOf(id);
  assert.equal(events.length, 8);
  for (const [at, { content }] of events.entries()) {
    if (at > 0)
      assert.deepEqual(content!.old, events[at - 1]!["content"]!.new, "each starts where one ended");
  }
});

test("parallel changes by strangers: refused without waiting for a lock", async () => {
  const draft = await createDraft(author);
  const forSale = await createProduct(author);
  const stranger = await market.createUser();
  const tries = await Promise.all(
    Array.from({ length: 12 }, () => [
      stranger.patch(`/v1/products/${forSale}`, { title: "Mine" }),
      stranger.patch(`/v1/products/${draft}`, { title: "Mine" }),
    ]).flat(),
  );
  for (const [at, reply] of tries.entries()) {
    if (at % 2 === 0) assertError(reply, 403, "UNAUTHORIZED");
    else assertError(reply, 404, "PRODUCT_NOT_FOUND");
  }
});

test("a buyer: reads the newest version of the bought major line", async () => {
  const id = await createProduct(author, { content: "One {{x}}" });
  const buyer = await market.createUser();
  await buyProduct(buyer, id);
  const seen = async () => {
    const { content, version } = (await buyer.get(`/v1/products/${id}`)).body.data;
    return `${version} ${content}`;
  };
  await change(id, { content: "Two {{x}}" });
  assert.equal(await seen(), "1.1.0 Two {{x}}");
  await change(id, { content: "Three {{x}}", version: "2.0.0" });
  assert.equal(await seen(), "1.1.0 Two {{x}}");
});
