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

type Fate = "answer" | Error;

/** Providers that do what they are told next, after a piece if it is a stream that `breaksMidway`. */
function fatedProviders() {
  const clock = { ms: 0 };
  const fates: Fate[] = [];
  const seen = { calls: 0, breaksMidway: false, ended: 0 };
  const next = () => {
    seen.calls++;
    const fate = fates.shift() ?? "answer";
    if (fate instanceof Error) throw fate;
    return answer;
  };
  const raw: AiProviders = {
    run: async () => next(),
    async *stream() {
      try {
        if (seen.breaksMidway) yield "a";
        const whole = next();
        yield "b";
        return whole;
      } finally {
        seen.ended++;
      }
    },
    verify: async () => "valid",
  };
  const providers = withBreaker(raw, new CircuitBreaker({ now: () => clock.ms, random: () => 0 }));
  const ways = {
    run: (wish: Partial<ProviderCall> = {}) => providers.run({ ...call, ...wish }),
    stream: async (wish: Partial<ProviderCall> = {}) => {
      let output = "";
      for await (const piece of providers.stream({ ...call, ...wish })) output += piece;
      return output;
    },
  };
  return { clock, fates, seen, providers, ways };
}

const fault = (code: ProviderError["code"], facts: Partial<ProviderError["info"]> = {}) =>
  new ProviderError(code, { provider: "openai", attempts: 1, ...facts });

const failing = [
  fault("PROVIDER_ERROR", { status: 500, attempts: 3 }),
  fault("PROVIDER_ERROR", { reason: "unreachable" }),
  fault("PROVIDER_TIMEOUT", { phase: "connect" }),
  fault("PROVIDER_TIMEOUT", { phase: "first_byte" }),
  fault("PROVIDER_TIMEOUT", { phase: "idle" }),
  fault("PROVIDER_TIMEOUT", { phase: "total" }),
];
/** The caller's, or refusals, which show that somebody is there. */
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
const sayingNothing = [
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

for (const way of ["run", "stream"] as const) {
  test(`${way}: five faults of the provider in a row refuse the next calls until one trial is answered`, async () => {
    for (const error of failing) {
      const { clock, fates, seen, ways } = fatedProviders();
      fates.push(...Array(FAULTS_TO_OPEN).fill(error));
      for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways[way](), error);
      await assert.rejects(ways[way](), (refusal: ProviderError) => {
        assert.equal(refusal.retryAfterSeconds, OPEN_MS / 1000);
        return isUnavailable(refusal);
      });
      assert.equal(seen.calls, FAULTS_TO_OPEN, "the provider is left alone");
      clock.ms += OPEN_MS;
      await ways[way]();
      await ways[way]();
      assert.equal(seen.calls, FAULTS_TO_OPEN + 2);
    }
  });

  test(`${way}: refusals and whatever says nothing of the provider open nothing`, async () => {
    for (const error of [...answering, ...sayingNothing]) {
      const { fates, ways } = fatedProviders();
      fates.push(...Array(3 * FAULTS_TO_OPEN).fill(error));
      for (let at = 0; at < 3 * FAULTS_TO_OPEN; at++) await assert.rejects(ways[way](), error);
      await ways[way]();
    }
  });

  test(`${way}: a refusal between faults begins the count anew, and what says nothing does not`, async () => {
    const broken = failing[0]!;
    const afterFour = async (between: Error) => {
      const { fates, ways } = fatedProviders();
      fates.push(...Array(4).fill(broken), between, broken);
      for (let at = 0; at < 6; at++) await ways[way]().catch(() => {});
      return ways[way]().then(
        () => "answered",
        () => "refused",
      );
    };
    for (const between of answering) assert.equal(await afterFour(between), "answered", between.code);
    for (const between of sayingNothing) assert.equal(await afterFour(between), "refused");
  });

  test(`${way}: another key, address or provider is not touched`, async () => {
    const { fates, ways } = fatedProviders();
    fates.push(...Array(FAULTS_TO_OPEN).fill(failing[0]));
    for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways[way]());
    for (const wish of [{ apiKey: "two" }, { baseUrl: "https://x.example" }, { provider: "groq" as const }])
      await ways[way](wish);
    await assert.rejects(ways[way](), isUnavailable);
    await assert.rejects(ways[way]({ model: "other" }), isUnavailable);
  });
}

test("streams and whole answers share a circuit, and a stream that breaks behind its first word counts", async () => {
  const { fates, seen, ways } = fatedProviders();
  seen.breaksMidway = true;
  fates.push(...Array(FAULTS_TO_OPEN).fill(failing[4]));
  for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(at % 2 ? ways.run() : ways.stream());
  await assert.rejects(ways.stream(), isUnavailable);
  await assert.rejects(ways.run(), isUnavailable);
});

test("of a trial that streams, the first word lets the others through", async () => {
  const { clock, fates, providers, ways } = fatedProviders();
  fates.push(...Array(FAULTS_TO_OPEN).fill(failing[0]));
  for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways.run());
  clock.ms += OPEN_MS;
  const trial = providers.stream(call);
  await trial.next();
  await ways.run();
  assert.equal((await trial.next()).value, answer);
});

test("a stream that its reader leaves ends at the provider, and a trial that is left makes room for another", async () => {
  const { clock, fates, seen, providers, ways } = fatedProviders();
  for await (const _ of providers.stream(call)) break;
  assert.equal(seen.ended, 1);
  fates.push(...Array(FAULTS_TO_OPEN).fill(failing[0]), new Error("gone"));
  for (let at = 0; at < FAULTS_TO_OPEN; at++) await assert.rejects(ways.run());
  clock.ms += OPEN_MS;
  await assert.rejects(ways.stream(), { message: "gone" });
  await ways.stream();
});
