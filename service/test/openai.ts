import assert from "node:assert/strict";
import OpenAI from "openai";
import type { Client, Market } from "./market.ts";

/** OpenAI's official client on the market's endpoints. */
export const officialClient = (market: Market, { key }: Client, options: object = {}) =>
  new OpenAI({ apiKey: key, baseURL: `${market.origin}/v1/openai`, ...options });

export type ChatInput = Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> & Record<string, unknown>;

/** A request about rain to the given product. */
export const chatRequest = (
  model: string,
  input: ChatInput = {},
): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
  model,
  messages: [{ role: "user", content: '{"topic": "rain"}' }],
  ...input,
});

/** The error that the official client throws. */
export async function apiErrorOf(call: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error = await call.then(
    () => assert.fail("it was answered"),
    (thrown) => thrown,
  );
  assert.ok(error instanceof OpenAI.APIError, String(error));
  return error;
}
