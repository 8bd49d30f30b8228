import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import OpenAI from "openai";
import { buyProduct, createDraft, createProduct, refundEverything } from "../../../test/factories.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { apiErrorOf, type ChatInput, chatRequest, officialClient } from "../../../test/openai.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, newestRun, providersAt } from "../../../test/runs.ts";
import { toUuid } from "../../core/ids.ts";

let provider: ProviderServer;
let market: Market;
let author: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser({ name: "Ada" });
  productId = await createProduct(author);
});
after(async () => {
  await market.close();
  await provider.close();
});

const clientOf = (caller: Client) => officialClient(market, caller);

async function createBuyer(id = productId): Promise<Client> {
  const buyer = await market.createUser({ name: "Buyer" });
  await buyProduct(buyer, id);
  return buyer;
}

const ask = (caller: Client, request: ChatInput = {}) =>
  clientOf(caller).chat.completions.create(chatRequest(productId, request));

suite("official client: models", () => {
  test("list: own and bought prompts, newest first", async () => {
    const seller = await market.createUser({ name: "Grace" });
    const own = await createDraft(author, { title: "Mine" });
    const buyer = await market.createUser();
    const [bought, deleted, workflow] = [
      await createProduct(seller, { title: "Bought" }),
      await createProduct(seller),
      await createProduct(seller),
    ];
    for (const id of [bought, deleted, workflow]) await buyProduct(buyer, id);
    await seller.delete(`/v1/products/${deleted}`);
    await market.query("update products set type = 'WORKFLOW' where id = $1", [toUuid("prod", workflow)]);
    const mine = await createDraft(buyer, { title: "Draft" });
    const page = await clientOf(buyer).models.list();
    assert.deepEqual(
      page.data.map(({ id }) => id),
      [mine, deleted, bought],
    );
    const { object, created, owned_by } = page.data[2]!;
    assert.deepEqual([object, owned_by], ["model", "Grace"]);
    assert.equal(created, Math.floor(market.clock.now.getTime() / 1000));
    assert.equal(page.hasNextPage(), false);
    assert.ok(!page.data.some(({ id }) => id === own));
  });

  test("list: without refunded, deleted and moderated products", async () => {
    const buyer = await createBuyer();
    const own = await createDraft(buyer);
    await buyer.delete(`/v1/products/${own}`);
    const harmful = await createProduct(author);
    await buyProduct(buyer, harmful);
    const setCode = "update products set moderation_code = $2 where id = $1";
    await market.query(setCode, [toUuid("prod", harmful), "malicious"]);
    const ids = async () => (await clientOf(buyer).models.list()).data.map(({ id }) => id);
    assert.deepEqual(await ids(), [productId]);
    await market.query(setCode, [toUuid("prod", harmful), null]);
    await refundEverything(market, buyer);
    assert.deepEqual(await ids(), []);
  });

  test("list: at most a thousand", async () => {
    const owner = await market.createUser();
    const oldest = await createDraft(owner);
    await market.query(
      `insert into products
       select copy.* from products p cross join (select gen_random_uuid() as copy_id from generate_series(1, 1001)) ids
        cross join jsonb_populate_record(p, jsonb_build_object('id', copy_id)) copy
        where p.id = $1`,
      [toUuid("prod", oldest)],
    );
    assert.equal((await clientOf(owner).models.list()).data.length, 1_000);
  });

  test("retrieve: with a version or without", async () => {
    const models = clientOf(await createBuyer()).models;
    assert.equal((await models.retrieve(productId)).id, productId);
    assert.equal((await models.retrieve(`${productId}@1.0.0`)).id, `${productId}@1.0.0`);
    const stranger = clientOf(await market.createUser()).models;
    for (const [of, id] of [
      [models, `${productId}@9.9.9`],
      [models, "gpt-5"],
      [stranger, productId],
    ] as const)
      assert.ok((await apiErrorOf(of.retrieve(id))) instanceof OpenAI.NotFoundError);
  });
});

suite("official client: chat completions", () => {
  test("create: completes, and the history contains the run", async () => {
    const buyer = await createBuyer();
    await createProviderKey(buyer);
    provider.next({ answer: { text: "Rain falls.", usage: { input: 12, output: 5 } } });
    const answer = await ask(buyer, { temperature: 0.5, max_tokens: 60, user: "u", seed: 7, n: 1 });
    assert.deepEqual(answer.choices, [
      {
        index: 0,
        message: { role: "assistant", content: "Rain falls.", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
    assert.deepEqual(answer.usage, { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 });
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.model, `${productId}@1.0.0`);
    assert.ok(answer._request_id);
    const run = await newestRun(buyer);
    assert.deepEqual([run.id, run.status, run.mode], [answer.id, "completed", "sync"]);
    const { body } = provider.requests.at(-1)!;
    const { temperature, max_tokens, max_completion_tokens } = body as Record<string, number>;
    assert.deepEqual([temperature ?? 0.5, max_tokens ?? max_completion_tokens], [0.5, 60]);
  });

  test("create with stream: sends pieces, and the usage if requested", async () => {
    const buyer = await createBuyer();
    await createProviderKey(buyer);
    for (const include_usage of [true, false]) {
      provider.next({ stream: { pieces: ["Rain ", "falls."], stop: "length" } });
      const request = { ...chatRequest(productId), stream: true as const, stream_options: { include_usage } };
      const chunks: OpenAI.ChatCompletionChunk[] = [];
      for await (const chunk of await clientOf(buyer).chat.completions.create(request)) chunks.push(chunk);
      assert.equal(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), "Rain falls.");
      assert.equal(chunks[0]!.choices[0]!.delta.role, "assistant");
      const reasons = chunks.map(({ choices }) => choices[0]?.finish_reason ?? null);
      assert.equal(reasons.filter((reason) => reason === "length").length, 1);
      const usages = chunks.filter(({ usage }) => usage);
      assert.equal(usages.length, include_usage ? 1 : 0);
      if (include_usage) assert.deepEqual([chunks.at(-1), usages[0]!.choices], [usages[0], []]);
      assert.deepEqual(new Set(chunks.map(({ id }) => id)), new Set([(await newestRun(buyer)).id]));
      assert.deepEqual(new Set(chunks.map(({ model }) => model)), new Set([`${productId}@1.0.0`]));
    }
  });

  test("stream helper: assembles the completion", async () => {
    const stream = clientOf(await createBuyer()).chat.completions.stream({
      ...chatRequest(productId),
      stream: true,
    });
    const completion = await stream.finalChatCompletion();
    assert.match(completion.choices[0]!.message.content!, /^\[sandbox\] /);
  });
});
