import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import OpenAI from "openai";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { apiErrorOf, type ChatInput, chatRequest, officialClient } from "../../../test/openai.ts";
import { type Next, type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { gatedPieces } from "../../../test/run-streams.ts";
import { createProviderKey, newestRun, providersAt } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";

let provider: ProviderServer;
let market: Market;
let author: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser();
  productId = await createProduct(author);
  await createProviderKey(author);
});
after(async () => {
  await market.close();
  await provider.close();
});

const create = (caller: Client, chatBody: ChatInput = {}, options: object = {}) =>
  officialClient(market, caller).chat.completions.create(chatRequest(productId, chatBody), options);
const stream = (caller: Client, options: object = {}) =>
  officialClient(market, caller).chat.completions.create(
    { ...chatRequest(productId), stream: true },
    options,
  );

suite("official client: errors", () => {
  test("unknown key: AuthenticationError", async () => {
    const error = await apiErrorOf(create(market.as("stoa_test_nothing")));
    assert.ok(error instanceof OpenAI.AuthenticationError);
    assert.deepEqual(
      [error.code, error.type, error.param],
      ["INVALID_API_KEY", "authentication_error", null],
    );
    assert.match(error.headers!.get("www-authenticate")!, /^Bearer /);
    assert.ok(error.requestID);
  });

  test("key without ai:execute, or product not bought: PermissionDeniedError", async () => {
    const reader = await market.createUser({ permissions: ["products:read"] });
    const error = await apiErrorOf(create(reader));
    assert.ok(error instanceof OpenAI.PermissionDeniedError);
    assert.equal((error.error as { details: { required: string } }).details.required, "ai:execute");
    const stranger = await apiErrorOf(create(await market.createUser()));
    assert.ok(stranger instanceof OpenAI.PermissionDeniedError);
    assert.match(stranger.message, /Buy the product/);
  });

  test("unknown model or path: NotFoundError", async () => {
    const error = await apiErrorOf(create(author, { model: "gpt-5" }));
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.deepEqual([error.code, error.param], ["PRODUCT_NOT_FOUND", "model"]);
    assert.match(error.message, /GET \/v1\/openai\/models/);
    const { embeddings } = officialClient(market, author);
    const nowhere = await apiErrorOf(embeddings.create({ model: "x", input: "x" }));
    assert.ok(nowhere instanceof OpenAI.NotFoundError);
    assert.equal(nowhere.code, "NOT_FOUND");
  });

  test("invalid field: BadRequestError with the field", async () => {
    const bad = await apiErrorOf(create(author, { n: 2 }));
    assert.ok(bad instanceof OpenAI.BadRequestError);
    assert.equal(bad.param, "n");
    const stopped = await apiErrorOf(create(author, { stop: "END" }));
    assert.deepEqual((stopped.error as { details: { errors: unknown[] } }).details.errors, [
      { field: "stop", reason: "cannot be honoured: it is not passed on" },
    ]);
    const rule = await apiErrorOf(create(author, { messages: [{ role: "user", content: "{}" }] }));
    assert.ok(rule instanceof OpenAI.BadRequestError);
    assert.deepEqual([rule.code, rule.param], ["VALIDATION_ERROR", "messages[0].content.topic"]);
  });

  test("limit of the plan: RateLimitError with the time to wait", async () => {
    const quotas = [{ requests: 2, seconds: 3_600 }];
    const plans = { ...builtInPlans.plans, free: { ...builtInPlans.plans.free, quotas } };
    const shop = await openMarket({ config: { planConfig: { ...builtInPlans, plans } } });
    const { models } = officialClient(shop, await shop.createUser());
    for (const _ of quotas.concat(quotas)) await models.list();
    const error = await apiErrorOf(models.list());
    await shop.close();
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.deepEqual([error.code, error.type], ["RATE_LIMIT_EXCEEDED", "rate_limit_error"]);
    assert.equal(error.headers!.get("retry-after"), "3600");
  });

  for (const [next, status, code] of [
    ["bad-key", 403, "PROVIDER_KEY_INVALID"],
    ["quota", 402, "PROVIDER_QUOTA_EXHAUSTED"],
    ["context", 400, "CONTEXT_LENGTH_EXCEEDED"],
    ["filter", 400, "CONTENT_FILTERED"],
    [{ status: 418 }, 406, "PROVIDER_ERROR"],
    [{ status: 200, body: "<html>" }, 406, "PROVIDER_BAD_RESPONSE"],
    ["cut", 406, "PROVIDER_BAD_RESPONSE"],
    [{ status: 429, headers: { "retry-after": "3600" } }, 429, "PROVIDER_RATE_LIMITED"],
  ] as const) {
    test(`${code} of the provider: is thrown without a retry`, async () => {
      const owner = await market.createUser();
      await buyProduct(owner, productId);
      // Named, because a refused key is not valid any more and would not be the default.
      const metadata = { apiKeyId: await createProviderKey(owner) };
      // A broken stream has begun, so its error is an event.
      for (const streamed of next === "cut" ? [false] : [false, true]) {
        const before = provider.requests.length;
        provider.next(next as Next);
        const chatBody = { ...chatRequest(productId), metadata, stream: streamed };
        const error = await apiErrorOf(officialClient(market, owner).chat.completions.create(chatBody));
        assert.deepEqual([error.status, error.code], [status, code]);
        assert.equal(error.headers!.get("x-should-retry"), "false");
        assert.equal(provider.requests.length, before + 1);
        assert.doesNotMatch(error.message, /rain/, "the message does not quote the prompt");
      }
    });
  }
});

