import assert from "node:assert/strict";
import { test } from "node:test";
import { CircuitBreaker, FAULTS_TO_OPEN, OPEN_MS } from "../egress/circuit-breaker.ts";
import { type AiProviders, type ProviderAnswer, type ProviderCall, ProviderError } from "./ai-provider.ts";
import { withBreaker } from "./circuit-breaker.ts";

const answer: ProviderAnswer = {
  ...{ output: "ab", model: "m", finishReason: "stop", attempts: 1 },
  usage: { promptTokens: 1, completionTokens: 1, totalTokens: 2 },
};
const call: ProviderCall = {
  ...{ provider: "openai", apiKey: "one", baseUrl: null, model: "m", messages: [], options: {} },
  signal: new AbortController().signal,
};

type ScriptedResult = "answer" | Error;

/** Providers with scripted results. With `breaksMidway` a stream yields one piece first. */
function openScriptedProviders() {
  const clock = { ms: 0 };
  const script: ScriptedResult[] = [];
  const seen = { calls: 0, breaksMidway: false };
  const next = () => {
    seen.calls++;
    const result = script.shift() ?? "answer";
    if (result instanceof Error) throw result;
    return answer;
  };
  const raw: AiProviders = {
    run: async () => next(),
    embed: async () => ({ ...next(), vectors: [[1]] }),
    async stream(_, onPiece) {
      if (seen.breaksMidway) await onPiece("a");
      const finalAnswer = next();
      await onPiece("b");
      return finalAnswer;
    },
    verify: async () => "valid",
  };
  const providers = withBreaker(raw, new CircuitBreaker({ now: () => clock.ms, random: () => 0 }));
  const ways = {
    run: (fields: Partial<ProviderCall> = {}) => providers.run({ ...call, ...fields }),
    stream: async (fields: Partial<ProviderCall> = {}) => {
      await providers.stream({ ...call, ...fields }, () => undefined);
    },
    embed: (fields: Partial<ProviderCall> = {}) => providers.embed({ ...call, texts: ["x"], ...fields }),
  };
  return { clock, script, seen, providers, ways };
}

const fault = (code: ProviderError["code"], info: Partial<ProviderError["info"]> = {}) =>
  new ProviderError(code, { provider: "openai", attempts: 1, ...info });

const failing = [
  fault("PROVIDER_ERROR", { status: 500, attempts: 3 }),
  fault("PROVIDER_ERROR", { reason: "unreachable" }),
  fault("PROVIDER_TIMEOUT", { phase: "connect" }),
  fault("PROVIDER_TIMEOUT", { phase: "first_byte" }),
  fault("PROVIDER_TIMEOUT", { phase: "idle" }),
  fault("PROVIDER_TIMEOUT", { phase: "total" }),
];
/** Errors of the caller, or refusals, which show that the provider works. */
const answering = [
  fault("PROVIDER_ERROR", { status: 418, reason: "request_refused" }),
  ...(["PROVIDER_KEY_INVALID", "PROVIDER_PERMISSION_DENIED", "PROVIDER_QUOTA_EXHAUSTED"] as const).map(
    (code) => fault(code),
  ),
  ...(["PROVIDER_RATE_LIMITED", "CONTENT_FILTERED", "CONTEXT_LENGTH_EXCEEDED"] as const).map((code) =>
    fault(code),
  ),
  fault("PROVIDER_NOT_SUPPORTED", { reason: "model_not_found" }),
];
const neutral = [
  new Error("gone"),
  fault("PROVIDER_BAD_RESPONSE"),
  fault("PROVIDER_ERROR", { reason: "address_refused" }),
  fault("PROVIDER_ERROR", { reason: "call_failed" }),
  fault("PROVIDER_NOT_SUPPORTED", { reason: "no_base_url", attempts: 0 }),
];

const isUnavailable = (error: unknown) => {
  assert.ok(error instanceof ProviderError);
  assert.deepEqual([error.code, error.attempts], ["PROVIDER_UNAVAILABLE", 0]);
  assert.ok(!JSON.stringify(error.details).includes(call.apiKey));
  return true;
};

for (const way of ["run", "stream", "embed"] as const) {
  test(`${way}: five consecutive failures: later calls are refused until a trial succeeds`, async () => {
    for (const error of failing) {
      const { clock, script, seen, ways } = openScriptedProviders();
      script.push(...Array(FAULTS_TO_OPEN).fill(error));
      for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways[way](), error);
      await assert.rejects(ways[way](), (refusal: ProviderError) => {
        assert.equal(refusal.retryAfterSeconds, OPEN_MS / 1000);
        return isUnavailable(refusal);
      });
      assert.equal(seen.calls, FAULTS_TO_OPEN, "the provider is not called");
      clock.ms += OPEN_MS;
      await ways[way]();
      await ways[way]();
      assert.equal(seen.calls, FAULTS_TO_OPEN + 2);
    }
  });

  test(`${way}: refusals and neutral errors: do not open the circuit`, async () => {
    for (const error of [...answering, ...neutral]) {
      const { script, ways } = openScriptedProviders();
      script.push(...Array(3 * FAULTS_TO_OPEN).fill(error));
      for (let at = 0; at < 3 * FAULTS_TO_OPEN; at++) await assert.rejects(ways[way](), error);
      await ways[way]();
    }
  });

  test(`${way}: refusal between failures: resets the count; a neutral error does not`, async () => {
    const broken = failing[0]!;
    const afterFour = async (between: Error) => {
      const { script, ways } = openScriptedProviders();
      script.push(...Array(4).fill(broken), between, broken);
      for (let at = 0; at < 6; at++) await ways[way]().catch(() => {});
      return ways[way]().then(
        () => "answered",
        () => "refused",
      );
    };
    for (const between of answering) assert.equal(await afterFour(between), "answered", between.code);
    for (const between of neutral) assert.equal(await afterFour(between), "refused");
  });

  test(`${way}: other key, address or provider: has its own circuit`, async () => {
    const { script, ways } = openScriptedProviders();
    script.push(...Array(FAULTS_TO_OPEN).fill(failing[0]));
    for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways[way]());
    for (const fields of [{ apiKey: "two" }, { baseUrl: "https://x.example" }, { provider: "groq" as const }])
      await ways[way](fields);
    await assert.rejects(ways[way](), isUnavailable);
    await assert.rejects(ways[way]({ model: "other" }), isUnavailable);
  });
}

test("streams and single answers: share a circuit, and a stream that breaks later counts", async () => {
  const { script, seen, ways } = openScriptedProviders();
  seen.breaksMidway = true;
  script.push(...Array(FAULTS_TO_OPEN).fill(failing[4]));
  for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(at % 2 ? ways.run() : ways.stream());
  await assert.rejects(ways.stream(), isUnavailable);
  await assert.rejects(ways.run(), isUnavailable);
});

test("trial with a stream: its first piece closes the circuit", async () => {
  const { clock, script, providers, ways } = openScriptedProviders();
  script.push(...Array(FAULTS_TO_OPEN).fill(failing[0]));
  for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways.run());
  clock.ms += OPEN_MS;
  const reader = Promise.withResolvers<void>();
  const trial = providers.stream(call, () => reader.promise);
  await ways.run();
  reader.resolve();
  assert.equal(await trial, answer);
});

test("trial whose stream ends with our own error: another trial is allowed", async () => {
  const { clock, script, ways } = openScriptedProviders();
  script.push(...Array(FAULTS_TO_OPEN).fill(failing[0]), new Error("gone"));
  for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways.run());
  clock.ms += OPEN_MS;
  await assert.rejects(ways.stream(), { message: "gone" });
  await ways.stream();
});
