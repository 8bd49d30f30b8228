import { estimateTokens, type Message } from "../../integrations/ai-providers/ai-provider.ts";
import { findContextWindow, type PricedCall, priceUsage } from "./cost.ts";
import type { CallPrice } from "./queries.ts";

/** Cap for a call without maxTokens on a key with a budget: a higher one would reserve too much of it. */
const MAX_TOKENS = 32_768;
/** A cap below this leaves no useful answer. */
const MIN_TOKENS = 500;
/** Tokens of a message besides its text: its role and separators. */
const TOKENS_PER_MESSAGE = 10;
const MANY_TOKENS = 1_000_000;

type UnpricedCall = Omit<PricedCall, "usage" | "askedModel"> & { messages: readonly Message[] };

/** Counts bytes, because no tokenizer makes more tokens than bytes: a limit must not rely on an estimate. */
const maxPromptTokens = (messages: readonly Message[]) =>
  messages.reduce((sum, { content }) => sum + Buffer.byteLength(content) + TOKENS_PER_MESSAGE, 0);

/** The highest cost of the prompt and the price of an output token, in USD; null: the price is unknown. */
export function ratesOf({ messages, ...call }: UnpricedCall): { promptUsd: number; tokenUsd: number } | null {
  const promptTokens = maxPromptTokens(messages);
  const costWith = (completionTokens: number) => {
    const usage = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
    return priceUsage({ ...call, usage });
  };
  const { estimatedCost: promptUsd, costKnown } = costWith(0);
  if (!costKnown) return null;
  return { promptUsd, tokenUsd: (costWith(MANY_TOKENS).estimatedCost - promptUsd) / MANY_TOKENS };
}

export interface AnswerLimits {
  /** The caller's limit, which is never lowered. */
  maxTokens?: number | undefined;
  /** A budget may lower this limit. */
  capTokens?: number | undefined;
}

/** The price for the reservation of a call; null: the price is unknown. */
export function priceOfCall({
  options: { maxTokens, capTokens = MAX_TOKENS },
  ...call
}: UnpricedCall & { options: AnswerLimits }): CallPrice | null {
  const rates = ratesOf(call);
  if (!rates) return null;
  const promptTokens = call.messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  const usage = { promptTokens, completionTokens: 0, totalTokens: promptTokens };
  const limit = maxTokens ?? Math.min(capTokens, remainingTokens(call, promptTokens));
  return {
    ...rates,
    maxTokens: limit,
    minTokens: maxTokens ?? Math.min(MIN_TOKENS, limit),
    abandonedUsd: priceUsage({ ...call, usage }).estimatedCost,
  };
}

/** Models refuse a limit that exceeds their context window minus the prompt. */
function remainingTokens(call: UnpricedCall, promptTokens: number): number {
  const left = (findContextWindow(call) ?? MANY_TOKENS) - promptTokens;
  return Math.max(MIN_TOKENS, Math.min(MAX_TOKENS, left));
}