suite("broken stream of a completion", () => {
  test("provider breaks off: the official client throws, and no [DONE] is sent", async () => {
    provider.next({ stream: { breaks: "cut", after: 1 } });
    let received = "";
    const read = async () => {
      for await (const { choices } of await stream(author)) received += choices[0]!.delta.content ?? "";
    };
    const error = await apiErrorOf(read());
    assert.deepEqual([error.code, error.type], ["PROVIDER_BAD_RESPONSE", "api_error"]);
    assert.notEqual(received, "");
    const run = await newestRun(author);
    assert.deepEqual([run.status, run.error.code], ["failed", "PROVIDER_BAD_RESPONSE"]);
    const { executionId } = (error.error as { details: { executionId: string } }).details;
    assert.equal(executionId, run.id);
  });

  for (const [how, breaks] of Object.entries({ whole: false, cut: true })) {
    test(`${how} on the wire: only data lines, and one end`, async () => {
      provider.next({ stream: breaks ? { breaks: "cut", after: 1 } : { pieces: ["One ", "two."] } });
      const response = await fetch(`${market.origin}/v1/openai/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${author.key}`, "content-type": "application/json" },
        body: JSON.stringify({ ...chatRequest(productId), stream: true }),
      });
      assert.equal(response.headers.get("content-type"), "text/event-stream");
      assert.ok(response.headers.get("x-request-id"));
      const blocks = (await response.text()).split("\n\n").filter((block) => !/^(retry|:|$)/.test(block));
      for (const block of blocks) assert.match(block, /^data: \S.*$/, "no event, no id");
      const last = blocks.at(-1)!.slice("data: ".length);
      assert.equal(blocks.filter((block) => block.includes("[DONE]")).length, breaks ? 0 : 1);
      if (breaks) assert.deepEqual(Object.keys(JSON.parse(last)), ["error"]);
      else assert.equal(last, "[DONE]");
    });
  }

  test("client disconnects: the provider call is aborted and the run is canceled", async () => {
    const shop = await startProviderServer();
    const other = await openMarket({ providers: providersAt(shop) });
    const owner = await other.createUser();
    const model = await createProduct(owner);
    await createProviderKey(owner);
    shop.next({ stream: { breaks: "stall", after: 1 } });
    const chunks = await officialClient(other, owner).chat.completions.create({
      ...chatRequest(model),
      stream: true,
    });
    for await (const { choices } of chunks) if (choices[0]?.delta.content) break;
    await shop.clientGone;
    const run = await becomes(
      () => newestRun(owner),
      ({ status }) => status !== "running",
    );
    assert.deepEqual([run.status, run.error.code], ["canceled", "client_gone"]);
    await other.close();
    await shop.close();
  });
});

