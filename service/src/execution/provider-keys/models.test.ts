import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { AiModel } from "@stoa/contract";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let user: Client;
before(async () => {
  market = await openMarket();
  user = await market.createUser();
  const key = { provider: "openai", name: "mine", key: "sk-0123456789abcdef" };
  assert.equal((await user.post("/v1/ai/keys", key)).status, 201);
});
after(() => market.close());

async function list(query = ""): Promise<AiModel[]> {
  const reply = await user.get(`/v1/ai/models?limit=100${query}`);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

suite("GET /v1/ai/models", () => {
  test("of a provider: the default first, with price, window, and whether a key is there", async () => {
    const [first, ...others] = await list("&provider=openai");
    assert.deepEqual(first, {
      ...{ id: "gpt-5-mini", mode: "chat", provider: "openai", name: "GPT-5 mini", contextWindow: 400_000 },
      ...{ promptPrice: 0.25, completionPrice: 2, isDefault: true, isUsable: true },
    });
    const ids = others.map(({ id }) => id);
    assert.deepEqual(ids, ids.toSorted());
    assert.ok(ids.length > 20);
    assert.ok(!ids.some((id) => /embedding|whisper/.test(id)), "they give no text");
    const [anthropic] = await list("&provider=ANTHROPIC");
    assert.deepEqual([anthropic!.id, anthropic!.isUsable], ["claude-sonnet-5", false]);
  });

  test("mode=embedding: the models of providers with embeddings, with the price of their input", async () => {
    const [first, ...others] = await list("&provider=openai&mode=embedding");
    assert.deepEqual(first, {
      ...{ id: "text-embedding-3-small", mode: "embedding", provider: "openai", name: "text embedding 3" },
      ...{ contextWindow: 8_192, promptPrice: 0.02, completionPrice: 0, isDefault: true, isUsable: true },
    });
    assert.ok(others.some(({ id }) => id === "text-embedding-3-large"));
    const all = await list("&mode=embedding");
    assert.deepEqual(
      [...new Set(all.map(({ provider }) => provider))],
      ["openai", "mistral", "openrouter", "ollama", "sandbox"],
    );
    assert.ok(!(await list("&provider=mistral")).some(({ id }) => id.includes("embed")));
  });

  test("what costs nothing, and what has no known price", async () => {
    const [sandbox] = await list("&provider=sandbox");
    assert.deepEqual([sandbox!.promptPrice, sandbox!.isUsable], [0, true]);
    const [ollama] = await list("&provider=ollama");
    assert.deepEqual([ollama!.id, ollama!.promptPrice, ollama!.isDefault], ["llama3.2", null, true]);
    assert.deepEqual(await list("&provider=openai-compatible"), []);
  });

  test("usable: only with a key, and the sandbox; search: in ids and names", async () => {
    const usable = await list("&usable=true");
    assert.deepEqual([...new Set(usable.map(({ provider }) => provider))], ["openai", "sandbox"]);
    const found = await list("&search=Sonnet%205&provider=anthropic");
    assert.ok(found.length > 0 && found.every(({ id, name }) => /sonnet.5/i.test(`${id} ${name}`)));
    assertError(await user.get("/v1/ai/models?provider=nobody"), 400, "INVALID_REQUEST", "provider");
  });

  test("pages: each model once, and the total", async () => {
    const seen = new Set<string>();
    let total = 0;
    for (let page = 1; page === 1 || (page - 1) * 100 < total; page++) {
      const { data, meta } = (await user.get(`/v1/ai/models?limit=100&page=${page}`)).body;
      total = meta.total;
      for (const { provider, id } of data) seen.add(`${provider} ${id}`);
    }
    assert.equal(seen.size, total);
  });
});
