import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createDraft } from "../../../test/factories.ts";
import { oneOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type Next, type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import type { Break } from "../../../test/provider-stream.ts";
import { executionOf, readWholeStream, streamRun } from "../../../test/run-streams.ts";
import { createProviderKey, newestRun, providersAt, run } from "../../../test/runs.ts";

const MARKER = "the-authors-secret-prompt";
const formats = ["openai", "anthropic", "google", "openai-compatible"] as const;

interface Shop {
  market: Market;
  owner: Client;
  requestOf(format: string): { productId: string; apiKeyId: string };
}

let provider: ProviderServer;
/** Each scenario shortens one deadline, so that a busy machine meets no other. */
let patient: Shop;
let noSilence: Shop;
let noLength: Shop;
before(async () => {
  provider = await startProviderServer();
  patient = await openShop({});
  noSilence = await openShop({ idleMs: 500 });
  noLength = await openShop({ totalMs: 1_000 });
});
after(async () => {
  for (const { market } of [patient, noSilence, noLength]) await market.close();
  await provider.close();
});

async function openShop(deadlines: { idleMs?: number; totalMs?: number }): Promise<Shop> {
  let hours = 0;
  const market = await openMarket({
    // Hours between calls, so that an open circuit does not refuse the next one.
    ...{ providers: providersAt(provider), deadlines, breaker: { now: () => hours++ * 3_600_000 } },
  });
  const owner = await market.createUser();
  const productId = await createDraft(owner, {
    content: `${MARKER} {{topic}}`,
    compatibility: ["openai", "anthropic", "google"],
  });
  const keys = new Map<string, string>();
  for (const format of formats) {
    const baseUrl = format === "openai-compatible" ? { baseUrl: provider.url } : {};
    keys.set(format, await createProviderKey(owner, { provider: format, ...baseUrl }));
  }
  const requestOf = (format: string) => ({
    ...{ productId, apiKeyId: keys.get(format)!, options: { model: "some-model" } },
  });
  return { market, owner, requestOf };
}

for (const format of formats)
  suite(`a stream of ${format}`, () => {
    const broken = (breaks: Break): Next => ({ stream: { breaks, after: 1 } });
    const rows: [string, Break, string, string?][] = [
      ["connection cut", "cut", "PROVIDER_BAD_RESPONSE"],
      ["connection cut within a frame", "cut-in-frame", "PROVIDER_BAD_RESPONSE"],
      ["clean end within a frame", "close", "PROVIDER_BAD_RESPONSE"],
      ["end without a finish reason", "no-finish", "PROVIDER_BAD_RESPONSE"],
      ["malformed frame", "bad-json", "PROVIDER_BAD_RESPONSE"],
      ["error frame", "error", "PROVIDER_ERROR"],
      ["silence within the output", "stall", "PROVIDER_TIMEOUT", "idle"],
      ["endless comments", "trickle", "PROVIDER_TIMEOUT", "total"],
    ];
    // A deadline takes its whole time.
    const isTried = (phase?: string) =>
      oneOf(formats, phase === "idle" ? 0 : 1).includes(format) || phase === undefined;
    for (const [when, breaks, code, phase] of rows.filter(([, , , phase]) => isTried(phase)))
      test(`${when}: fails with ${code}, stores the output so far and estimates its tokens`, async () => {
        provider.next(broken(breaks));
        const { market, owner, requestOf } = { idle: noSilence, total: noLength }[phase ?? ""] ?? patient;
        const listener = await streamRun(market.origin, owner, requestOf(format));
        const { types, text, end } = await readWholeStream(listener);
        assert.deepEqual(types, ["execution.started", "output.delta", "execution.failed"]);
        assert.equal(text, "An ");
        const executionId = executionOf(listener);
        assert.deepEqual(
          [end.code, end.details.phase, end.details.source, end.details.attempts, end.details.executionId],
          [code, phase, "provider", 1, executionId],
        );
        assert.ok(end.message && end.docUrl && !JSON.stringify(end).includes(MARKER));
        const { status, error, output, usage } = (await owner.get(`/v1/ai/executions/${executionId}`)).body
          .data;
        assert.deepEqual([status, error.code, output], ["failed", code, "An "]);
        assert.deepEqual([usage.completionTokens, usage.estimated], [1, true]);
      });

    const early: [string, Next, number, string, number?][] = [
      ["error as first frame", { stream: { breaks: "error", after: 0 } }, 502, "PROVIDER_ERROR", 3],
      ["malformed first frame", { stream: { breaks: "bad-json", after: 0 } }, 502, "PROVIDER_BAD_RESPONSE"],
      ["empty stream", { stream: { breaks: "no-finish", after: 0 } }, 502, "PROVIDER_BAD_RESPONSE"],
      ["502 in HTML", { status: 502, body: "<h1>Bad gateway</h1>" }, 502, "PROVIDER_ERROR", 3],
      [
        "200 with an error body",
        { status: 200, body: { error: { code: 402 } } },
        424,
        "PROVIDER_QUOTA_EXHAUSTED",
      ],
      ["refused key", "bad-key", 424, "PROVIDER_KEY_INVALID"],
      ["too long prompt", "context", 422, "CONTEXT_LENGTH_EXCEEDED"],
      ["filtered answer", "filter", 422, "CONTENT_FILTERED"],
      ["lost connection", "reset", 502, "PROVIDER_BAD_RESPONSE"],
    ];
    for (const [when, reply, status, code, attempts = 1] of early)
      test(`${when}: ${status} ${code}`, async () => {
        for (let at = 0; at < attempts; at++) provider.next(reply);
        const { owner, requestOf } = patient;
        const answer = await run(owner, { ...requestOf(format), stream: true });
        const details = assertError(answer, status, code as "PROVIDER_ERROR");
        assert.equal(details.attempts, attempts);
        const { id, status: storedStatus, error, mode } = await newestRun(owner);
        assert.deepEqual(
          [id, storedStatus, error.code, mode],
          [details.executionId, "failed", code, "stream"],
        );
      });
  });

test("repeated request for a stream that broke off: gets the same error with all details", async () => {
  const { market, owner, requestOf } = noSilence;
  provider.next({ stream: { breaks: "stall", after: 1 } });
  const headers = { "idempotency-key": "stalled" };
  const results = [];
  for (const _ of [1, 2])
    results.push(await readWholeStream(await streamRun(market.origin, owner, requestOf("openai"), headers)));
  assert.equal(results[0]!.end.details.phase, "idle");
  assert.deepEqual(results[1], results[0]);
});
