import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { ErrorCode, EstimatedCall } from "@stoa/contract";
import fc from "fast-check";
import { buyProduct, createDraft, createProduct, workflow } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, newestRun, providersAt, run } from "../../../test/runs.ts";
import type { ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { limitToMaxCost } from "../prompt-runs/max-cost.ts";
import { priceUsage } from "../provider-keys/cost.ts";

let provider: ProviderServer;
let market: Market;
let author: Client;
let buyer: Client;
let productId: string;
let key: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser();
  buyer = await market.createUser();
  productId = await createProduct(author);
  await buyProduct(buyer, productId);
  key = await createProviderKey(buyer);
});
after(async () => {
  await market.close();
  await provider.close();
});

const ask = (caller: Client, fields: object) =>
  caller.post("/v1/ai/estimate", { variables: { topic: "rain" }, ...fields });
async function readEstimate(fields: object, caller = buyer) {
  const reply = await ask(caller, { productId, ...fields });
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

suite("POST /v1/ai/estimate for a prompt", () => {
  test("with a key: tokens, range of costs and whether the prompt fits", async () => {
    const { calls, prices, ...rest } = await readEstimate({ apiKeyId: key, options: { maxTokens: 1_000 } });
    // "Write a haiku about rain in English." has 36 bytes; gpt-5-mini costs 0.25 and 2 USD a million.
    assert.deepEqual(calls, [
      {
        stepId: null,
        provider: "openai",
        model: "gpt-5-mini",
        calls: { min: 1, max: 1 },
        promptTokens: { min: 9, max: 9 },
        completionTokens: { min: 0, max: 1_000 },
        cost: { min: 0.00000225, max: 0.00200225 },
        contextWindow: 400_000,
        fits: true,
      },
    ]);
    assert.match(prices, /^genai-prices \d+\.\d+\.\d+$/);
    const cost = { min: 0.00000225, max: 0.00200225 };
    assert.deepEqual(rest, { productId, productVersion: "1.0.0", type: "PROMPT", cost });
  });

  test("without a key: one estimate for each provider of the product", async () => {
    const { calls, cost } = await readEstimate({});
    assert.deepEqual(
      calls.map(({ provider, model }: Record<string, unknown>) => [provider, model]),
      [
        ["openai", "gpt-5-mini"],
        ["anthropic", "claude-sonnet-5"],
      ],
    );
    const costs: { min: number; max: number }[] = calls.map(({ cost }: EstimatedCall) => cost);
    assert.equal(cost.min, Math.min(...costs.map(({ min }) => min)));
    assert.equal(cost.max, Math.max(...costs.map(({ max }) => max)));
  });

  test("sandbox: costs 0; unknown model: null", async () => {
    const { cost } = await readEstimate({ apiKeyId: "sandbox" });
    assert.deepEqual(cost, { min: 0, max: 0 });
    const [call] = (await readEstimate({ apiKeyId: key, options: { model: "no-such-model" } })).calls;
    assert.deepEqual(call.cost, { min: null, max: null });
    assert.deepEqual([call.contextWindow, call.fits, call.completionTokens.max], [null, null, null]);
  });

  test("maxTokens that fill the context window: fit; one more: does not", async () => {
    const fitsWith = async (maxTokens: number) =>
      (await readEstimate({ apiKeyId: key, options: { maxTokens } })).calls[0].fits;
    assert.deepEqual([await fitsWith(400_000 - 9), await fitsWith(400_000 - 8)], [true, false]);
  });

  test("maxTokens over the context window: does not fit", async () => {
    const [call] = (await readEstimate({ apiKeyId: key, options: { maxTokens: 400_000 } })).calls;
    assert.equal(call.fits, false);
    assert.equal(call.completionTokens.max, 400_000 - 9);
  });

  test("request that a run would refuse: the same error, without a call or a write", async () => {
    const stranger = await market.createUser();
    const before = provider.requests.length;
    const wrong: [Client, object, number, ErrorCode, string?][] = [
      [buyer, { productId: "prod_nothing" }, 404, "PRODUCT_NOT_FOUND"],
      [buyer, { apiKeyId: "pkey_nothing" }, 404, "PROVIDER_KEY_NOT_FOUND"],
      [stranger, {}, 403, "UNAUTHORIZED"],
      [stranger, { apiKeyId: "sandbox" }, 403, "UNAUTHORIZED"],
      [buyer, { variables: {} }, 422, "VALIDATION_ERROR", "variables.topic"],
      [buyer, { variables: { topic: 1 } }, 422, "VALIDATION_ERROR", "variables.topic"],
      [buyer, { options: { version: "9.0.0" } }, 422, "VALIDATION_ERROR", "options.version"],
      [buyer, { options: { maxTokens: 0 } }, 400, "INVALID_REQUEST", "options.maxTokens"],
    ];
    for (const [caller, fields, status, code, field] of wrong) {
      const details = assertError(await ask(caller, { productId, ...fields }), status, code);
      if (field) assert.equal(details.field, field);
    }
    const google = await createProviderKey(buyer, { provider: "google" });
    assertError(await ask(buyer, { productId, apiKeyId: google }), 422, "PROVIDER_NOT_SUPPORTED");
    await readEstimate({ apiKeyId: key });
    const posts = provider.requests.slice(before).filter(({ method }) => method === "POST");
    assert.deepEqual(posts, []);
    assert.equal(await newestRun(buyer), undefined);
  });
});

suite("POST /v1/ai/estimate for a workflow", () => {
  test("steps: one estimate for each provider call, and their sum", async () => {
    const id = await createDraft(author, { type: "WORKFLOW", content: JSON.stringify(workflow) });
    const { calls, cost, type } = await readEstimate({ productId: id }, author);
    assert.equal(type, "WORKFLOW");
    const [outline, drafts] = calls;
    assert.deepEqual([outline.stepId, drafts.stepId], ["outline", "drafts"]);
    assert.deepEqual(
      [outline.calls, drafts.calls],
      [
        { min: 1, max: 1 },
        { min: 0, max: 200 },
      ],
    );
    // "Outline  in  parts" without values.
    assert.deepEqual(outline.promptTokens, { min: 5, max: 400_000 });
    assert.equal(drafts.cost.min, 0);
    assert.ok(drafts.cost.max > outline.cost.max);
    assert.equal(cost.min, outline.cost.min);
  });

  test("embedding: the price of its texts, which may each fill the context window, and no output", async () => {
    const step = { id: "a", type: "embedding", provider: "openai", text: "'x'", compareTo: "['y']" };
    const content = { format: "workflow/1", input: { type: "object" }, steps: [step], result: "1" };
    const id = await createDraft(author, { type: "WORKFLOW", content: JSON.stringify(content) });
    const [call] = (await readEstimate({ productId: id, variables: {} }, author)).calls;
    assert.deepEqual(
      [call.model, call.promptTokens, call.completionTokens, call.cost],
      ["text-embedding-3-small", { min: 0, max: 262_144 }, { min: 0, max: 0 }, { min: 0, max: 0.00524288 }],
    );
  });

  test("invalid input, and options that the steps set: 422", async () => {
    const id = await createDraft(author, { type: "WORKFLOW", content: JSON.stringify(workflow) });
    for (const [fields, field] of [
      [{ variables: {} }, "variables"],
      [{ variables: { topic: 1 } }, "variables.topic"],
      [{ options: { model: "gpt-5" } }, "options.model"],
      [{ options: { maxTokens: 5 } }, "options.maxTokens"],
      [{ apiKeyId: "sandbox" }, "productId"],
    ] as const) {
      const details = assertError(await ask(author, { productId: id, ...fields }), 422, "VALIDATION_ERROR");
      assert.ok(details.field.startsWith(field), details.field);
    }
  });
});

suite("POST /v1/ai/execute with maxCost", () => {
  const body = () => provider.requests.at(-1)!.body as Record<string, unknown>;

  test("limit over the prompt's cost: the rest caps the output tokens", async () => {
    const reply = await run(buyer, { productId, apiKeyId: key, options: { maxCost: 0.001 } });
    assert.equal(reply.status, 200, reply.text);
    // 36 bytes and one message are at most 46 tokens, for 0.0000115 USD. The rest pays for output at 2 USD a million.
    assert.equal(body().max_completion_tokens ?? body().max_tokens, 494);
  });

  test("lower maxTokens: is sent as it is; the sandbox has no limit", async () => {
    await run(buyer, { productId, apiKeyId: key, options: { maxCost: 1, maxTokens: 20 } });
    assert.equal(body().max_completion_tokens ?? body().max_tokens, 20);
    assert.equal((await run(buyer, { productId, options: { maxCost: 0.00000001 } })).status, 200);
  });

  test("limit below the prompt's cost: 422 with the least amount, and no call", async () => {
    const before = provider.requests.length;
    const refused = await run(buyer, { productId, apiKeyId: key, options: { maxCost: 0.00001 } });
    const { field, reason } = assertError(refused, 422, "VALIDATION_ERROR");
    assert.equal(field, "options.maxCost");
    const [, least] = /^must be at least ([\d.]+) for this prompt with .*: raise it/.exec(reason)!;
    assert.equal(provider.requests.length, before);
    assert.equal(
      (await run(buyer, { productId, apiKeyId: key, options: { maxCost: Number(least) } })).status,
      200,
    );
  });

  test("model without a price: 422, and no call", async () => {
    const options = { maxCost: 5, model: "no-such-model" };
    const refused = await run(buyer, { productId, apiKeyId: key, options });
    const { reason } = assertError(refused, 422, "VALIDATION_ERROR");
    assert.match(reason, /no price of no-such-model of openai: choose a model with a price/);
  });

  test("any price: the capped output costs no more than the limit", () => {
    const at = new Date("2026-11-01T12:00:00Z");
    const models: [ProviderId, string][] = [
      ["openai", "gpt-5-mini"],
      ["anthropic", "claude-sonnet-5"],
      ["xai", "grok-4.3"],
      ["google", "gemini-3.5-flash"],
      ["deepseek", "deepseek-v4-flash"],
    ];
    const costs = fc.double({ min: 0.00001, max: 3, noNaN: true });
    const property = fc.property(
      fc.constantFrom(...models),
      costs,
      fc.string({ maxLength: 3_000 }),
      (model, maxCost, content) => {
        const call = {
          provider: model[0],
          model: model[1],
          messages: [{ role: "user" as const, content }],
          at,
        };
        let options: ReturnType<typeof limitToMaxCost>;
        try {
          options = limitToMaxCost({ store: true, maxCost }, call);
        } catch {
          return;
        }
        const promptTokens = Buffer.byteLength(content);
        const completionTokens = options.capTokens ?? 1_000_000;
        const usage = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
        assert.ok(completionTokens >= 1);
        assert.ok(priceUsage({ ...call, usage }).estimatedCost <= maxCost);
      },
    );
    fc.assert(property, { numRuns: runs(300) });
  });
});
