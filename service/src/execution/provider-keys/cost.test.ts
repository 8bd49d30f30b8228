import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  defaultModels,
  type ProviderId,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";
import { type PricedCall, priceUsage, roundUsd } from "./cost.ts";

const used = (
  promptTokens: number,
  completionTokens: number,
  more: Partial<TokenUsage> = {},
): TokenUsage => ({
  promptTokens,
  completionTokens,
  totalTokens: promptTokens + completionTokens,
  ...more,
});

function priceOf(provider: ProviderId, model: string, usage: TokenUsage, more: Partial<PricedCall> = {}) {
  return priceUsage({ provider, model, usage, at: new Date("2026-11-01T12:00:00Z"), ...more });
}

test("cost: tokens at the list price, without the noise of binary fractions", () => {
  // gpt-5-mini: 0.25 and 2 USD for a million tokens.
  assert.deepEqual(priceOf("openai", "gpt-5-mini", used(1000, 1000)), {
    estimatedCost: 0.00225,
    costKnown: true,
  });
});

test("dated model name: has the price of its model", () => {
  const { estimatedCost } = priceOf("openai", "gpt-5-mini-2025-08-07", used(1000, 1000));
  assert.equal(estimatedCost, 0.00225);
});

test("model name that only the server knows: has the price of the requested model", () => {
  const cost = priceOf("openai", "internal-name", used(1000, 1000), { askedModel: "gpt-5-mini" });
  assert.equal(cost.estimatedCost, 0.00225);
});

test("cached tokens: cost less, and a count above all tokens is cut", () => {
  const plain = priceOf("openai", "gpt-5-mini", used(1000, 0)).estimatedCost;
  const cached = priceOf("openai", "gpt-5-mini", used(1000, 0, { cachedTokens: 1000 })).estimatedCost;
  assert.ok(cached < plain);
  const odd = used(1000, 0, { cachedTokens: 5000, cacheWriteTokens: 5000 });
  assert.equal(priceOf("openai", "gpt-5-mini", odd).estimatedCost, cached);
});

test("tokens written to a cache: cost more, and a count above all tokens is cut", () => {
  const costWith = (more: object) =>
    priceOf("anthropic", "claude-sonnet-4-5", used(1000, 0, more)).estimatedCost;
  const written = costWith({ cacheWriteTokens: 1000 });
  assert.ok(written > costWith({}) && costWith({}) > 0);
  assert.equal(costWith({ cacheWriteTokens: 5000 }), written);
});

const unknown = { estimatedCost: 0, costKnown: false };

test("unknown model: costs 0, and costKnown is false", () => {
  for (const model of ["no-such-model", "__proto__", ""]) {
    assert.deepEqual(priceOf("openai", model, used(10, 10)), unknown);
  }
});

test("provider with its own base URL: the cost is unknown for any model", () => {
  assert.deepEqual(priceOf("openai-compatible", "gpt-5-mini", used(10, 10)), unknown);
  assert.deepEqual(priceOf("ollama", "llama3.2", used(10, 10)), unknown);
});

test("sandbox: costs 0, and costKnown is true", () => {
  assert.deepEqual(priceOf("sandbox", "sandbox", used(10, 10)), { estimatedCost: 0, costKnown: true });
});

for (const [provider, model] of Object.entries(defaultModels)) {
  if (["ollama", "openai-compatible"].includes(provider)) continue;
  test(`default model ${model} of ${provider}: has a price`, () => {
    assert.ok(priceOf(provider as ProviderId, model!, used(1000, 1000)).costKnown);
  });
}

test("rounding: half-up at the eighth decimal", () => {
  assert.equal(roundUsd(0), 0);
  assert.equal(roundUsd(0.000000005), 0.00000001);
  assert.equal(roundUsd(0.0000000049), 0);
  assert.equal(roundUsd(0.000000015), 0.00000002);
  assert.equal(roundUsd(1.000000005), 1.00000001);
  assert.equal(roundUsd(0.1 + 0.2), 0.3);
  assert.equal(roundUsd(12345.678), 12345.678);
  assert.equal(roundUsd(1e-30), 0);
});

test("rounding: finds each exact half, whatever the error of the double", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 99_999_999_999 }), (hundredMillionths) => {
      const half = Number(`${hundredMillionths}5e-9`);
      assert.equal(roundUsd(half), Number(`${hundredMillionths + 1}e-8`));
      assert.equal(roundUsd(Number(`${hundredMillionths}4e-9`)), Number(`${hundredMillionths}e-8`));
    }),
  );
});
