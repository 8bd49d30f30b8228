import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { providers } from "@stoa/contract";
import { createDraft, haiku, workflow } from "../../../test/factories.ts";
import { holdNotifications } from "../../../test/held-notifications.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";

let market: Market;
let author: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
});
after(() => market.close());

const create = (fields: Record<string, unknown>) => author.post("/v1/products", { ...haiku, ...fields });
const read = async (id: string) => (await author.get(`/v1/products/${id}`)).body.data;
const roleOf = async (id: string) =>
  (await market.query("select role from users where id = $1", [id])).rows[0].role;

/** Returns `field: reason` of each problem. */
async function problemsOf(fields: Record<string, unknown>): Promise<string[]> {
  const { errors } = assertError(await create(fields), 400, "INVALID_REQUEST");
  return errors.map(({ field, reason }: { field: string; reason: string }) => `${field}: ${reason}`);
}

async function assertRefused(field: string, fields: Record<string, unknown>): Promise<void> {
  const reply = await create(fields);
  assertError(reply, 400, "INVALID_REQUEST", field);
}

test("POST /products: a draft", async () => {
  const reply = await create({});
  assert.equal(reply.status, 201);
  assert.match(reply.body.data.id, /^prod_[0-9a-z]{26}$/);
  assert.equal(reply.body.data.status, "draft");
  assert.ok(reply.body.data.message);
});

test("POST /products, first product of a user: waits for the caches, which have its author's role", {
  timeout: 30_000,
}, async (t) => {
  const user = await market.createUser();
  const receive = holdNotifications(t, market);
  let isAnswered = false;
  const created = createDraft(user).then(() => {
    isAnswered = true;
  });
  const { pool } = market.service.ctx;
  await until("the product is stored", async () => {
    const { rows } = await pool.query("select from users where id = $1 and role = 'seller'", [user.userId]);
    return rows.length > 0;
  });
  // An answer that does not wait would arrive before this one.
  assert.equal((await user.get("/v1/products?limit=1")).status, 200);
  assert.equal(isAnswered, false);
  receive();
  await created;
});

test("POST /products of sellers and administrators: does not wait for the caches", {
  timeout: 30_000,
}, async (t) => {
  const seller = await market.createUser();
  await createDraft(seller);
  const admin = await market.createUser({ role: "admin" });
  holdNotifications(t, market);
  await createDraft(seller);
  await createDraft(admin);
});

test("every sent field: stored", async () => {
  const fields = {
    title: "Review my code",
    description: "A careful reader.",
    type: "PROMPT",
    category: "programming",
    price: 12.5,
    currency: "EUR",
    content: '[{"role":"system","content":"You review {{language}}."},{"role":"user","content":"{{code}}"}]',
    contentFormat: "messages",
    preview: "You review …",
    requirements: ["A diff"],
    features: ["Kind", "Thorough"],
    tags: ["review", "code"],
    compatibility: ["anthropic", "openai"],
    version: "2.1.0",
    changelog: "The second line.",
    variables: [
      { name: "language", required: true, enum: ["ts", "go"], description: "Which one" },
      { name: "code", required: true, maxLength: 5_000 },
    ],
    models: { openai: "gpt-5", anthropic: "claude-sonnet-5" },
  };
  const product = await read(await createDraft(author, fields));
  const { preview, ...same } = fields;
  assert.partialDeepStrictEqual(product, {
    ...same,
    contentPreview: preview,
    status: "draft",
    publishedAt: null,
  });
  assert.equal(product.createdAt, market.clock.now.toISOString());
  assert.equal(product.updatedAt, product.createdAt);
  assert.deepEqual(product.author, {
    id: product.author.id,
    name: "Author",
    verified: false,
    handle: null,
    avatar: null,
    bio: "",
  });
});

test("a missing field: its default", async () => {
  const { title, type, price, content } = haiku;
  const reply = await author.post("/v1/products", { title, type, price, content });
  assert.equal(reply.status, 201, reply.text);
  assert.partialDeepStrictEqual(await read(reply.body.data.id), {
    description: "",
    category: null,
    currency: "USD",
    contentFormat: "text",
    requirements: [],
    features: [],
    tags: [],
    compatibility: [],
    version: "1.0.0",
    changelog: "",
    models: {},
    files: [],
    images: [],
    refundDays: 14,
    commissionBasisPoints: 1_000,
    stats: { views: 0, purchases: 0, rating: 0, reviews: 0 },
    access: { owned: false, reason: "author", revealForfeitsInstantRefund: false },
  });
});

