import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import pg from "pg";
import { createDraft } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { followRun, gatedPieces, readWholeStream } from "../../../test/run-streams.ts";
import { createProviderKey, providersAt, run } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { failAbandonedRuns } from "../executions/executions.ts";
import { RUN_LEASE_MS } from "./run-record.ts";

const ASYNC = { prefer: "respond-async" };

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
let apiKeyId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  owner = await market.createUser();
  productId = await createDraft(owner, { models: { openai: "gpt-4o" } });
  apiKeyId = await createProviderKey(owner);
});
after(async () => {
  await market.close();
  await provider.close();
});

const accepted = async (headers: Record<string, string> = {}, more: object = {}) => {
  const reply = await run(owner, { productId, apiKeyId, ...more }, { ...ASYNC, ...headers });
  assert.equal(reply.status, 202, reply.text);
  return reply;
};
const ended = (statusUrl: string) =>
  becomes(
    async () => (await owner.get(statusUrl)).body.data,
    ({ completedAt }) => completedAt !== null,
  );

suite("Prefer: respond-async", () => {
  test("run: 202 with its URLs at once, and it continues without the client", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { pieces: ["One ", "two"], gate: gated.gate } });
    const reply = await accepted();
    assert.equal(reply.headers.get("preference-applied"), "respond-async");
    const { executionId, status, statusUrl, eventsUrl, createdAt } = reply.body.data;
    assert.deepEqual(
      { status, statusUrl, eventsUrl, createdAt },
      {
        status: "running",
        statusUrl: `${market.origin}/v1/ai/executions/${executionId}`,
        eventsUrl: `${market.origin}/v1/ai/executions/${executionId}/events`,
        createdAt: market.clock.now.toISOString(),
      },
    );
    const reader = await followRun(market.origin, owner, executionId);
    gated.allow(1);
    await reader.waitForEvents(2);
    assert.equal((await owner.get(statusUrl)).body.data.status, "running");
    gated.allowAll();
    const { text, end } = await readWholeStream(reader);
    assert.deepEqual([text, end.metadata.mode], ["One two", "async"]);
    const { output, mode } = await ended(statusUrl);
    assert.deepEqual([output, mode], ["One two", "async"]);
  });

  test("with stream: true: streams instead", async () => {
    const reply = await run(owner, { productId, stream: true }, ASYNC);
    assert.deepEqual(
      [reply.status, reply.headers.get("content-type"), reply.headers.get("preference-applied")],
      [200, "text/event-stream", null],
    );
  });

  test("invalid request: is refused at once; later failures are recorded", async () => {
    assertError(
      await run(owner, { productId, apiKeyId, variables: {} }, ASYNC),
      422,
      "VALIDATION_ERROR",
      "variables.topic",
    );
    provider.next({ status: 418 });
    const { statusUrl } = (await accepted()).body.data;
    const { status, error } = await ended(statusUrl);
    assert.deepEqual([status, error.code], ["failed", "PROVIDER_ERROR"]);
  });

  test("requests at once with one Idempotency-Key: one run", async () => {
    const before = provider.requests.length;
    const headers = { ...ASYNC, "idempotency-key": "fifty" };
    const replies = await Promise.all(
      Array.from({ length: runs(50) }, () => run(owner, { productId, apiKeyId }, headers)),
    );
    const successes = replies.filter(({ status }) => status === 202);
    assert.equal(new Set(successes.map(({ body }) => body.data.executionId)).size, 1);
    for (const { status } of replies) assert.ok(status === 202 || status === 409, String(status));
    await ended(successes[0]!.body.data.statusUrl);
    assert.equal(provider.requests.length, before + 1);
  });

  test("history: filters by mode", async () => {
    const { executionId } = (await accepted()).body.data;
    await run(owner, { productId });
    const list = await owner.get("/v1/ai/executions?mode=async&limit=1");
    assert.equal(list.body.data[0].id, executionId);
    assert.ok(
      (await owner.get("/v1/ai/executions?mode=sync")).body.data.every(
        ({ mode }: { mode: string }) => mode === "sync",
      ),
    );
    assertError(await owner.get("/v1/ai/executions?mode=loud"), 400, "INVALID_REQUEST", "mode");
  });
});

for (const [words, graceMs, expected] of [
  ["waits for a running execution", 3_600_000, { status: "completed", code: null }],
  ["aborts a running execution after the grace period", 100, { status: "failed", code: "shutdown" }],
] as const)
  test(`shutdown: ${words}`, async () => {
    const shop = await openMarket({ providers: providersAt(provider), graceMs });
    const database = new pg.Client({ connectionString: shop.target });
    await database.connect();
    const somebody = await shop.createUser();
    const request = { productId: await createDraft(somebody), apiKeyId: await createProviderKey(somebody) };
    const gated = gatedPieces();
    provider.next({ stream: { gate: gated.gate } });
    await run(somebody, request, ASYNC);
    const closing = shop.service.close();
    if (expected.status === "completed") gated.allowAll();
    await closing;
    const { rows } = await database.query("select status, error_code as code from executions");
    await database.end();
    assert.deepEqual(rows, [expected]);
  });

test("run of a dead process: its stream ends with a failure, and no second call is made", async () => {
  const before = provider.requests.length;
  provider.next("hang");
  const arrival = provider.nextRequest();
  const { executionId } = (await accepted()).body.data;
  await arrival;
  // As after a kill: this process does not have the run.
  const { liveRuns } = market.service.ctx;
  const lost = liveRuns.ids.map((id) => liveRuns.get(id)!);
  for (const { id } of lost) liveRuns.remove(id);
  const reader = await followRun(market.origin, owner, executionId);
  await reader.waitForEvents(1);
  market.clock.forward(RUN_LEASE_MS + 1);
  await failAbandonedRuns(market.service.ctx);
  const { end } = await readWholeStream(reader);
  assert.equal(end.code, "INTERNAL_ERROR");
  assert.equal(provider.requests.length, before + 1);
  for (const run of lost) run.abort("canceled");
});
