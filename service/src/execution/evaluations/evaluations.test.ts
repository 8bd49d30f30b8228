import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import type { EvaluationStatement } from "@stoa/contract";
import { gradeOutput, verifyEvaluation } from "@stoa/evaluation";
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from "jose";
import {
  evaluationOf,
  haikuCases,
  postEvaluation,
  sandboxRequest,
  startEvaluation,
  storeTestSet,
  untilEvaluated,
} from "../../../test/evaluations.ts";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, providersAt, run, runToCompletion } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { createWorkflow, startWorker, stepsOf } from "../../../test/workflows.ts";
import { canonicalJson } from "../../core/canonical-json.ts";
import { digestOf } from "../../core/digest.ts";
import { requireUuid } from "../../core/ids.ts";

let provider: ProviderServer;
let market: Market;
let author: Client;
let stranger: Client;
let worker: ReturnType<typeof startWorker>;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser({ name: "Author" });
  stranger = await market.createUser({ role: "seller" });
  worker = startWorker(market);
});
after(async () => {
  await worker.stop();
  await market.close();
  await provider.close();
});

interface Column {
  kind: string;
  model: string;
  isSandbox: boolean;
  status: string;
  passed: number;
  n: number;
}

const countsOf = ({ columns }: { columns: Column[] }) =>
  columns.map(({ kind, model, passed, n }) => [kind, model, passed, n]);

test("two models and their baselines: every case as often as it repeats, exact counts, no run of the product", async () => {
  const productId = await createProduct(author);
  const testSet = await storeTestSet(author, productId);
  const request = {
    models: [
      { apiKeyId: "sandbox", model: "sandbox-echo" },
      { apiKeyId: "sandbox", model: "sandbox" },
    ],
    repeats: 3,
    maxCost: 1,
  };
  const estimate = await author.post(`/v1/products/${productId}/evaluations/estimate`, request);
  assert.equal(estimate.body.data.runs, 3 * 3 * 4, estimate.text);
  assert.equal(estimate.body.data.cost, 0);
  // No run ends before the jobs are read.
  await worker.stop();
  const id = await startEvaluation(author, productId, request);
  const second = await postEvaluation(author, productId, request);
  assertError(second, 409, "INVALID_STATE");
  const { rows: jobs } = await market.query("select data from pgboss.job where name = 'advance-evaluation'");
  worker = startWorker(market);
  const done = await untilEvaluated(market, author, id);
  assert.equal(jobs.length, 0, "the end of a run requests the job, not its start");
  assert.equal(done.status, "completed", JSON.stringify(done.error));
  // The echo repeats the prompt; its baseline repeats "topic: snow" alone. The other model's words contain neither.
  assert.deepEqual(countsOf(done), [
    ["product", "sandbox-echo", 6, 9],
    ["baseline", "sandbox-echo", 3, 9],
    ["product", "sandbox", 0, 9],
    ["baseline", "sandbox", 0, 9],
  ]);
  assert.equal(done.testSetHash, testSet.hash);
  assert.deepEqual([done.visibleCases, done.hiddenCases, done.results.length], [2, 1, 36]);
  const first = done.results[0];
  assert.equal(first.output, "[sandbox] Write a haiku about rain in English.");
  assert.deepEqual(
    first.verdicts.map(({ isPassed }: { isPassed: boolean }) => isPassed),
    [true],
  );
  assert.equal(typeof first.latencyMs, "number");
  const baseline = done.results.find(
    (result: { column: number; case: number }) => result.column === 1 && result.case === 2,
  );
  assert.equal(baseline.output, "[sandbox] topic: sun\nlanguage: Greek");
  const ended = await market.query(
    "select data ->> 'evaluationId' as id from pgboss.job where name = 'advance-evaluation'",
  );
  assert.equal(ended.rowCount, 4);
  const runs = await market.query(
    "select from executions e join products p on p.id = e.product_id where p.title = 'Haiku about anything' and e.type = 'PROMPT'",
  );
  assert.equal(runs.rowCount, 0, "no step counts as a run of the product");
  assert.equal((await author.get("/v1/products/runs")).body.meta.total, 0);
  assert.equal((await author.get(`/v1/products/${productId}/evaluations`)).body.data[0].id, id);
  for (const reply of [
    await stranger.get(`/v1/evaluations/${id}`),
    await stranger.post(`/v1/evaluations/${id}/cancel`),
  ])
    assertError(reply, 404, "EVALUATION_NOT_FOUND");
  assertError(await postEvaluation(stranger, productId), 403, "UNAUTHORIZED");
  assertError(await stranger.get(`/v1/products/${productId}/evaluations`), 403, "UNAUTHORIZED");
});