test("the first product: makes its author a seller; an admin stays an admin", async () => {
  const user = await market.createUser();
  assert.equal(await roleOf(user.userId), "user");
  await createDraft(user);
  assert.equal(await roleOf(user.userId), "seller");
  const admin = await market.createUser({ role: "admin" });
  await createDraft(admin);
  assert.equal(await roleOf(admin.userId), "admin");
});

test("a refused product: makes no seller", async () => {
  const user = await market.createUser();
  assertError(await user.post("/v1/products", { ...haiku, category: "nowhere" }), 400, "INVALID_REQUEST");
  assert.equal(await roleOf(user.userId), "user");
});

test("missing title, type, price and content: all named", async () => {
  const reply = await author.post("/v1/products", {});
  const { errors } = assertError(reply, 400, "INVALID_REQUEST");
  assert.deepEqual(
    errors.map(({ field }: { field: string }) => field),
    ["title", "type", "price", "content"],
  );
  assert.ok(errors.every(({ reason }: { reason: string }) => reason === "is required"));
});

test("an invalid field: named", async () => {
  const tooMany = (count: number) => Array.from({ length: count }, (_, at) => `t${at}`);
  await assertRefused("title", { title: "  " });
  await assertRefused("title", { title: "x".repeat(121) });
  await assertRefused("description", { description: "x".repeat(10_001) });
  await assertRefused("type", { type: "prompt" });
  await assertRefused("content", { content: "" });
  await assertRefused("content", { content: "x".repeat(200_001) });
  await assertRefused("contentFormat", { contentFormat: "markdown" });
  await assertRefused("tags", { tags: tooMany(21) });
  await assertRefused("tags[1]", { tags: ["fine", "x".repeat(41)] });
  await assertRefused("requirements[0]", { requirements: [""] });
  await assertRefused("version", { version: "1.0" });
  await assertRefused("version", { version: "1.0.0-beta" });
  await assertRefused("currency", { currency: "usd" });
  await assertRefused("price", { price: "4.99" });
  await assertRefused("variables[0].name", { variables: [{ name: "1st" }] });
  await assertRefused("status", { status: "published" });
});

test("several invalid fields: all named at once", async () => {
  const problems = await problemsOf({ title: "", price: -1, tags: "poetry" });
  assert.deepEqual(
    problems.map((problem) => problem.split(":")[0]),
    ["title", "price", "tags"],
  );
});

test("tags: stored in lower case, without duplicates", async () => {
  const product = await read(await createDraft(author, { tags: ["Poetry", " poetry ", "Japan"] }));
  assert.deepEqual(product.tags, ["poetry", "japan"]);
});

test("an unknown provider: refused with the known ones", async () => {
  const [problem] = await problemsOf({ compatibility: ["openai", "skynet"] });
  assert.match(problem!, /^compatibility\[1\]: /);
  for (const provider of providers) assert.ok(problem!.includes(provider), provider);
});

test("a default model of an unknown provider: refused", async () => {
  const [problem] = await problemsOf({ models: { skynet: "t-800" } });
  assert.match(problem!, /^models/);
});

test("an unknown category: refused", async () => {
  await assertRefused("category", { category: "no-such-thing" });
});

test("a price: at most the decimals of its currency", async () => {
  await assertRefused("price", { price: 4.5, currency: "JPY" });
  await assertRefused("price", { price: 4.999 });
  await assertRefused("price", { price: 1.2345, currency: "KWD" });
  for (const [price, currency] of [
    [4, "JPY"],
    [4.5, "USD"],
    [1.234, "KWD"],
  ]) {
    const product = await read(await createDraft(author, { price, currency }));
    assert.deepEqual([product.price, product.currency], [price, currency]);
  }
});

test("a price: from 1 to 99,999,999 minor units", async () => {
  const [zero] = await problemsOf({ price: 0 });
  assert.equal(zero, "price: price must be positive");
  await assertRefused("price", { price: -0.01 });
  for (const [most, above, currency] of [
    [999_999.99, 1_000_000, "USD"],
    [99_999_999, 100_000_000, "JPY"],
    [99_999.999, 100_000, "KWD"],
  ]) {
    assert.equal((await read(await createDraft(author, { price: most, currency }))).price, most);
    const [problem] = await problemsOf({ price: above, currency });
    assert.ok(problem!.includes(`at most ${most} ${currency}`), problem);
  }
  await assertRefused("price", { price: 1e300 });
});

