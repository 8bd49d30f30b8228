import { GOOD_KEY } from "@stoa/service/test/provider-server.ts";
import { type Calls, makeCalls } from "./calls.ts";
import { clientOf } from "./client.ts";
import type { Portkey } from "./peers/portkey.ts";
import type { Shop } from "./shop.ts";

/** A path to the provider, with its requests. */
export interface CallPath {
  name: string;
  /** The processes between caller and provider. */
  processes(): Promise<number[]>;
  call(model: string, isStream: boolean): Pick<Calls, "url" | "headers" | "body">;
}

const CONTENT = "A prompt of about the length that prompts have. ".repeat(12);
const chat = (model: string, stream: boolean) =>
  JSON.stringify({ model, stream, messages: [{ role: "user", content: CONTENT }] });
const AUTHORIZATION = `Bearer ${GOOD_KEY}`;

export const directly = (providerUrl: string): CallPath => ({
  name: "directly",
  processes: async () => [],
  call: (model, isStream) => ({
    url: `${providerUrl}/chat/completions`,
    headers: { authorization: AUTHORIZATION },
    body: chat(model, isStream),
  }),
});

export const throughPortkey = ({ name, origin, pid }: Portkey, providerUrl: string): CallPath => ({
  name,
  processes: async () => [pid],
  call: (model, isStream) => ({
    url: `${origin}/v1/chat/completions`,
    headers: {
      authorization: AUTHORIZATION,
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": providerUrl,
    },
    body: chat(model, isStream),
  }),
});

/** A bought prompt with a stored provider key. */
export async function throughStoa(
  { backends }: Pick<Shop, "backends">,
  { origin, pid }: Pick<Shop, "origin" | "pid">,
  { buyer, productId }: { buyer: string; productId: string },
  providerUrl: string,
): Promise<CallPath> {
  const client = clientOf(origin, buyer);
  // Another scenario may have bought it.
  await client.post("/v1/purchases", { productId }).catch(() => {});
  const { data } = await client.get<{ data: { variables: { name: string }[] } }>(`/v1/products/${productId}`);
  const { id: apiKeyId } = await client.post<{ id: string }>("/v1/ai/keys", {
    ...{ provider: "openai-compatible", name: "bench", key: GOOD_KEY, baseUrl: providerUrl },
  });
  const variables = Object.fromEntries(data.variables.map(({ name }) => [name, "something"]));
  return {
    name: "Stoa",
    processes: async () => [pid, ...(await backends())],
    call: (model, stream) => ({
      url: `${origin}/v1/ai/execute`,
      headers: { authorization: `Bearer ${buyer}` },
      body: JSON.stringify({ productId, apiKeyId, variables, stream, options: { model } }),
    }),
  };
}

export interface Load extends Pick<Calls, "atOnce" | "amount" | "spreadMs" | "until"> {
  model: string;
}

export const AT_ONCE = "at-once";

export function callBy(way: CallPath, { model, until, ...load }: Load) {
  const isStream = until === "first word";
  const { body: warmUpBody } = way.call(AT_ONCE, isStream);
  return makeCalls({ ...load, ...way.call(model, isStream), until, warmUpBody });
}