test("requests that cannot run: the field and the fix, nothing written", async () => {
  const productId = await createProduct(author);
  assertError(await postEvaluation(author, productId), 422, "VALIDATION_ERROR", "productId");
  await storeTestSet(
    author,
    productId,
    Array.from({ length: 50 }, (_, n) => ({ ...haikuCases[0], title: `${n}` })),
  );
  const refused = async (request: object, field: string, status = 422) => {
    const reply = await postEvaluation(author, productId, { ...sandboxRequest, ...request });
    assertError(reply, status, status === 422 ? "VALIDATION_ERROR" : "INVALID_REQUEST", field);
    return reply.body.error.message;
  };
  assert.match(await refused({ repeats: 5 }, "repeats"), /250 runs.*send 4/);
  await refused({ models: undefined }, "models");
  await refused({ apiKeys: {} }, "apiKeys");
  await refused({ models: [sandboxRequest.models[0], sandboxRequest.models[0]] }, "models[1].model");
  await refused({ models: [] }, "models", 400);
  await refused({ maxCost: 0 }, "maxCost", 400);
  const openai = await createProviderKey(author);
  await refused({ models: [{ apiKeyId: openai, model: "no-such-model" }] }, "models[0].model");
  assertError(
    await postEvaluation(author, productId, { ...sandboxRequest, models: [{ apiKeyId: "pkey_x" }] }),
    404,
    "PROVIDER_KEY_NOT_FOUND",
  );
  const { rowCount } = await market.query("select from evaluations where product_id = $1", [
    requireUuid("prod", productId),
  ]);
  assert.equal(rowCount, 0);
});

test("cancel: nothing begins after it, and the results so far stay", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId);
  const openai = await createProviderKey(author);
  provider.next({ answer: { text: "A haiku about rain" } });
  for (let n = 0; n < 2; n++) provider.next("hang");
  const before = provider.requests.length;
  const models = [{ apiKeyId: openai, model: "gpt-5-mini" }, ...sandboxRequest.models];
  const id = await startEvaluation(author, productId, { models, repeats: 1, maxCost: 1 });
  await untilRequests(before + 3);
  const { executionId } = (await evaluationOf(author, id)).columns[0];
  await becomes(
    async () => (await stepsOf(author, executionId)).map(({ status }: { status: string }) => status),
    (statuses) => statuses.includes("completed"),
  );
  const canceled = await author.post(`/v1/evaluations/${id}/cancel`);
  assert.equal(canceled.body.data?.status, "canceled", canceled.text);
  assert.equal((await author.post(`/v1/evaluations/${id}/cancel`)).status, 200);
  const done = await untilEvaluated(market, author, id);
  assert.deepEqual(
    done.columns.map(({ status }: Column) => status),
    ["canceled", "pending", "pending", "pending"],
  );
  assert.equal(done.results.length, 1);
  assert.equal(provider.requests.length, before + 3);
  assertError(await author.post(`/v1/evaluations/${await finished(productId)}/cancel`), 409, "INVALID_STATE");
});

test("maxCost reached: the evaluation fails with the results so far; a failing model fails its runs", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId);
  const openai = await createProviderKey(author);
  const models = [{ apiKeyId: openai, model: "gpt-5-mini" }];
  const usage = { input: 10_000, output: 1_000 };
  provider.always({ answer: { text: "A haiku about rain", usage } });
  const before = provider.requests.length;
  const id = await startEvaluation(author, productId, { models, repeats: 2, maxCost: 0.008 });
  const done = await untilEvaluated(market, author, id);
  provider.always(null);
  assert.deepEqual([done.status, done.error.code], ["failed", "MAX_COST_REACHED"]);
  assert.ok(done.cost > 0, "the calls before were paid");
  // Calls that were open when the limit refused the next one were aborted.
  const made = provider.requests.length - before;
  assert.ok(done.results.length > 0 && done.results.length <= made && made < 6, `${made} calls`);
  assert.equal(done.columns[1].status, "pending");
  const failing = { models: [{ apiKeyId: "sandbox", model: "sandbox-500" }], repeats: 1, maxCost: 1 };
  const failed = await untilEvaluated(market, author, await startEvaluation(author, productId, failing));
  assert.deepEqual(
    [failed.status, ...countsOf(failed)],
    ["completed", ["product", "sandbox-500", 0, 3], ["baseline", "sandbox-500", 0, 3]],
  );
  assert.ok(failed.results.every((result: { errorCode: string }) => result.errorCode === "PROVIDER_ERROR"));
});

