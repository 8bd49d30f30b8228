import { estimateTokens, type Message } from "../../integrations/ai-providers/ai-provider.ts";
import { findContextWindow, type PricedCall, priceUsage } from "./cost.ts";
import type { CallPrice } from "./queries.ts";

/** A call that names no maxTokens may answer so much on a key with a budget: more would hold too much of it. */
const MAX_TOKENS = 32_768;
/** The rest of a budget that pays for less than this is no answer. */
const MIN_TOKENS = 500;
/** What a message takes beside its text: its role, and marks around it. */
const TOKENS_PER_MESSAGE = 10;
/** Prices of output are by the million. */
const MANY_TOKENS = 1_000_000;

type UnpricedCall = Omit<PricedCall, "usage" | "askedModel"> & { messages: readonly Message[] };

/** The tokens of the prompt are counted as its bytes, because no tokenizer makes more of a text: a promise is no rule of thumb. */
const maxPromptTokens = (messages: readonly Message[]) =>
  messages.reduce((sum, { content }) => sum + Buffer.byteLength(content) + TOKENS_PER_MESSAGE, 0);

/** The most that a prompt costs, and a token of its answer, in USD; null where nobody knows the price. */
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
  /** As the caller named it: it is kept, or the call is refused. */
  maxTokens?: number | undefined;
  /** May be lowered to what a budget pays for. */
  capTokens?: number | undefined;
}

/** What a call reserves of a budget; null where nobody knows its price. */
export function priceOfCall({
  options: { maxTokens, capTokens = MAX_TOKENS },
  ...call
}: UnpricedCall & { options: AnswerLimits }): CallPrice | null {
  const rates = ratesOf(call);
  if (!rates) return null;
  const promptTokens = call.messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  const usage = { promptTokens, completionTokens: 0, totalTokens: promptTokens };
  const mostTokens = maxTokens ?? Math.min(capTokens, remainingTokens(call, promptTokens));
  return {
    ...rates,
    maxTokens: mostTokens,
    minTokens: maxTokens ?? Math.min(MIN_TOKENS, mostTokens),
    abandonedUsd: priceUsage({ ...call, usage }).estimatedCost,
  };
}

/** A model refuses to be asked for more than its window holds beside the prompt. */
function remainingTokens(call: UnpricedCall, promptTokens: number): number {
  const left = (findContextWindow(call) ?? MANY_TOKENS) - promptTokens;
  return Math.max(MIN_TOKENS, Math.min(MAX_TOKENS, left));
}
