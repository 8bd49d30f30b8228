import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createDraft, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type ChatInput, chatRequest } from "../../../test/openai.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, newestRun, providersAt } from "../../../test/runs.ts";
import { toUuid } from "../../core/ids.ts";

let provider: ProviderServer;
let market: Market;
let author: Client;
/** Requires topic; language is optional. */
let haiku: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser();
  haiku = await createDraft(author);
});
after(async () => {
  await market.close();
  await provider.close();
});

const post = (request: ChatInput, model = haiku, caller = author): Promise<Reply> =>
  caller.post("/v1/openai/chat/completions", chatRequest(model, request));
const user = (content: unknown): ChatInput => ({ messages: [{ role: "user", content: content as string }] });

/** The rendered prompt, as the sandbox echoes it. */
async function echoOf(request: ChatInput, model = haiku): Promise<string> {
  const metadata = { apiKeyId: "sandbox", model: "sandbox-echo", ...request.metadata };
  const reply = await post({ ...request, metadata }, model);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.choices[0].message.content.replace("[sandbox] ", "");
}

const IN_RAIN = "Write a haiku about rain in English.";

suite("variables of a chat completion", () => {
  test("JSON object in the last user message: is read, and empty messages are ignored", async () => {
    const messages: ChatInput["messages"] = [
      { role: "system", content: "" },
      { role: "user", content: ' {"topic": "rain"}\n' },
      { role: "assistant", content: " " },
    ];
    assert.equal(await echoOf({ messages }), IN_RAIN);
  });

  test("conversation: fills the variable `conversation` if the prompt declares it", async () => {
    const withConversation = await createDraft(author, { content: "{{conversation}} Then: {{question}}" });
    const messages: ChatInput["messages"] = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is snow?" },
      { role: "assistant", content: "White." },
      { role: "user", content: "And rain?" },
    ];
    const all = messages.map(({ role, content }) => ({ role, content }));
    const turns = all.slice(0, 3);
    assert.equal(await echoOf({ messages }, withConversation), `${JSON.stringify(turns)} Then: And rain?`);
    assert.equal(await echoOf(user("Rain?"), withConversation), "[] Then: Rain?");
    const metadata = { variables: '{"question": "Snow?"}' };
    assert.equal(
      await echoOf({ messages, metadata }, withConversation),
      `${JSON.stringify(all)} Then: Snow?`,
    );
  });

  test("text parts: are joined", async () => {
    const parts = [
      { type: "text", text: '{"topic": ' },
      { type: "text", text: '"rain"}' },
    ];
    assert.equal(await echoOf(user(parts)), IN_RAIN);
  });

  test("metadata.variables: take precedence, as an object or JSON text", async () => {
    for (const variables of [{ topic: "rain" }, '{"topic": "rain"}'] as string[])
      assert.equal(await echoOf({ ...user(""), metadata: { variables } }), IN_RAIN);
    const metadata = { variables: { topic: "rain" } as unknown as string };
    assert.equal(await echoOf({ messages: [], metadata }), IN_RAIN);
  });

  test("plain text: is the value of the only required variable, or of the only one", async () => {
    assert.equal(await echoOf(user("rain")), IN_RAIN);
    const only = await createDraft(author, { content: "About {{topic=snow}}." });
    assert.deepEqual(
      [await echoOf(user("rain"), only), await echoOf(user(" "), only)],
      ["About rain.", "About snow."],
    );
    const none = await createDraft(author, { content: "About nothing." });
    assert.equal(await echoOf(user("Hello!"), none), "About nothing.");
  });

  test("text like a template or broken JSON: is a literal value", async () => {
    for (const text of ["{{topic}}", "[1]", '"rain"', "7", "null", "{not JSON}", "{{language}} \\{{"])
      assert.equal(await echoOf(user(text)), `Write a haiku about ${text} in English.`);
  });
});