test("budget of the key reached: the evaluation fails, keeps the finished cases and calls nothing more", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId, haikuCases.slice(0, 1));
  // The rest after one call does not pay for an answer of 500 tokens.
  const apiKeyId = await createProviderKey(author, { monthlyBudget: 0.01 });
  const usage = { input: 30_000, output: 1_000 };
  provider.next({ answer: { text: "A haiku about rain", usage } });
  const before = provider.requests.length;
  const models = [{ apiKeyId, model: "gpt-5-mini" }];
  const id = await startEvaluation(author, productId, { models, repeats: 1, maxCost: 1 });
  const done = await untilEvaluated(market, author, id);
  assert.deepEqual(
    [done.status, done.error?.code, done.cost],
    ["failed", "KEY_BUDGET_EXCEEDED", 0.0095],
    JSON.stringify(done),
  );
  assert.equal(provider.requests.length, before + 1);
  assert.deepEqual(countsOf(done)[0], ["product", "gpt-5-mini", 1, 1]);
});

async function untilRequests(count: number): Promise<void> {
  await becomes(
    async () => provider.requests.length,
    (made) => made >= count,
  );
}

const finished = async (productId: string): Promise<string> => {
  const id = await startEvaluation(author, productId);
  await untilEvaluated(market, author, id);
  return id;
};

test("ten parallel requests: one evaluation; one key ten times: one evaluation, also later", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId);
  const replies = await Promise.all(Array.from({ length: 10 }, () => postEvaluation(author, productId)));
  assert.deepEqual(replies.map(({ status }) => status).sort(), [202, ...Array(9).fill(409)]);
  const id = replies.find(({ status }) => status === 202)!.body.data.id;
  await untilEvaluated(market, author, id);
  const key = { "idempotency-key": "evaluate-once" };
  const first = await postEvaluation(author, productId, sandboxRequest, key);
  await untilEvaluated(market, author, first.body.data.id);
  assert.equal(
    (await postEvaluation(author, productId, sandboxRequest, key)).body.data.id,
    first.body.data.id,
  );
  assert.equal((await author.get(`/v1/products/${productId}/evaluations`)).body.meta.total, 2);
});

test("a draft whose content changes between two columns: the evaluation fails and says so", async () => {
  const productId = await createDraft(author);
  await storeTestSet(author, productId);
  await worker.stop();
  const id = await startEvaluation(author, productId);
  const changed = await author.patch(`/v1/products/${productId}`, {
    content: "Sing about {{topic}} in {{language=English}}.",
  });
  assert.equal(changed.status, 200, changed.text);
  worker = startWorker(market);
  const done = await untilEvaluated(market, author, id);
  assert.deepEqual([done.status, done.error.code], ["failed", "CONTENT_CHANGED"]);
  assert.equal((await evaluationOf(author, id)).columns[1].status, "pending");
});

test("the score card: the newest completed evaluation of the released version, beside its real runs, with exact numbers", async () => {
  const productId = await createProduct(author);
  const cardOf = async (who: Client) => {
    const [detail, card] = [
      await who.get(`/v1/products/${productId}`),
      await who.get(`/v1/products/${productId}/score-card`),
    ];
    assert.deepEqual(detail.body.data.scoreCard, card.body.data.scoreCard);
    return { ...card.body.data, etag: detail.headers.get("etag") };
  };
  const none = await cardOf(stranger);
  assert.equal(none.scoreCard, null);
  const { hash } = await storeTestSet(author, productId);
  const canceled = await startEvaluation(author, productId);
  await author.post(`/v1/evaluations/${canceled}/cancel`);
  await untilEvaluated(market, author, canceled);
  const id = await finished(productId);
  await buyProduct(stranger, productId);
  await runToCompletion(stranger, { productId });
  await run(stranger, { productId, options: { model: "sandbox-500" } });
  const { scoreCard, etag } = await cardOf(stranger);
  assert.notEqual(etag, none.etag);
  const { medianLatencyMs, ...model } = scoreCard.models[0];
  assert.equal(typeof medianLatencyMs, "number");
  assert.deepEqual(model, {
    ...{ provider: "sandbox", model: "sandbox-echo", isSandbox: true },
    ...{ passed: 4, n: 6, rate: rateOf(2, 3), passPowerK: { k: 2, rate: rateOf(2, 3) }, medianCost: 0 },
    baseline: { passed: 2, n: 6, rate: rateOf(1, 3) },
  });
  const { models: _, prices, evaluatedAt, ...rest } = scoreCard;
  assert.deepEqual(rest, {
    ...{
      evaluationId: id,
      version: "1.0.0",
      testSetHash: hash,
      visibleCases: 2,
      hiddenCases: 1,
      judgedCases: 0,
      judge: null,
      repeats: 2,
    },
    ...{ regressions: [], evaluations: 2, runs: { failed: 1, n: 2 } },
  });
  await author.patch(`/v1/products/${productId}`, {
    content: "Sing about {{topic}} in {{language=English}}.",
  });
  assert.equal((await cardOf(stranger)).scoreCard, null, "the new version has not been evaluated");
});

