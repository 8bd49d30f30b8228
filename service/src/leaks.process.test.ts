import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type Collector, sendsTo, startCollector } from "../test/collector.ts";
import { dumpDatabase } from "../test/dump.ts";
import { createDraft } from "../test/factories.ts";
import { type Client, type Market, openMarket, type Reply } from "../test/market.ts";
import { connectMcp, promptFor, textOf, toolFor } from "../test/mcp.ts";
import {
  type Misbehaviour,
  type Next,
  type ProviderServer,
  refusedUrl,
  startProviderServer,
} from "../test/provider-server.ts";
import type { Break } from "../test/provider-stream.ts";
import { streamRun } from "../test/run-streams.ts";
import { createProviderKey, providersAt } from "../test/runs.ts";
import { becomes, until } from "../test/until.ts";
import { createWorkflow, echoStep, executionOf, postExecution, startWorker } from "../test/workflows.ts";
import { createLog } from "./core/log.ts";

/** What nobody may read who was not meant to: the author's words, the buyer's, the model's, and the key. */
const marks = {
  prompt: "PROMPTMARK-of-the-author",
  value: "VALUEMARK-of-the-buyer",
  answer: "ANSWERMARK-of-the-model",
  key: "KEYMARK-0123456789-of-the-buyer",
};
const DEADLINES = { connectMs: 1_000, firstByteMs: 150, idleMs: 150, totalMs: 400 };
const formats = ["openai", "anthropic", "google"] as const;
const misbehaviours: Misbehaviour[] = [
  "cut",
  "reset",
  "hang",
  "stall",
  "trickle",
  "bad-json",
  "filter",
  "context",
  "quota",
  "no-model",
  "bad-key",
];
const breaks: Break[] = [
  "cut",
  "cut-in-frame",
  "close",
  "no-finish",
  "bad-json",
  "error",
  "stall",
  "trickle",
];
/** Quotes all that it was sent and all that it would have said, as providers do. */
const quoting = { error: { message: Object.values(marks).join(" "), type: "error", code: "error" } };

let collector: Collector;
let telemetry: Awaited<ReturnType<typeof sendsTo>>;
let provider: ProviderServer;
let market: Market;
let owner: Client;
const logs: string[] = [];
/** Every answer that is an error, and every end of a stream that is one. */
const errors: string[] = [];
const seen = { executions: 0 };
before(async () => {
  collector = await startCollector();
  // In protobuf, as it is sent unless an operator says otherwise.
  telemetry = await sendsTo(collector);
  provider = await startProviderServer({ key: marks.key });
  market = await openMarket({
    ...{ providers: { ...providersAt(provider), verifyMs: 100 }, deadlines: DEADLINES },
    log: createLog("trace", { write: (line: string) => void logs.push(line) }),
  });
  owner = await market.createUser();
  await usesKeys();
  await runsPrompts();
  await runsWorkflows();
  await speaksMcp();
  seen.executions = (await owner.get("/v1/ai/executions")).body.meta.total;
});
after(async () => {
  await market.close();
  await telemetry.stop();
  await provider.close();
  await collector.close();
});

/** Remembers what it says where it is an error. */
async function readReply(asked: Promise<Reply>): Promise<Reply> {
  const reply = await asked;
  if (reply.status >= 400) errors.push(reply.text);
  return reply;
}

async function usesKeys(): Promise<void> {
  const create = (input: object) =>
    readReply(owner.post("/v1/ai/keys", { provider: "openai", name: "Key", key: marks.key, ...input }));
  const { id } = (await create({})).body.data;
  provider.nextListing({ status: 500, body: quoting });
  await create({ key: `${marks.key}-wrong` });
  await create({ key: `${marks.key} and more` });
  await create({ provider: "openai-compatible", baseUrl: `https://somebody:${marks.key}@example.com` });
  await create({ provider: "openai-compatible", baseUrl: await refusedUrl() });
  await readReply(owner.patch(`/v1/ai/keys/${id}`, { key: `${marks.key}-new`, baseUrl: marks.key }));
  provider.nextListing({ status: 500, body: quoting });
  await readReply(owner.post(`/v1/ai/keys/${id}/verify`));
  await readReply(owner.request("POST", "/v1/ai/keys", { body: `{"key":"${marks.key}`, headers: JSON_TYPE }));
  await readReply(owner.delete(`/v1/ai/keys/${id}`));
}

