import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, suite, test } from "node:test";
import {
  type Collector,
  KIND,
  type SentPoint,
  type SentSpan,
  sendsTo,
  startCollector,
} from "../../../test/collector.ts";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { connectMcp, toolFor } from "../../../test/mcp.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { readWholeStream, streamRun } from "../../../test/run-streams.ts";
import { createProviderKey, providersAt, type RunInput, run } from "../../../test/runs.ts";
import { until } from "../../../test/until.ts";
import { startWebhookReceiver, type WebhookReceiver } from "../../../test/webhook-receiver.ts";
import { webhookHelpers } from "../../../test/webhooks.ts";
import {
  createWorkflow,
  executeWorkflow,
  postExecution,
  promptStep,
  startWorker,
  transformStep,
} from "../../../test/workflows.ts";
import { FAULTS_TO_OPEN } from "../../integrations/egress/circuit-breaker.ts";
import { sendEmailJob } from "../../platform/email/email-queue.ts";
import { startJobWorker } from "../../platform/jobs/job-worker.ts";

let collector: Collector;
let telemetry: Awaited<ReturnType<typeof sendsTo>>;
let provider: ProviderServer;
let receiver: WebhookReceiver;
let market: Market;
let author: Client;
let input: RunInput;
before(async () => {
  collector = await startCollector();
  telemetry = await sendsTo(collector, { OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" });
  provider = await startProviderServer();
  receiver = await startWebhookReceiver();
  market = await openMarket({ providers: providersAt(provider), breaker: {} });
  author = await market.createUser();
  input = {
    productId: await createDraft(author),
    apiKeyId: await createProviderKey(author),
    options: { model: "gpt-5-mini", maxTokens: 50, temperature: 0.5 },
  };
});
after(async () => {
  await market.close();
  await telemetry.stop();
  for (const server of [collector, provider, receiver]) await server.close();
});

/** A trace of the caller. */
function newTrace() {
  const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-01` };
}

const spanWhere = (what: string, holds: (span: SentSpan) => boolean) =>
  until(what, () => collector.spans().find(holds));

const spanOf = (traceId: string, name: string) =>
  spanWhere(`${name} of ${traceId}`, (span) => span.traceId === traceId && span.name === name);

const pointWhere = (name: string, holds: (point: SentPoint) => boolean) =>
  until(`a point of ${name}`, () => collector.metric(name)?.points.find(holds));

/** Each span is the child of the one before. */
function assertNested(...spans: SentSpan[]): void {
  for (const [at, span] of spans.entries())
    if (at > 0) assert.equal(span.parentSpanId, spans[at - 1]!.spanId, `${span.name} is a child`);
}

function assertAttributes(span: SentSpan, attributes: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value instanceof RegExp) assert.match(String(span.attributes[name]), value, name);
    else assert.deepEqual(span.attributes[name], value, `${span.name}: ${name}`);
  }
}

const server = () => ({
  "server.address": "127.0.0.1",
  "server.port": Number(new URL(provider.url).port),
});
const CALL = { "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai" };
const REQUEST = "POST /v1/ai/execute";
const CHAT = "chat gpt-5-mini";

suite("a trace", () => {
  test("of a request with traceparent: continues through the run to the provider call", async () => {
    const { traceId, spanId, traceparent } = newTrace();
    const reply = await run(author, input, { traceparent });
    assert.equal(reply.status, 200, reply.text);
    const request = await spanOf(traceId, REQUEST);
    const ran = await spanOf(traceId, "run prompt");
    const call = await spanOf(traceId, CHAT);
    assert.equal(request.parentSpanId, spanId);
    assertNested(request, ran, call);
    assert.deepEqual(
      [request, ran, call].map(({ kind }) => kind),
      [KIND.server, KIND.internal, KIND.client],
    );
    assert.deepEqual(
      [request, ran, call].map(({ isError }) => isError),
      [false, false, false],
    );
    assert.deepEqual(request.attributes, {
      "http.request.method": "POST",
      "http.route": "/v1/ai/execute",
      "http.response.status_code": 200,
      "url.scheme": "http",
    });
    assert.deepEqual(ran.attributes, {
      "stoa.execution.id": reply.body.data.executionId,
      "stoa.execution.type": "PROMPT",
      "stoa.execution.mode": "sync",
      "stoa.execution.status": "completed",
      "stoa.product.id": input.productId,
      "stoa.product.version": reply.body.data.metadata.productVersion,
    });
    assert.deepEqual(call.attributes, {
      ...CALL,
      ...server(),
      "gen_ai.output.type": "text",
      "gen_ai.request.model": "gpt-5-mini",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.max_tokens": 50,
      "gen_ai.response.model": "gpt-5-mini",
      "gen_ai.response.finish_reasons": ["stop"],
      "gen_ai.usage.input_tokens": 12,
      "gen_ai.usage.output_tokens": 5,
      "stoa.provider.attempts": 1,
    });
  });

  test("traceparent: not sent to the provider", async () => {
    const { traceparent } = newTrace();
    provider.requests.length = 0;
    await run(author, input, { traceparent, baggage: "who=me" });
    const [{ headers }] = provider.requests as [(typeof provider.requests)[number]];
    for (const name of ["traceparent", "tracestate", "baggage"]) assert.equal(headers[name], undefined, name);
  });

  test("of a stream: has the time to the first chunk", async () => {
    const { traceId, traceparent } = newTrace();
    await readWholeStream(await streamRun(market.origin, author, input, { traceparent }));
    const call = await spanOf(traceId, CHAT);
    assertAttributes(call, { "gen_ai.request.stream": true, "gen_ai.usage.output_tokens": 5 });
    assert.ok((call.attributes["gen_ai.response.time_to_first_chunk"] as number) > 0);
    assertAttributes(await spanOf(traceId, "run prompt"), { "stoa.execution.mode": "stream" });
  });

  test("of an asynchronous run: contains run and provider call", async () => {
    const { traceId, traceparent } = newTrace();
    await run(author, input, { traceparent, prefer: "respond-async" });
    assertNested(
      await spanOf(traceId, REQUEST),
      await spanOf(traceId, "run prompt"),
      await spanOf(traceId, CHAT),
    );
  });

  test("of a failed run: has the error code, no message", async () => {
    const { traceId, traceparent } = newTrace();
    provider.next("bad-key");
    assert.equal((await run(author, input, { traceparent })).status, 424);
    for (const name of ["run prompt", CHAT]) {
      const span = await spanOf(traceId, name);
      assert.equal(span.isError, true, name);
      assertAttributes(span, { "error.type": "PROVIDER_KEY_INVALID" });
    }
    assertAttributes(await spanOf(traceId, CHAT), {
      "http.response.status_code": 401,
      "stoa.provider.attempts": 1,
    });
    const request = await spanOf(traceId, REQUEST);
    assert.equal(request.isError, false, "a refusal is no fault of the service");
    assertAttributes(request, { "http.response.status_code": 424 });
  });

  test("of an interrupted stream: is an error with the time to the first chunk", async () => {
    const { traceId, traceparent } = newTrace();
    provider.next({ stream: { pieces: ["One ", "two."], breaks: "cut", after: 1 } });
    await (await streamRun(market.origin, author, input, { traceparent })).ended;
    const call = await spanOf(traceId, CHAT);
    assert.equal(call.isError, true);
    assertAttributes(call, { "error.type": "PROVIDER_BAD_RESPONSE" });
    assert.ok((call.attributes["gen_ai.response.time_to_first_chunk"] as number) > 0);
  });

  test("of a canceled run: error.type is canceled", async () => {
    const { traceId, traceparent } = newTrace();
    provider.next("hang");
    const arrived = provider.nextRequest();
    const { executionId } = (await run(author, input, { traceparent, prefer: "respond-async" })).body.data;
    await arrived;
    await author.post(`/v1/ai/executions/${executionId}/cancel`);
    for (const name of ["run prompt", CHAT])
      assertAttributes(await spanOf(traceId, name), { "error.type": "canceled" });
  });

  test("of a run by MCP: contains the run", async () => {
    const productId = await createProduct(author);
    const buyer = await market.createUser();
    await buyProduct(buyer, productId);
    const client = await connectMcp(market, buyer);
    const name = await toolFor(client, haiku.title);
    await client.callTool({ name, arguments: { topic: "rain" } });
    await client.close();
    const ran = await spanWhere("the run", ({ attributes }) => attributes["stoa.product.id"] === productId);
    const request = await spanWhere("its request", ({ spanId }) => spanId === ran.parentSpanId);
    assert.equal(request.name, "POST /mcp");
  });

  test("a path: reported as its pattern, without query", async () => {
    const { traceId, traceparent } = newTrace();
    await market.as(null).get(`/v1/products/${input.productId}?api_key=${author.key}`, { traceparent });
    const span = await spanOf(traceId, "GET /v1/products/:productId");
    assertAttributes(span, { "http.response.status_code": 200 });
    assert.ok(!JSON.stringify(span).includes(input.productId));
  });

  test("an unknown path: reported with its method only", async () => {
    const { traceId, traceparent } = newTrace();
    await author.get("/v1/nothing/PATHMARK", { traceparent });
    const span = await spanOf(traceId, "GET");
    assert.equal(span.attributes["http.route"], undefined);
    assertAttributes(span, { "http.response.status_code": 404 });
    assert.ok(!JSON.stringify(span).includes("PATHMARK"));
  });

  test("the request's log line: has the trace id", async () => {
    const { traceId, traceparent } = newTrace();
    await author.get("/v1/ai/keys", { traceparent });
    await spanOf(traceId, "GET /v1/ai/keys");
    assert.ok(market.logs.some((line) => JSON.parse(line).trace === traceId));
  });

  test("probes: have no trace", async () => {
    const { traceId, traceparent } = newTrace();
    for (const path of ["/healthz", "/readyz", "/metrics"]) await market.as(null).get(path, { traceparent });
    await author.get("/v1/ai/keys", { traceparent });
    await spanOf(traceId, "GET /v1/ai/keys");
    assert.equal(collector.spans().filter((span) => span.traceId === traceId).length, 1);
  });
});

suite("a workflow run", () => {
  test("has its own trace with steps and calls, linked to the request", async () => {
    const { traceId, traceparent } = newTrace();
    const workflowId = await createWorkflow(author, {
      steps: [
        promptStep("outline", "Outline"),
        transformStep("join", "steps.outline.output", { needs: ["outline"] }),
      ],
      result: "steps.join.output",
    });
    const worker = startWorker(market);
    const openai = input.apiKeyId!;
    const headers = { prefer: "wait=30", traceparent };
    const reply = await postExecution(author, workflowId, { apiKeys: { openai } }, headers);
    assert.equal(reply.body.data.status, "completed", reply.text);
    await worker.stop();
    const request = await spanWhere("the request", (span) => span.traceId === traceId);
    const id = reply.body.data.executionId;
    const drive = await spanWhere(
      "the run",
      ({ name, attributes }) => name === "invoke_workflow" && attributes["stoa.execution.id"] === id,
    );
    assert.equal(drive.parentSpanId, undefined);
    assert.deepEqual(drive.links, [{ traceId, spanId: request.spanId }]);
    assert.deepEqual(drive.attributes, {
      "gen_ai.operation.name": "invoke_workflow",
      "stoa.execution.id": id,
      "stoa.execution.type": "WORKFLOW",
      "stoa.execution.status": "completed",
      "stoa.product.id": workflowId,
      "stoa.product.version": "1.0.0",
      "stoa.workflow.depth": 1,
    });
    const prompt = await spanOf(drive.traceId, "step prompt");
    const join = await spanOf(drive.traceId, "step transform");
    assertNested(drive, prompt, await spanOf(drive.traceId, CHAT));
    assertNested(drive, join);
    assertAttributes(prompt, {
      "stoa.step.id": "outline",
      "stoa.step.result": "completed",
      "stoa.step.attempt": 1,
    });
  });

  test("called by another run: linked to the calling step", async () => {
    const inner = await createWorkflow(author, { steps: [transformStep("one", "1")] });
    const step = { id: "called", type: "product", productId: inner, variables: {} };
    const outer = await createWorkflow(author, { steps: [step] });
    const worker = startWorker(market);
    const { status } = await executeWorkflow(author, outer);
    assert.equal(status, "completed");
    await worker.stop();
    const drive = await spanWhere("the run", ({ attributes }) => attributes["stoa.product.id"] === inner);
    const caller = await spanWhere("the step", ({ spanId }) => spanId === drive.links[0]?.spanId);
    assert.equal(caller.name, "step product");
    assertAttributes(caller, { "stoa.step.result": "called" });
    assertAttributes(drive, { "stoa.workflow.depth": 2 });
  });

  test("failed: has error codes", async () => {
    const workflowId = await createWorkflow(author, { steps: [transformStep("bad", 'int("words")')] });
    const worker = startWorker(market);
    const reply = await postExecution(author, workflowId, {}, { prefer: "wait=30" });
    await worker.stop();
    const id = reply.body.data.executionId;
    const drive = await spanWhere(
      "the run",
      ({ name, attributes }) => name === "invoke_workflow" && attributes["stoa.execution.id"] === id,
    );
    const step = await spanOf(drive.traceId, "step transform");
    for (const span of [drive, step]) {
      assert.equal(span.isError, true, span.name);
      assertAttributes(span, { "error.type": "EXPRESSION_FAILED" });
    }
  });
});

test("a delivery: a span with event, attempt and host, without path", async () => {
  const { deliver, happens, hasEndpoint } = webhookHelpers(
    () => market,
    () => receiver,
  );
  await hasEndpoint(author, { url: `${receiver.url}/PATHMARK?secret=QUERYMARK` });
  const event = await happens(author);
  receiver.answer = 503;
  await deliver();
  const span = await spanWhere("the delivery", ({ name }) => name === "deliver webhook");
  assert.equal(span.kind, KIND.client);
  assert.equal(span.isError, true);
  assertAttributes(span, {
    "http.request.method": "POST",
    "http.response.status_code": 503,
    "error.type": "503",
    "server.address": "127.0.0.1",
    "server.port": Number(new URL(receiver.url).port),
    "stoa.event.id": /^evt_/,
    "stoa.delivery.id": /^dlv_/,
    "stoa.delivery.attempt": 1,
  });
  assert.ok(event.length > 0);
  const [{ headers }] = receiver.received as [(typeof receiver.received)[number]];
  assert.equal(headers["traceparent"], undefined, "receivers are told nothing of it");
  const all = Buffer.concat(collector.bodies).toString();
  for (const mark of ["PATHMARK", "QUERYMARK"]) assert.ok(!all.includes(mark), mark);
});

test("a job: a span with its name, and the error code if it fails", async () => {
  const { ctx } = market.service;
  const fail = () => Promise.reject(Object.assign(new Error("WORDMARK"), { code: "E_BROKEN" }));
  const queue = await startJobWorker(ctx, [], [{ ...sendEmailJob, run: fail }]);
  await ctx.jobs.send(ctx.db, sendEmailJob.name, {});
  const span = await spanWhere("the job", ({ name }) => name === `job ${sendEmailJob.name}`);
  await queue.stop();
  assert.equal(span.isError, true);
  assert.deepEqual(span.attributes, { "error.type": "E_BROKEN" });
  assert.ok(!Buffer.concat(collector.bodies).toString().includes("WORDMARK"));
});

suite("metrics", () => {
  const isCall = ({ attributes }: SentPoint) => attributes["gen_ai.provider.name"] === "openai";
  const advised = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

  test("have the names, units and bounds of the GenAI conventions", async () => {
    const isDone = ({ attributes }: SentPoint) => attributes["error.type"] === undefined;
    const done = await pointWhere(
      "gen_ai.client.operation.duration",
      (point) => isCall(point) && isDone(point),
    );
    assert.deepEqual(done.attributes, { ...CALL, ...server(), "gen_ai.request.model": "gpt-5-mini" });
    assert.deepEqual(done.bounds, advised);
    assert.ok(done.count! > 0 && done.value > 0);
    const failed = await pointWhere(
      "gen_ai.client.operation.duration",
      ({ attributes }) => attributes["error.type"] === "PROVIDER_KEY_INVALID",
    );
    assert.equal(failed.attributes["gen_ai.request.model"], undefined, "nobody knows whether it is one");
    const first = await pointWhere("gen_ai.client.operation.time_to_first_chunk", isCall);
    assert.deepEqual(first.bounds, advised);
    const input = await pointWhere(
      "gen_ai.client.token.usage",
      (point) => isCall(point) && point.attributes["gen_ai.token.type"] === "input",
    );
    assert.equal(input.value, input.count! * 12);
    assert.deepEqual(input.bounds?.slice(0, 4), [1, 4, 16, 64]);
    assert.equal(input.bounds?.at(-1), 67_108_864);
    const units = [
      "gen_ai.client.operation.duration",
      "gen_ai.client.token.usage",
      "gen_ai.workflow.duration",
    ];
    assert.deepEqual(
      units.map((name) => collector.metric(name)?.unit),
      ["s", "{token}", "s"],
    );
  });

  test("count runs by type and status", async () => {
    for (const [type, status] of [
      ["PROMPT", "completed"],
      ["PROMPT", "failed"],
      ["PROMPT", "canceled"],
      ["WORKFLOW", "completed"],
      ["WORKFLOW", "failed"],
    ]) {
      const { value } = await pointWhere(
        "stoa.runs",
        ({ attributes }) =>
          attributes["stoa.execution.type"] === type && attributes["stoa.execution.status"] === status,
      );
      assert.ok(value > 0, `${type} ${status}`);
    }
  });

  test("count circuit openings; /metrics has the same number", async () => {
    const apiKeyId = await createProviderKey(author);
    for (let fault = 0; fault < FAULTS_TO_OPEN; fault++) {
      for (let call = 0; call < 3; call++) provider.next({ status: 500 });
      await run(author, { ...input, apiKeyId });
    }
    const opening = await pointWhere("stoa.provider.circuit.openings", isCall);
    assert.deepEqual([opening.value, opening.attributes["server.address"]], [1, "127.0.0.1"]);
    const { text } = await market.as(null).get("/metrics");
    for (const line of [
      /^stoa_provider_circuit_openings_total\{gen_ai_provider_name="openai",server_address="127\.0\.0\.1"\} 1$/m,
      /^stoa_runs_total\{stoa_execution_type="WORKFLOW",stoa_execution_status="completed"\} [1-9]/m,
      /^gen_ai_client_operation_duration_seconds_count\{gen_ai_operation_name="chat",gen_ai_provider_name="openai"\} [1-9]/m,
      /^gen_ai_client_token_usage_count\{.*gen_ai_token_type="output"\} [1-9]/m,
      /^http_request_duration_seconds_count/m,
    ])
      assert.match(text, line);
  });
});