/** Wilson's formula, written out. Repeats in the sandbox are equal, so that only cases count. */
function rateOf(passed: number, n: number) {
  const z = 1.959963984540054;
  const rate = passed / n;
  const center = (rate + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z / (1 + z ** 2 / n)) * Math.sqrt((rate * (1 - rate)) / n + z ** 2 / (4 * n ** 2));
  return { value: rate, low: center - half, high: center + half, effectiveN: n };
}

test("lists and score cards: read no test set, which may be large", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId);
  const id = await startEvaluation(author, productId);
  await untilEvaluated(market, author, id);
  const paths = [`/v1/products/${productId}/evaluations`, `/v1/products/${productId}/score-card`];
  const answersOf = async () => {
    const answers = [];
    for (const path of paths) {
      const { status, body } = await author.get(path);
      answers.push([status, body.data]);
    }
    return answers;
  };
  const expected = await answersOf();
  await market.query("alter table test_sets rename column cases to unread_cases");
  const answers = await answersOf().finally(() =>
    market.query("alter table test_sets rename column unread_cases to cases"),
  );
  assert.deepEqual(answers, expected);
  assert.deepEqual(
    answers.map(([status]) => status),
    [200, 200],
  );
});

test("the proof: signed, without texts of hidden cases, and the numbers of the card follow from it", async () => {
  const productId = await createProduct(author);
  await storeTestSet(author, productId);
  const older = await finished(productId);
  const id = await finished(productId);
  const read = async (who: Client) => who.get(`/v1/evaluations/${id}/proof`);
  const reply = await read(stranger);
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual((await read(author)).body.data, reply.body.data, "each request gets the same proof");
  // Signed texts and salts are random, and may contain a short word.
  const words = reply.text.replaceAll(/"[\w-]+\.[\w-]+\.[\w-]+"|"salt":"[\w-]+"/g, "");
  assert.doesNotMatch(words, /snow/i);
  const { statement: jws, receipts, cases, outputs, keysUrl } = reply.body.data;
  const keys = createLocalJWKSet((await (await fetch(keysUrl)).json()) as JSONWebKeySet);
  const { payload, protectedHeader } = await compactVerify(jws, keys);
  assert.equal(protectedHeader.typ, "stoa-evaluation");
  const statement: EvaluationStatement = JSON.parse(new TextDecoder().decode(payload));
  assert.doesNotMatch(JSON.stringify(statement), /snow/i);
  assert.doesNotMatch(JSON.stringify(statement), /"(judge|judged|judgment)"/, "without a judge");
  const { scoreCard } = (await stranger.get(`/v1/products/${productId}/score-card`)).body.data;
  assert.deepEqual(statement.models, scoreCard.models);
  for (const [n, kind] of [
    [0, "product"],
    [1, "baseline"],
  ] as const) {
    const results = statement.results.filter(({ column }) => column === n);
    const shown = kind === "product" ? scoreCard.models[0] : scoreCard.models[0].baseline;
    assert.deepEqual(
      [results.filter(({ isPassed }) => isPassed).length, results.length],
      [shown.passed, shown.n],
    );
    assert.equal(digestOf(receipts[n]).toString("hex"), statement.columns[n]!.receiptSha256);
    const receipt = JSON.parse(new TextDecoder().decode((await compactVerify(receipts[n], keys)).payload));
    for (const { step, latencyMs, cost } of results) {
      const used = receipt.steps.find(
        (one: { id: string; item: number }) => one.id === step.id && one.item === step.item,
      );
      assert.deepEqual([used.durationMs, used.estimatedCost], [latencyMs, cost]);
    }
  }
  const hashed = (salt: string, text: string) =>
    createHmac("sha256", Buffer.from(salt, "base64url")).update(text).digest("hex");
  assert.equal(cases.length, 2);
  for (const one of cases)
    assert.equal(hashed(one.salt, canonicalJson(one.case)), statement.testSet.cases[one.index]!.hash);
  assert.equal(outputs.length, 8);
  for (const { column, case: caseN, repeat, salt, output } of outputs) {
    const result = statement.results.find(
      (one) => one.column === column && one.case === caseN && one.repeat === repeat,
    )!;
    assert.equal(hashed(salt, output), result.outputHash);
    const shown = cases.find(({ index }: { index: number }) => index === caseN).case;
    const verdict = gradeOutput(
      shown,
      { output, costUsd: result.cost, latencyMs: result.latencyMs },
      { validateSchema: () => [] },
    );
    assert.deepEqual([verdict.isPassed, verdict.score], [result.isPassed, result.score]);
  }
  assertError(await stranger.get(`/v1/evaluations/${older}/proof`), 404, "EVALUATION_NOT_FOUND");
  assert.equal((await author.get(`/v1/evaluations/${older}/proof`)).status, 200);
  const { data } = (await author.get("/v1/events?type=evaluation.completed")).body;
  assert.deepEqual(data[0].data.evaluation.models, [
    { provider: "sandbox", model: "sandbox-echo", passed: 4, n: 6 },
  ]);
});

