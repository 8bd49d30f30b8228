import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createDraft } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { gatedPieces, streamRun } from "../../../test/run-streams.ts";
import { createProviderKey, providersAt, run, runToCompletion } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  promptStep,
  startExecution,
  startWorker,
  stepOf,
  untilStatus,
} from "../../../test/workflows.ts";
import { AnswerMemory } from "../../integrations/ai-providers/answer-memory.ts";
import { LiveEvents } from "./live-events.ts";

const MEMORY = 1_000_000;
const PIECE = 100_000;

suite("memory for answers of a process", () => {
  const answerMemory = new AnswerMemory(MEMORY);
  let provider: ProviderServer;
  let market: Market;
  let owner: Client;
  let request: { productId: string; apiKeyId: string };
  before(async () => {
    provider = await startProviderServer();
    market = await openMarket({ providers: providersAt(provider), answerMemory });
    owner = await market.createUser();
    request = { productId: await createDraft(owner), apiKeyId: await createProviderKey(owner) };
  });
  after(async () => {
    await market.close();
    await provider.close();
  });

  const piecesOf = (count: number) => Array.from({ length: count }, () => "x".repeat(PIECE));
  const mustBeFree = () =>
    becomes(
      async () => answerMemory.used,
      (used) => used === 0,
    );

  for (const [words, next] of [
    ["streamed by the provider", { stream: { pieces: piecesOf(4) } }],
    ["sent by the provider as one JSON text", { answer: { text: "x".repeat(4 * PIECE) } }],
  ] as const)
    test(`POST /ai/execute: answers of 400,000 characters, ${words}, beside one in memory: are 503, as over the limit`, async () => {
      const held = gatedPieces();
      held.allow(3);
      provider.always({ stream: { pieces: piecesOf(4), gate: held.gate } });
      const first = run(owner, request);
      await becomes(
        async () => answerMemory.used,
        (used) => used === 3 * PIECE,
      );
      if ("stream" in next) provider.always(next);
      else provider.always({ status: 200, body: completionOf(next.answer.text), chunk: 65_536 });
      const refused = await Promise.all(Array.from({ length: 3 }, () => run(owner, request)));
      held.allowAll();
      assert.equal((await first).status, 200);
      for (const reply of refused) {
        const details = assertError(reply, 503, "SERVICE_UNAVAILABLE");
        assert.deepEqual([details.source, details.reason], ["marketplace", "memory_full"]);
        assert.match(reply.body.error.message, /maxTokens/);
        const { body } = await owner.get(`/v1/ai/executions/${details.executionId}`);
        const { status, error, usage } = body.data;
        assert.deepEqual([status, error.code, usage.estimated], ["failed", "SERVICE_UNAVAILABLE", true]);
      }
      await mustBeFree();
      assert.equal((await runToCompletion(owner, request)).output.length, 4 * PIECE);
    });

  test("short answer beside long ones: completes", async () => {
    const long = gatedPieces();
    long.allow(3);
    provider.always({ stream: { pieces: piecesOf(5), gate: long.gate } });
    const running = Array.from({ length: 2 }, () => run(owner, request));
    await becomes(
      async () => answerMemory.used,
      (used) => used === 6 * PIECE,
    );
    provider.always({ answer: { text: "Short." } });
    assert.equal((await runToCompletion(owner, request)).output, "Short.");
    long.allowAll();
    const statuses = (await Promise.all(running)).map(({ status }) => status);
    assert.ok(statuses.includes(503), "at least one long answer is refused");
  });

  test("ended run with a slow reader: keeps its memory until the reader has left", async () => {
    provider.always({ stream: { pieces: piecesOf(2) } });
    const { ctx } = market.service;
    const listener = await streamRun(market.service.origin, owner, request);
    await listener.ended;
    await mustBeFree();
    const live = ctx.liveRuns.begin(ctx.newId());
    live.append("x".repeat(2 * PIECE));
    const { signal } = new AbortController();
    const busy = Promise.withResolvers<void>();
    const reading = new LiveEvents(live, { offset: 0, signal }).readEach(() => busy.promise);
    live.end({ type: "execution.completed", data: {} });
    ctx.liveRuns.remove(live.id);
    assert.equal(answerMemory.used, 2 * PIECE);
    busy.reject(new Error("the reader has left"));
    await assert.rejects(reading, { message: "the reader has left" });
    assert.equal(answerMemory.used, 0);
  });

  test("workflow steps over the limit: fail as SERVICE_UNAVAILABLE", async () => {
    const { stop } = startWorker(market);
    const gated = gatedPieces();
    provider.always({ stream: { pieces: piecesOf(4), gate: gated.gate } });
    const ids = Array.from({ length: 3 }, (_, at) => `s${at}`);
    const workflowId = await createWorkflow(owner, {
      steps: ids.map((id) => promptStep(id, "Much.", { onError: "continue" })),
    });
    gated.allow(2);
    const executionId = await startExecution(owner, workflowId, { apiKeys: { openai: request.apiKeyId } });
    await becomes(
      async () => answerMemory.used,
      (characters) => characters === 3 * 2 * PIECE,
    );
    gated.allowAll();
    await untilStatus(owner, executionId, "completed");
    const steps = await Promise.all(ids.map((id) => stepOf(owner, executionId, id)));
    const failed = steps.filter(({ status }) => status === "failed");
    assert.ok(failed.length > 0 && failed.length < ids.length, `${failed.length} steps failed`);
    for (const { error } of failed) assert.equal(error.code, "SERVICE_UNAVAILABLE");
    await stop();
    await mustBeFree();
  });
});

const completionOf = (content: string) => ({
  model: "some-model",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
});
