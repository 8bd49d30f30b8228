import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { haikuCases, storeTestSet } from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { createWorkflow } from "../../../test/workflows.ts";
import { canonicalJson } from "../../core/canonical-json.ts";
import { digestOf } from "../../core/digest.ts";

let market: Market;
let author: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser({ name: "Author" });
  buyer = await market.createUser();
});
after(() => market.close());

const testSetOf = async (who: Client, productId: string) => {
  const reply = await who.get(`/v1/products/${productId}/test-set`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
};

test("PUT and GET /test-set: the author reads all of it, a buyer the titles of hidden cases; equal cases are stored once", async () => {
  const productId = await createProduct(author);
  await buyProduct(buyer, productId);
  assert.deepEqual(await testSetOf(buyer, productId), {
    ...{ version: null, hash: null, visibleCases: 0, hiddenCases: 0, cases: [], createdAt: null },
  });
  const stored = await storeTestSet(author, productId);
  const whole = haikuCases.map((one) => ({ isHidden: false, ...one }));
  assert.deepEqual(stored.cases, whole);
  assert.match(stored.hash, /^[0-9a-f]{64}$/);
  assert.notEqual(
    stored.hash,
    digestOf(canonicalJson(whole)).toString("hex"),
    "a guess of the hidden case cannot be tested",
  );
  assert.equal(stored.version, "1.0.0");
  for (const who of [buyer, await market.createUser({ role: "seller" })]) {
    const seen = await testSetOf(who, productId);
    assert.deepEqual([seen.visibleCases, seen.hiddenCases, seen.hash], [2, 1, stored.hash]);
    assert.deepEqual(seen.cases, [
      whole[0],
      { title: "Names the topic", isHidden: true, input: null, assert: null },
      whole[2],
    ]);
    assert.doesNotMatch(JSON.stringify(seen), /snow/i);
  }
  await storeTestSet(author, productId);
  const other = await storeTestSet(author, productId, haikuCases.slice(0, 1));
  assert.notEqual(other.hash, stored.hash);
  const { rowCount } = await market.query(
    "select from test_sets t join products p on p.id = t.product_id where p.author_id = $1",
    [author.userId],
  );
  assert.equal(rowCount, 2);
  assert.equal((await storeTestSet(author, productId)).hash, stored.hash, "equal cases have equal hashes");
  const ofAnother = await storeTestSet(author, await createProduct(author));
  assert.notEqual(ofAnother.hash, stored.hash, "another product has another salt");
  assert.deepEqual((await storeTestSet(author, productId, [])).cases, []);
  assert.equal((await testSetOf(author, productId)).hash, null);
});

test("a test set that cannot work: 422 names each place and the fix, and nothing is stored", async () => {
  const productId = await createDraft(author);
  const put = (cases: unknown, client = author) =>
    client.put(`/v1/products/${productId}/test-set`, { cases });
  const [good] = haikuCases;
  const reply = await put([
    good,
    { title: "No such variable", input: { topic: "a", colour: "red" }, assert: good!.assert },
    {
      title: "Wrong assertions",
      input: { topic: "a" },
      assert: [
        { type: "javascript", value: "1" },
        { type: "contains", value: "a", weight: 0 },
        { type: "regex", value: "(" },
      ],
    },
  ]);
  const { errors } = assertError(reply, 422, "VALIDATION_ERROR") as { errors: { field: string }[] };
  assert.deepEqual(errors.map(({ field }) => field).sort(), [
    "cases[1].input.colour",
    "cases[2].assert[0].type",
    "cases[2].assert[1].weight",
    "cases[2].assert[2].value",
  ]);
  assertError(await put([{ ...good, assert: [] }]), 400, "INVALID_REQUEST", "cases[0].assert");
  assertError(await put([{ ...good, extra: 1 }]), 400, "INVALID_REQUEST", "cases[0].extra");
  assertError(await put(Array(201).fill(good)), 400, "INVALID_REQUEST", "cases");
  assertError(await put([good], buyer), 404, "PRODUCT_NOT_FOUND");
  const published = await createProduct(author);
  assertError(await buyer.put(`/v1/products/${published}/test-set`, { cases: [good] }), 403, "UNAUTHORIZED");
  assert.equal((await testSetOf(author, productId)).hash, null);
});

test("a workflow's cases: fit its input schema", async () => {
  const input = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  const productId = await createWorkflow(author, {
    input,
    steps: [{ id: "a", type: "transform", value: "input.n" }],
  });
  const put = (n: unknown) =>
    author.put(`/v1/products/${productId}/test-set`, {
      cases: [{ title: "A number", input: { n }, assert: [{ type: "equals", value: "3" }] }],
    });
  assertError(await put("three"), 422, "VALIDATION_ERROR", "cases[0].input.n");
  assert.equal((await put(3)).status, 200);
});

const yaml = `tests:
  - description: Names the topic
    vars: { topic: rain }
    assert:
      - { type: icontains, value: rain }
  - description: Runs code
    vars: { topic: rain }
    assert:
      - { type: javascript, value: "output.length > 3" }
  - description: Unknown variable
    vars: { colour: red }
    assert:
      - { type: contains, value: red }
`;

test("import: takes what it can and names the rest by line; export: each format gives the same test set again", async () => {
  const productId = await createDraft(author);
  const path = `/v1/products/${productId}/test-set`;
  const importFile = (body: object, who = author) => who.post(`${path}/import`, body);
  const dry = await importFile({ format: "promptfoo-yaml", content: yaml, dryRun: true });
  assert.equal(dry.status, 200, dry.text);
  assert.equal((await testSetOf(author, productId)).hash, null, "a dry run writes nothing");
  const { data } = (await importFile({ format: "promptfoo-yaml", content: yaml })).body;
  assert.deepEqual({ ...data, dryRun: true }, dry.body.data);
  assert.equal(data.imported, 1);
  assert.ok(
    data.problems.some(
      ({ line, reason }: { line: number; reason: string }) => line === 9 && /javascript/.test(reason),
    ),
  );
  assert.ok(data.problems.some(({ path }: { path: string }) => path.includes("input.topic")));
  const stored = await testSetOf(author, productId);
  assert.deepEqual(
    stored.cases.map(({ title }: { title: string }) => title),
    ["Names the topic"],
  );
  for (const format of ["promptfoo-yaml", "promptfoo-csv"]) {
    const file = await author.get(`${path}/export?format=${format}`);
    assert.equal(file.status, 200, file.text);
    await storeTestSet(author, productId);
    assert.equal((await importFile({ format, content: file.text })).body.data.imported, 1);
    assert.equal((await testSetOf(author, productId)).hash, stored.hash, format);
  }
  assertError(await author.get(`${path}/export?format=agent-skills`), 422, "VALIDATION_ERROR", "format");
  const levels = Array.from({ length: 20 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n}, `.repeat(9)}]`);
  const hostile = [
    "a: &a [*a]",
    "tests: &t [{vars: {topic: a}, assert: &s [{type: assert-set, assert: *s}]}, *t]",
    "{",
    "tests: []",
    `x: &x "lol"\n${"y: [*x, *x]\n".repeat(500)}`,
    `a0: &a0 [lol]\n${levels.join("\n")}\ntests: *a20`,
    "tests:\n  - vars: {topic: a}\n    assert:\n      - {type: assert-set, threshold: 0, assert: [{type: contains, value: a}]}",
    "[".repeat(499_999),
  ];
  for (const content of sampleOf(hostile, 2))
    assertError(await importFile({ format: "promptfoo-yaml", content }), 422, "VALIDATION_ERROR", "content");
  const megabytes = "tests:\n".padEnd(10_000_000, "  - {vars: {topic: a}}\n");
  const tooLarge = await importFile({ format: "promptfoo-yaml", content: megabytes });
  assertError(tooLarge, 413, "PAYLOAD_TOO_LARGE");
  const tooLong = await importFile({ format: "promptfoo-yaml", content: megabytes.slice(0, 500_001) });
  assertError(tooLong, 400, "INVALID_REQUEST", "content");
  assert.equal((await testSetOf(author, productId)).hash, stored.hash);
  assertError(await importFile({ format: "promptfoo-yaml", content: yaml }, buyer), 404, "PRODUCT_NOT_FOUND");
  assertError(await buyer.get(`${path}/export`), 404, "PRODUCT_NOT_FOUND");
});
