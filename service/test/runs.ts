import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { providers } from "@stoa/contract";
import type { SdkProvidersOptions } from "../src/integrations/ai-providers/sdk-providers.ts";
import type { Client, Reply } from "./market.ts";
import { GOOD_KEY, type ProviderServer } from "./provider-server.ts";

/** Every provider at this server's address, without pauses between retries. */
export const providersAt = (server: ProviderServer): Partial<SdkProvidersOptions> => ({
  baseUrls: Object.fromEntries(providers.map((id) => [id, server.url])),
  sleep: async () => {},
});

/** Stores a provider key that the server accepts. Returns its id. */
export async function createProviderKey(owner: Client, input: Record<string, unknown> = {}): Promise<string> {
  const reply = await owner.post("/v1/ai/keys", { provider: "openai", name: "Key", key: GOOD_KEY, ...input });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data.id;
}

export interface RunInput {
  productId: string;
  apiKeyId?: string;
  variables?: unknown;
  draft?: unknown;
  stream?: unknown;
  options?: Record<string, unknown>;
}

/** Runs a product, by default in the sandbox. */
export const run = (caller: Client, input: RunInput, headers: Record<string, string> = {}): Promise<Reply> =>
  caller.post("/v1/ai/execute", { apiKeyId: "sandbox", variables: { topic: "rain" }, ...input }, headers);

/** Runs a product and asserts success. */
export async function runToCompletion(caller: Client, input: RunInput) {
  const reply = await run(caller, input);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}

/** The newest execution in the owner's history. */
export async function newestRun(owner: Client) {
  const list = await owner.get("/v1/ai/executions?limit=1");
  assert.equal(list.status, 200, list.text);
  return list.body.data[0];
}

const ANSWER = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_700_000_000,
  model: "gpt-4o",
  choices: [{ index: 0, message: { role: "assistant", content: "At last." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
};

/** A call that has not arrived by then never will, on a busy machine either. */
const ARRIVAL_MS = 120_000;

/**
 * A provider with OpenAI's format that answers all waiting calls when released, and later ones at once. Key
 * verifications are answered at once, unless the next one is held too.
 */
export async function startBlockedProvider() {
  const released = Promise.withResolvers<number>();
  let listingsToHold = 0;
  const server = createServer(async (request, response) => {
    request.resume();
    const isHeld = request.method !== "GET" || listingsToHold-- > 0;
    if (isHeld) arrive();
    const status = isHeld ? await released.promise : 200;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(status === 200 ? JSON.stringify(ANSWER) : "{}");
  });
  let arrived = 0;
  const arrive = () => {
    arrived++;
    server.emit("arrival");
  };
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    arrived: () => arrived,
    holdNextListing: () => {
      listingsToHold = 1;
    },
    async arrivals(count: number) {
      const signal = AbortSignal.timeout(ARRIVAL_MS);
      while (arrived < count) await once(server, "arrival", { signal });
    },
    answer: (status = 200) => released.resolve(status),
    async close() {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}