test("a workflow: a column with the keys of its steps and a product step's model, then that model with the input alone", async () => {
  const poem = await createProduct(author, { content: "A poem about {{topic}}" });
  const step = { id: "poem", type: "product", productId: poem, variables: { topic: "input.topic" } };
  const input = { type: "object", required: ["topic"], properties: { topic: { type: "string" } } };
  const more = { steps: [{ ...step, model: "sandbox-echo" }], result: "{'text': steps.poem.output}" };
  const productId = await createWorkflow(author, { input, ...more }, { compatibility: ["openai"] });
  const published = await author.post(`/v1/products/${productId}/publish`);
  assert.equal(published.body.data?.status, "published", published.text);
  await storeTestSet(author, productId, [
    {
      title: "Right",
      input: { topic: "rain" },
      assert: [{ type: "contains", value: "A poem about {{topic}}" }],
    },
    { title: "Wrong", input: { topic: "snow" }, assert: [{ type: "contains", value: "rain" }] },
  ]);
  const request = { apiKeys: { sandbox: "sandbox" }, repeats: 2, maxCost: 1 };
  assertError(await postEvaluation(author, productId), 422, "VALIDATION_ERROR", "models");
  const estimate = await author.post(`/v1/products/${productId}/evaluations/estimate`, request);
  assert.deepEqual(
    estimate.body.data?.columns.map(({ kind, runs }: { kind: string; runs: number }) => [kind, runs]),
    [
      ["product", 4],
      ["baseline", 4],
    ],
    estimate.text,
  );
  const id = await startEvaluation(author, productId, request);
  const done = await untilEvaluated(market, author, id);
  assert.equal(done.status, "completed", JSON.stringify(done.error));
  assert.deepEqual(countsOf(done), [
    ["product", null, 2, 4],
    ["baseline", "sandbox-echo", 0, 4],
  ]);
  assert.deepEqual(JSON.parse(done.results[0].output), { text: "[sandbox] A poem about rain" });
  const bare = done.results.find(({ column }: { column: number }) => column === 1);
  assert.equal(bare.output, "[sandbox] topic: rain");
  const { scoreCard } = (await stranger.get(`/v1/products/${productId}/score-card`)).body.data;
  const shown = { provider: "sandbox", model: "sandbox-echo", isSandbox: true };
  assert.deepEqual(scoreCard.models[0].baseline, { passed: 0, n: 4, rate: rateOf(0, 2), ...shown });
  const proof = (await stranger.get(`/v1/evaluations/${id}/proof`)).body.data;
  const { keys } = (await (await fetch(proof.keysUrl)).json()) as { keys: [] };
  const verified = await verifyEvaluation(proof, keys);
  assert.deepEqual(verified.problems, []);
  const outer = await createWorkflow(author, {
    steps: [{ ...step, productId, variables: { topic: "'x'" }, model: "sandbox-echo" }],
  });
  const refused = await author.post(`/v1/ai/workflows/${outer}/execute`, { apiKeys: { sandbox: "sandbox" } });
  assert.match(assertError(refused, 422, "VALIDATION_ERROR", "workflowId")?.reason, /model.*must be omitted/);
});