const JSON_TYPE = { "content-type": "application/json" };

async function runsPrompts(): Promise<void> {
  const productId = await createDraft(owner, {
    content: `${marks.prompt} {{topic}}`,
    compatibility: [...formats],
  });
  const variables = { topic: marks.value };
  for (const format of formats) {
    const apiKeyId = await createProviderKey(owner, { provider: format, key: marks.key });
    const input = { productId, apiKeyId, variables, options: { model: "some-model" } };
    const run = (more: object = {}, headers: Record<string, string> = {}) =>
      readReply(owner.post("/v1/ai/execute", { ...input, ...more }, headers));
    await fails(input, run);
    provider.next({ answer: { text: marks.answer } });
    await run({}, { "idempotency-key": `kept ${format}` });
    await run({ variables: { topic: marks.prompt } }, { "idempotency-key": `kept ${format}` });
    for (const value of [`${marks.value}${"x".repeat(40_000)}`, [marks.value], null])
      await run({ variables: { topic: value } });
    await run({ options: { store: false, model: "some-model" } });
    await readReply(
      owner.request("POST", "/v1/ai/execute", { body: `{"variables":"${marks.value}`, headers: JSON_TYPE }),
    );
    await goesOnAlone(run);
  }
}

type Run = (more?: object, headers?: Record<string, string>) => Promise<Reply>;

async function fails(input: Parameters<typeof streamRun>[2], run: Run): Promise<void> {
  const statuses = [400, 401, 402, 403, 404, 413, 418, 429].map((status) => ({ status, body: quoting }));
  const replies: Next[] = [...misbehaviours, ...statuses, { status: 200, body: quoting }];
  for (const reply of replies) {
    for (const stream of [false, true]) {
      provider.next(reply);
      await run({ stream });
    }
  }
  for (let at = 0; at < 3; at++) provider.next({ status: 500, body: quoting });
  await run();
  for (const how of breaks) {
    provider.next({ stream: { pieces: [marks.answer, marks.answer], breaks: how, after: 1 } });
    const listener = await streamRun(market.origin, owner, input);
    await listener.ended;
    errors.push(...listener.events.filter(({ type }) => type === "execution.failed").map(({ data }) => data));
  }
}

/** One that is answered and one that is canceled, unless its deadline is faster. */
async function goesOnAlone(run: Run): Promise<void> {
  const ends = (id: string) =>
    becomes(
      () => executionOf(owner, id),
      ({ completedAt }) => completedAt !== null,
    );
  provider.next({ answer: { text: marks.answer } });
  await ends((await run({}, { prefer: "respond-async" })).body.data.executionId);
  provider.next("hang");
  const { executionId } = (await run({}, { prefer: "respond-async" })).body.data;
  await readReply(owner.post(`/v1/ai/executions/${executionId}/cancel`));
  await ends(executionId);
}

async function runsWorkflows(): Promise<void> {
  const worker = startWorker(market);
  const openai = await createProviderKey(owner, { key: marks.key });
  const input = { input: { topic: marks.value }, apiKeys: { openai, sandbox: "sandbox" } };
  const prompt = (id: string, more: object = {}) => ({
    ...echoStep(id, `${marks.prompt} {{topic}}`, { vars: { topic: "input.topic" } }),
    ...more,
  });
  const called = { provider: "openai", model: "some-model" };
  const whole = await createWorkflow(owner, {
    steps: [
      prompt("echo"),
      prompt("asked", called),
      { id: "each", type: "map", items: "[input.topic]", do: { type: "transform", value: "item" } },
    ],
    result: "steps.echo.output",
  });
  const broken = await createWorkflow(owner, { steps: [prompt("asked", called)] });
  const wrong = await createWorkflow(owner, {
    steps: [{ id: "bad", type: "transform", value: "int(input.topic)" }],
  });
  provider.next({ answer: { text: marks.answer } });
  await readReply(postExecution(owner, whole, input, { prefer: "wait=30" }));
  for (const reply of ["bad-key", "cut", { status: 418, body: quoting }] as Next[]) {
    provider.next(reply);
    await failsAs(broken, input);
  }
  await failsAs(wrong, input);
  await readReply(
    postExecution(owner, whole, { input: { topic: marks.value }, apiKeys: { openai: marks.key } }),
  );
  await worker.stop();
}