suite("invalid variables of a chat completion", () => {
  const refused = async (request: ChatInput, field: string, model = haiku) => {
    const reply = await post(request, model);
    assertError(reply, 400, "VALIDATION_ERROR", field);
    assert.equal(reply.body.error.param, field);
    return reply;
  };

  test("system message, earlier turns or a started answer: 422, because the prompt would ignore them", async () => {
    const [message] = user('{"topic": "rain"}').messages!;
    const system = { role: "system" as const, content: "Be brief." };
    const turns = [
      { role: "user" as const, content: "Hello" },
      { role: "assistant" as const, content: "Hi" },
    ];
    await refused({ messages: [system, message!] }, "messages[0]");
    await refused({ messages: [...turns, message!] }, "messages[0]");
    await refused({ messages: [message!, turns[1]!] }, "messages[1]");
    const metadata = { variables: '{"topic": "rain"}' };
    await refused({ messages: [system, message!], metadata }, "messages[0]");
    const beside = await refused({ messages: [message!], metadata }, "messages[0]");
    assert.match(beside.body.error.message, /metadata\.variables: leave its content empty/);
  });

  test("in a message: the error names its index", async () => {
    const system = { role: "system" as const, content: "" };
    const [message] = user('{"topik": "rain", "topic": 7}').messages!;
    const reply = await refused({ messages: [system, message!] }, "messages[1].content.topik");
    const { errors } = reply.body.error.details;
    assert.equal(errors[1].field, "messages[1].content.topic");
    await refused(user('{"__proto__": "rain"}'), "messages[0].content.__proto__");
    await refused(user(""), "messages[0].content.topic");
  });

  test("in the metadata: the error names the field", async () => {
    const metadata = { variables: '{"topic": "rain", "colour": "red"}' };
    await refused({ ...user(""), metadata }, "metadata.variables.colour");
    for (const variables of ["[]", "null", "rain", '"x"']) {
      const reply = await post({ metadata: { variables } });
      assertError(reply, 400, "INVALID_REQUEST", "metadata.variables");
    }
  });

  test("plain text for several variables: 422 with their names", async () => {
    const two = await createDraft(author, { content: "{{topic}} and {{other}}" });
    const reply = await refused(user("rain"), "messages[0].content", two);
    assert.match(reply.body.error.message, /topic, other/);
    const maybe = await createDraft(author, { content: "{{topic=a}} and {{other=b}}" });
    await refused(user("rain"), "messages[0].content", maybe);
  });

  test("too deep or too large: an error", async () => {
    const deep = `{"topic": ${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    await refused(user(deep), "messages[0].content");
    const names = Array.from({ length: 2_001 }, (_, at) => `"name${at}": "x"`);
    await refused(user(`{${names.join(",")}}`), "messages[0].content");
    await refused({ ...user(""), metadata: { variables: `{${names.join(",")}}` } }, "metadata.variables");
    await refused(user("x".repeat(40_000)), "messages[0].content.topic");
    await refused(user('{"topic": "a\\u0000b"}'), "messages[0].content.topic");
  });

  test("parts that are not text: an error", async () => {
    for (const part of [{ type: "image_url", image_url: { url: "data:," } }, { type: "text" }]) {
      const reply = await post(user([{ type: "text", text: "rain" }, part]));
      assertError(reply, 400, "INVALID_REQUEST", "messages[0].content[1]");
    }
    assertError(await post(user(7)), 400, "INVALID_REQUEST", "messages[0].content");
  });
});

suite("unsupported parameters of a chat completion", () => {
  const tool = { type: "function", function: { name: "f" } };
  for (const [field, value] of Object.entries({
    n: 2,
    tools: [tool],
    tool_choice: "required",
    functions: [{ name: "f" }],
    function_call: { name: "f" },
    response_format: { type: "json_object" },
    modalities: ["audio"],
    audio: { voice: "alloy", format: "mp3" },
    prediction: { type: "content", content: "x" },
    web_search_options: {},
    reasoning_effort: "high",
    verbosity: "low",
    top_p: 0.5,
    presence_penalty: 1,
    frequency_penalty: -1,
    logit_bias: { "50256": -100 },
    logprobs: true,
    top_logprobs: 3,
    stop: ["\n"],
    temperature: 3,
    max_tokens: 0,
    max_completion_tokens: 1.5,
    stream: "yes",
    model: 7,
    messages: "rain",
  })) {
    test(field, async () => {
      const before = await newestRun(author);
      const reply = await post({ [field]: value } as ChatInput);
      const { field: named } = assertError(reply, 400, "INVALID_REQUEST");
      assert.ok(named === field || named.startsWith(`${field}.`) || named.startsWith(`${field}[`), named);
      assert.equal(reply.body.error.param, named);
      assert.equal(reply.body.error.type, "invalid_request_error");
      assert.deepEqual(await newestRun(author), before);
    });
  }

  test("parameters with their default or without effect: are accepted", async () => {
    const usual = {
      ...{ n: 1, tools: [], tool_choice: "auto", functions: [], response_format: { type: "text" } },
      ...{ modalities: ["text"], top_p: 1, presence_penalty: 0, frequency_penalty: 0, logit_bias: {} },
      ...{ logprobs: false, stop: [], reasoning_effort: null, prediction: null, stream: null },
      ...{ user: "u", seed: 7, service_tier: "auto", store: true, parallel_tool_calls: true },
      ...{ a_field_of_next_year: { x: 1 }, stream_options: { include_obfuscation: false } },
    };
    const reply = await post(usual as ChatInput);
    assert.equal(reply.status, 200, reply.text);
  });
});

suite("provider key of a chat completion", () => {
  const keyOfRun = async (caller: Client, request: ChatInput = {}, model = haiku) => {
    const reply = await post(request, model, caller);
    assert.equal(reply.status, 200, reply.text);
    return (await newestRun(caller)).provider;
  };

  test("none named: the newest valid key of a fitting provider, else the sandbox", async () => {
    const owner = await market.createUser();
    const model = await createDraft(owner);
    assert.equal(await keyOfRun(owner, {}, model), "sandbox");
    await createProviderKey(owner, { provider: "mistral" });
    assert.equal(
      await keyOfRun(owner, {}, model),
      "sandbox",
      "the product does not support the key's provider",
    );
    await createProviderKey(owner, { provider: "openai" });
    assert.equal(await keyOfRun(owner, {}, model), "openai");
    const newest = await createProviderKey(owner, { provider: "anthropic" });
    assert.equal(await keyOfRun(owner, {}, model), "anthropic");
    const setStatus = "update provider_keys set status = 'invalid' where id = $1";
    await market.query(setStatus, [toUuid("pkey", newest)]);
    assert.equal(await keyOfRun(owner, {}, model), "openai");
  });

  test("own server without a known model: its key is skipped unless the request names a model", async () => {
    const owner = await market.createUser();
    const model = await createDraft(owner);
    await createProviderKey(owner, { provider: "openai-compatible", baseUrl: provider.url });
    assert.equal(await keyOfRun(owner, {}, model), "sandbox");
    assert.equal(await keyOfRun(owner, { metadata: { model: "llama" } }, model), "openai-compatible");
    assert.equal((provider.requests.at(-1)!.body as { model: string }).model, "llama");
  });

  test("metadata.apiKeyId: selects the key, or 404", async () => {
    const named = await createProviderKey(author, { provider: "openai" });
    await createProviderKey(author, { provider: "anthropic" });
    assert.equal(await keyOfRun(author, { metadata: { apiKeyId: named } }), "openai");
    const reply = await post({ metadata: { apiKeyId: "pkey_nothing" } });
    assertError(reply, 404, "PROVIDER_KEY_NOT_FOUND", "metadata.apiKeyId");
  });

  test("provider with an open circuit: another fitting key is used", async () => {
    const shop = await openMarket({ providers: providersAt(provider), breaker: { faultsToOpen: 1 } });
    const owner = await shop.createUser();
    const model = await createDraft(owner);
    for (const name of ["openai", "anthropic"]) await createProviderKey(owner, { provider: name });
    const ask = () => owner.post("/v1/openai/chat/completions", chatRequest(model));
    for (let attempt = 0; attempt < 3; attempt++) provider.next({ status: 500 });
    const failed = await ask();
    const [second, { provider: called }] = [await ask(), await newestRun(owner)];
    await shop.close();
    assert.equal(failed.body.error.code, "PROVIDER_ERROR");
    assert.deepEqual([second.status, called], [200, "openai"]);
  });

  test("neither a valid key nor a sandbox: 422", async () => {
    const shop = await openMarket({ config: { sandbox: false } });
    const owner = await shop.createUser();
    const reply = await owner.post("/v1/openai/chat/completions", chatRequest(await createDraft(owner)));
    await shop.close();
    assertError(reply, 400, "VALIDATION_ERROR", "metadata.apiKeyId");
    assert.match(reply.body.error.message, /openai, anthropic/);
  });
});

suite("execution of a chat completion", () => {
  test("history: stores input and output unless store is false", async () => {
    for (const store of [true, false]) {
      const { id } = (await post({ store, metadata: { apiKeyId: "sandbox" } })).body;
      const { data } = (await author.get(`/v1/ai/executions/${id}`)).body;
      assert.deepEqual(data.variables, store ? { topic: "rain" } : null);
      assert.equal(data.output === null, !store);
    }
  });

  test("version: a pinned one is in the history; a forbidden one is an error of `model`", async () => {
    const sold = await createProduct(author);
    await author.patch(`/v1/products/${sold}`, {
      version: "1.1.0",
      content: "On {{topic}} in {{language=English}}.",
    });
    for (const version of ["1.0.0", "1.1.0"])
      assert.equal((await post({}, `${sold}@${version}`)).body.model, `${sold}@${version}`);
    assert.equal((await post({}, sold)).body.model, `${sold}@1.1.0`);
    assertError(await post({}, `${haiku}@9.0.0`), 400, "VALIDATION_ERROR", "model");
    assertError(await post({}, "gpt-5-mini"), 404, "PRODUCT_NOT_FOUND", "model");
  });
});
