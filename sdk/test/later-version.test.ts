import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { endpoints } from "@stoa/contract";
import { createProduct, workflow } from "@stoa/service/test/factories.ts";
import { sampleOf } from "@stoa/service/test/full-size.ts";
import { type Client as Account, type Market, openMarket } from "@stoa/service/test/market.ts";
import { ApiError, Stoa } from "../src/index.ts";
import { laterFetch, laterResponsesOf } from "./later-version.ts";
import { argumentsFor, finish, methodOf } from "./operations.ts";

let market: Market;
before(async () => {
  market = await openMarket({
    config: { roles: { api: true, worker: true } },
    graceMs: 0,
    now: () => new Date(),
  });
});
after(() => market.close());

const connect = (apiKey: string, fetch: typeof globalThis.fetch) =>
  new Stoa({ baseUrl: `${market.origin}/v1`, apiKey, maxRetries: 0, fetch });

suite("a later version of the service: each operation of this SDK works", () => {
  const answered = new Set(sampleOf(endpoints, 1));
  for (const endpoint of endpoints) {
    const call = (stoa: Stoa) => {
      const abort = new AbortController();
      const options = { signal: abort.signal };
      return finish(methodOf(stoa, endpoint.name)(...argumentsFor(endpoint), options), abort);
    };

    if (answered.has(endpoint))
      test(`${endpoint.name}: a real answer with unknown fields, values and codes`, async () => {
        const member = await market.createUser({ role: "admin" });
        const { key } = await market.createSession(member.userId, { secondFactor: true });
        await call(connect(key, laterFetch)).catch((error) => {
          assert.ok(error instanceof ApiError, String(error));
          assert.equal(error.code, "added_later");
        });
      });

    test(`${endpoint.name}: a success with unknown fields and values`, async () => {
      for (const respond of laterResponsesOf(endpoint.name)) {
        const isStream = respond().headers.get("content-type") === "text/event-stream";
        if (isStream && "canStream" in endpoint.response) continue;
        const result = await call(connect("key", async () => respond()));
        assert.ok(result !== undefined);
        if (endpoint.response.kind !== "file") assert.match(JSON.stringify(result), /addedLater/);
      }
    });
  }
});

suite("a later version of the service: streams of this SDK end with their result", () => {
  const variables = { topic: "autumn" };
  let seller: Account;
  let stoa: Stoa;
  before(async () => {
    seller = await market.createUser();
    stoa = connect(seller.key, laterFetch);
  });

  test("ai.stream: text and result, among unknown events", async () => {
    const productId = await createProduct(seller);
    const run = { productId, apiKeyId: "sandbox", variables };
    const { output } = await stoa.ai.execute(run);
    let text = "";
    for await (const piece of stoa.ai.stream(run).text()) text += piece;
    assert.equal(text, output);
    assert.equal((await stoa.ai.stream(run).result()).output, output);
    const types: string[] = [];
    for await (const { type } of stoa.ai.stream(run)) types.push(type);
    assert.ok(types.includes("added_later"));
    assert.equal(types.at(-1), "execution.completed");
  });

  test("ai.workflows.stream: the result, among unknown events", async () => {
    const content = JSON.stringify(workflow);
    const workflowId = await createProduct(seller, { type: "WORKFLOW", content });
    const input = { input: variables, apiKeys: { openai: "sandbox", anthropic: "sandbox" } };
    const { output } = await stoa.ai.workflows.stream(workflowId, input).result();
    assert.ok(output !== undefined);
  });

  test("events.listen: known and unknown events", async () => {
    const after = "evt_00000000000000000000000000";
    const events: unknown[] = [];
    for await (const event of stoa.events.listen({ after })) if (events.push(event) === 4) break;
    assert.ok(events.some((event) => (event as { data?: unknown }).data === undefined));
    assert.ok(events.some((event) => /"product":/.test(JSON.stringify(event))));
  });
});