async function speaksMcp(): Promise<void> {
  await createDraft(owner, { title: "By MCP", content: `${marks.prompt} {{topic}}` });
  const apiKeyId = await createProviderKey(owner, { key: marks.key });
  const client = await connectMcp(market, owner);
  const name = await toolFor(client, "By MCP");
  const said = async (topic: unknown) => {
    const result = await client.callTool({ name, arguments: { topic, apiKeyId } });
    if (result.isError) errors.push(textOf(result));
  };
  provider.next({ answer: { text: marks.answer } });
  await said(marks.value);
  for (const reply of ["cut", "bad-json", { status: 418, body: quoting }, "bad-key"] as Next[]) {
    provider.next(reply);
    await said(marks.value);
  }
  for (const value of [[marks.value], null, `${marks.value}${"x".repeat(40_000)}`]) await said(value);
  await client.getPrompt({ name: await promptFor(client, "By MCP"), arguments: { topic: marks.value } });
  for (const params of [{ name: marks.value }, { name, arguments: marks.value }, { arguments: marks }])
    await client.request({ method: "tools/call", params }).catch((error) => errors.push(String(error)));
  await client.close();
}

/** Why it failed, its steps' faults and its events, which quote nothing. */
async function failsAs(workflowId: string, input: Parameters<typeof postExecution>[2]): Promise<void> {
  const reply = await readReply(postExecution(owner, workflowId, input, { prefer: "wait=30" }));
  const { executionId, id = executionId, status } = reply.body.data;
  assert.equal(status, "failed", reply.text);
  const steps = (await owner.get(`/v1/ai/executions/${id}/steps`)).body.data as { error: unknown }[];
  errors.push(...steps.map(({ error }) => JSON.stringify(error)));
}

function mustTellNothing(text: string, where: string, but: string[] = []): void {
  for (const mark of Object.values(marks)) {
    if (but.includes(mark)) continue;
    for (const form of [mark, Buffer.from(mark).toString("hex"), Buffer.from(mark).toString("base64")]) {
      const at = text.indexOf(form);
      assert.ok(at < 0, `${where} tells ${mark}: …${text.slice(Math.max(0, at - 200), at + 100)}`);
    }
  }
}

suite("of prompts, variables, outputs and provider keys, after everything that can happen to a run", () => {
  test("nothing is in an error", () => {
    assert.ok(errors.length > 100, `only ${errors.length} errors`);
    for (const text of errors) mustTellNothing(text, "an error");
  });

  test("nothing is in a line of the log, at any level", () => {
    assert.ok(logs.length > 100);
    mustTellNothing(logs.join("\n"), "the log");
  });

  test("nothing is in a row of the database, but for what an author published", async () => {
    const rows = (await dumpDatabase(market)).split("\n");
    for (const table of [
      "executions",
      "provider_keys",
      "idempotency_keys",
      "execution_steps",
      "execution_events",
    ])
      assert.ok(
        rows.some((row) => row.startsWith(`${table} `)),
        table,
      );
    assert.ok(seen.executions > 100, `only ${seen.executions} executions`);
    for (const row of rows) {
      const isPublished = /^(product_versions|products|listings) /.test(row);
      mustTellNothing(row, "a row", isPublished ? [marks.prompt] : []);
    }
  });

  test("nothing is in a list of runs, steps or keys, nor in the metrics", async () => {
    for (const path of ["/v1/ai/executions?limit=100", "/v1/ai/keys?limit=100", "/metrics"]) {
      const reply = await owner.get(path);
      assert.equal(reply.status, 200, path);
      mustTellNothing(reply.text, path);
    }
  });

  test("nothing is in what a collector of traces and metrics was sent, nor in the log of that", async () => {
    const last = { traceId: "5".repeat(32), spanId: "6".repeat(16) };
    await owner.get("/v1/ai/keys", { traceparent: `00-${last.traceId}-${last.spanId}-01` });
    const isLast = (body: Buffer) => body.includes(Buffer.from(last.traceId, "hex"));
    await until("the last span", () => collector.bodies.find(isLast));
    const sent = Buffer.concat(collector.bodies).toString("latin1");
    for (const name of ["chat some-model", "invoke_workflow", "run prompt", "gen_ai.client.token.usage"])
      assert.ok(sent.includes(name), name);
    assert.ok(sent.split("chat some-model").length > 100, "only a few calls were told");
    mustTellNothing(sent, "what a collector got");
    mustTellNothing(telemetry.logs.join("\n"), "the log");
  });
});