suite("repeated Idempotency-Key of a completion", () => {
  const again = { headers: { "idempotency-key": "once" } };

  test("completed: returns the same completion without a run", async () => {
    const before = provider.requests.length;
    const [first, second] = [await create(author, {}, again), await create(author, {}, again)];
    assert.deepEqual(second, first);
    assert.equal(provider.requests.length, before + 1);
  });

  test("completed stream: returns the same stream without a run", async () => {
    const key = { headers: { "idempotency-key": "streamed" } };
    provider.next({ stream: { pieces: ["One ", "two."] } });
    const before = provider.requests.length;
    const results = [];
    for (const _ of [1, 2]) {
      const chunks = await officialClient(market, author).chat.completions.create(
        { ...chatRequest(productId), stream: true, stream_options: { include_usage: true } },
        key,
      );
      let text = "";
      let last: OpenAI.ChatCompletionChunk | undefined;
      for await (const chunk of chunks) {
        text += chunk.choices[0]?.delta.content ?? "";
        last = chunk;
      }
      results.push({ text, last });
    }
    assert.equal(results[0]!.text, "One two.");
    assert.deepEqual(results[1], results[0]);
    assert.equal(provider.requests.length, before + 1);
  });

  test("running stream: joins it", async () => {
    const gated = gatedPieces();
    provider.next({ stream: { pieces: ["One ", "two."], gate: gated.gate } });
    const before = provider.requests.length;
    const chatBody = {
      ...chatRequest(productId),
      stream: true,
      stream_options: { include_usage: true },
    } as const;
    const options = { headers: { "idempotency-key": "no word yet" }, maxRetries: 0 };
    const opened = () => officialClient(market, author).chat.completions.create(chatBody, options);
    const first = opened();
    await becomes(
      async () => provider.requests.length,
      (count) => count > before,
    );
    const joined = await opened();
    gated.allowAll();
    const chunksOf = async (chunks: AsyncIterable<OpenAI.ChatCompletionChunk>) => {
      const all: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of chunks) all.push(chunk);
      const text = all.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
      return { text, last: all.at(-1) };
    };
    const results = await chunksOf(await first);
    assert.equal(results.text, "One two.");
    assert.ok(results.last?.usage);
    assert.deepEqual(await chunksOf(joined), results);
    assert.equal(provider.requests.length, before + 1);
  });

  test("stream that is not stored: an error instead of an empty answer", async () => {
    const key = { headers: { "idempotency-key": "forgotten" } };
    const read = async () => {
      const chatBody = { ...chatRequest(productId), stream: true as const, store: false };
      let text = "";
      for await (const { choices } of await officialClient(market, author).chat.completions.create(
        chatBody,
        key,
      ))
        text += choices[0]?.delta.content ?? "";
      return text;
    };
    assert.notEqual(await read(), "");
    assert.equal((await apiErrorOf(read())).code, "INVALID_STATE");
  });

  test("failed: returns the same error, and tells the client not to retry", async () => {
    const key = { headers: { "idempotency-key": "failed" } };
    provider.next({ status: 200, body: "<html>" });
    const before = provider.requests.length;
    const results = [];
    for (const _ of [1, 2]) {
      const { status, code, message, headers } = await apiErrorOf(create(author, {}, key));
      results.push({ status, code, message, shouldRetry: headers!.get("x-should-retry") });
    }
    assert.deepEqual([results[0]!.code, results[0]!.shouldRetry], ["PROVIDER_BAD_RESPONSE", "false"]);
    assert.deepEqual(results[1], results[0]);
    assert.equal(provider.requests.length, before + 1);
  });

  test("other request: is refused", async () => {
    await create(author, {}, { headers: { "idempotency-key": "used" } });
    const error = await apiErrorOf(
      create(author, { temperature: 1 }, { headers: { "idempotency-key": "used" } }),
    );
    assert.deepEqual([error.status, error.code], [400, "IDEMPOTENCY_KEY_REUSED"]);
  });
});

suite("requests of /v1/openai", () => {
  test("wrong method, media type or body: an error in OpenAI's format", async () => {
    const path = "/v1/openai/chat/completions";
    const asJson = { "content-type": "application/json" };
    const replies = [
      [await author.get(path), 405, "METHOD_NOT_ALLOWED"],
      [
        await author.request("POST", path, { body: "{}", headers: { "content-type": "text/plain" } }),
        400,
        "UNSUPPORTED_MEDIA_TYPE",
      ],
      [await author.request("POST", path, { body: "{", headers: asJson }), 400, "INVALID_REQUEST"],
      [await author.get("/v1/openai"), 404, "NOT_FOUND"],
    ] as const;
    for (const [reply, status, code] of replies) {
      assertError(reply, status, code);
      assert.deepEqual(Object.keys(reply.body), ["error"]);
      assert.equal(reply.body.error.type, "invalid_request_error");
    }
    assert.equal(replies[0][0].headers.get("allow"), "POST");
  });

  test("Prefer: respond-async: is ignored", async () => {
    const chatBody = chatRequest(productId);
    const headers = { prefer: "respond-async", accept: "text/event-stream" };
    const reply = await author.post("/v1/openai/chat/completions", chatBody, headers);
    assert.deepEqual([reply.status, reply.body.object], [200, "chat.completion"]);
  });
});