test("a currency that the operator does not accept: refused", async () => {
  const [problem] = await problemsOf({ currency: "CHF" });
  assert.equal(problem, "currency: must be one of USD, EUR, JPY, KWD");
});

test("variables: derived from the template unless declared", async () => {
  const content = "{{ topic }} {{tone=warm and calm}} {{topic}} {{lang=}} \\{{not}} {{ 1no }}";
  const product = await read(await createDraft(author, { content }));
  assert.deepEqual(product.variables, [
    { name: "topic", required: true },
    { name: "tone", default: "warm and calm", required: false },
    { name: "lang", default: "", required: false },
  ]);
});

test("variables of messages: those of all messages together", async () => {
  const content = JSON.stringify([
    { role: "system", content: "Speak {{language}}." },
    { role: "user", content: "{{question}} in {{language}}" },
  ]);
  const product = await read(await createDraft(author, { content, contentFormat: "messages" }));
  assert.deepEqual(
    product.variables.map(({ name }: { name: string }) => name),
    ["language", "question"],
  );
});

suite("POST /products: tags of other template languages", () => {
  const warningsOf = async (fields: Record<string, unknown>) => {
    const reply = await create(fields);
    assert.equal(reply.status, 201, reply.text);
    return reply.body.data.warnings as { field: string; reason: string }[];
  };

  test("block syntax in a text: saved unchanged with a warning that names the tags and the fix", async () => {
    const content =
      "{{#if formal}}Dear{{else}}Hi{{/if}} {{name}}, {{> footer}} {{#if formal}}x{{/if}} {% if a %}";
    const [tags, orElse, ...others] = await warningsOf({ content });
    assert.deepEqual([tags?.field, orElse?.field, others], ["content", "content", []]);
    assert.match(
      tags!.reason,
      /^holds \{\{#if formal\}\}, \{\{\/if\}\}, \{\{> footer\}\} and 1 more, which is sent .* unchanged/,
    );
    assert.match(tags!.reason, /Remove it/);
    assert.match(orElse!.reason, /\{\{else\}\}, which is read as a variable/);
  });

  for (const tag of [
    "{{/each}}",
    "{{^a}}",
    "{{! note }}",
    "{{else if b}}",
    "{{ user.name }}",
    "{{ a | upper }}",
    "{{~#if a}}",
    "{{- if .a }}",
    "{%- endif -%}",
    "{# note #}",
    "{{{> a}}}",
  ])
    test(`${tag}: one warning`, async () => {
      const warnings = await warningsOf({ content: `On {{topic}} ${tag}` });
      assert.deepEqual(
        warnings.map(({ field, reason }) => [field, reason.includes(tag.replace("{{{> a}}}", "{{> a}}"))]),
        [["content", true]],
      );
    });

  for (const content of [
    haiku.content,
    "\\{{#if}} is literal",
    "{{{name}}}",
    '{"a":{"b":{}}} {{"a": 1}}',
    "{{a= #if }}",
    "50 % {x}",
  ])
    test(`${content}: no warning`, async () => {
      assert.deepEqual(await warningsOf({ content }), []);
    });

  test("in messages and workflow steps: the warning names the place", async () => {
    const messages = [
      { role: "system", content: "Be kind." },
      { role: "user", content: "{{#each list}}" },
    ];
    const asMessages = { contentFormat: "messages", content: JSON.stringify(messages) };
    const prompt = { type: "prompt", provider: "openai", messages, vars: {} };
    const steps = [
      { id: "one", ...prompt },
      { id: "all", type: "map", items: "[1]", do: prompt },
    ];
    const flow = { format: "workflow/1", input: { type: "object" }, steps, result: "1" };
    const fieldsOf = async (fields: Record<string, unknown>) =>
      (await warningsOf(fields)).map(({ field }) => field);
    assert.deepEqual(await fieldsOf(asMessages), ["content[1].content"]);
    assert.deepEqual(await fieldsOf({ type: "WORKFLOW", content: JSON.stringify(flow) }), [
      "content.steps[0].messages[1].content",
      "content.steps[1].do.messages[1].content",
    ]);
  });
});

test("declared variables: must contain each used name once", async () => {
  const content = "{{a}} {{b}} {{c}}";
  assert.deepEqual(await problemsOf({ content, variables: [{ name: "b" }] }), [
    "variables: does not declare a, which the content uses",
    "variables: does not declare c, which the content uses",
  ]);
  await assertRefused("variables[1].name", { content: "{{a}}", variables: [{ name: "a" }, { name: "a" }] });
});

test("invalid messages: refused with the place of the mistake", async () => {
  const asMessages = (messages: unknown) => ({
    contentFormat: "messages",
    content: JSON.stringify(messages),
  });
  const user = { role: "user", content: "Hello" };
  await assertRefused("content", { contentFormat: "messages", content: "Hello" });
  await assertRefused("content", asMessages({ role: "user", content: "x" }));
  await assertRefused("content", asMessages([]));
  await assertRefused("content[1].role", asMessages([user, { role: "robot", content: "x" }]));
  await assertRefused("content[1].role", asMessages([user, { role: "system", content: "late" }]));
  await assertRefused("content[1].content", asMessages([user, { role: "assistant" }]));
  await assertRefused("content[0].name", asMessages([{ ...user, name: "Ann" }]));
  await assertRefused("content[2]", asMessages([user, user, "text"]));
});

const asWorkflow = (changes: Record<string, unknown> = {}) => ({
  type: "WORKFLOW",
  content: JSON.stringify({ ...workflow, ...changes }),
  compatibility: [],
});

test("a workflow: stored unchanged, with public inputs", async () => {
  const fields = asWorkflow();
  const product = await read(await createDraft(author, fields));
  assert.deepEqual([product.type, product.content], ["WORKFLOW", fields.content]);
  assert.deepEqual(product.variables, [
    { name: "topic", required: true, maxLength: 500 },
    { name: "parts", required: false, description: "How many (an integer)", default: "3" },
  ]);
});

test("a workflow without compatibility: compatible with what its steps use", async () => {
  const derived = await read(await createDraft(author, asWorkflow()));
  assert.deepEqual(derived.compatibility, ["openai", "anthropic"]);
  const declared = await read(await createDraft(author, { ...asWorkflow(), compatibility: ["mistral"] }));
  assert.deepEqual(declared.compatibility, ["mistral"]);
});

test("all mistakes of a workflow: reported at once with their places", async () => {
  const steps = [
    { id: "a", type: "transform", needs: ["b"], value: "steps.c.output" },
    { id: "b", type: "delay", needs: ["a"], seconds: 0 },
  ];
  assert.deepEqual(await problemsOf(asWorkflow({ steps, result: "steps.a.output", colour: "red" })), [
    "content.steps[0].needs: is circular: a → b → a",
    "content.steps[0].value: uses steps.c, but no step has this id",
    "content.steps[1].seconds: must be at least 1",
    "content.colour: is not known here",
  ]);
  await assertRefused("content", { type: "WORKFLOW", content: "Step one: …" });
  await assertRefused("content", { type: "WORKFLOW", content: "[]" });
  await assertRefused("content.format", { type: "WORKFLOW", content: '{"format":"workflow/2"}' });
});

test("declared variables of a workflow: its inputs", async () => {
  const topic = { name: "topic", description: "Anything", required: true };
  const parts = { name: "parts", required: false };
  const product = await read(await createDraft(author, { ...asWorkflow(), variables: [topic, parts] }));
  assert.deepEqual(product.variables, [topic, parts]);
  assert.deepEqual(await problemsOf({ ...asWorkflow(), variables: [topic, { name: "tone" }] }), [
    "variables: does not declare parts, which the content uses",
    "variables[1].name: tone is no input of the workflow",
  ]);
  const open = asWorkflow({ input: { type: "object" } });
  assert.deepEqual((await read(await createDraft(author, { ...open, variables: [topic] }))).variables, [
    topic,
  ]);
});

test("an API key without write permission: refused", async () => {
  const reader = await market.createUser({ permissions: ["products:read"] });
  const details = assertError(await reader.post("/v1/products", haiku), 403, "UNAUTHORIZED");
  assert.equal(details.required, "products:write");
});
