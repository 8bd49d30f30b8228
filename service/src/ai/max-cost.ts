import type { Execute } from "@stoa/contract";
import { ruleBroken } from "../errors.ts";
import type { Message, ProviderId } from "../outside/ai-provider.ts";
import { type Cost, costOf } from "./cost.ts";

export interface CostlyCall {
  provider: ProviderId;
  model: string;
  messages: readonly Message[];
  at: Date;
}

/** What a message takes beside its text: its role, and marks around it. */
const TOKENS_OF_A_MESSAGE = 10;
/** Prices of output are by the million. */
const MANY_TOKENS = 1_000_000;

/**
 * The options with `maxTokens` so low that the run cannot cost more than `maxCost`. The tokens of the prompt are
 * counted as its bytes, because no tokenizer of those providers makes more of a text: a promise is no rule of thumb.
 */
export function withinCost(options: Execute["options"], call: CostlyCall): Execute["options"] {
  const { maxCost, maxTokens = Number.POSITIVE_INFINITY } = options;
  if (maxCost === undefined || call.provider === "sandbox") return options;
  const most = mostOutputTokens(maxCost, call);
  return Number.isFinite(most) ? { ...options, maxTokens: Math.min(maxTokens, most) } : options;
}

function mostOutputTokens(maxCost: number, call: CostlyCall): number {
  const promptTokens = mostPromptTokens(call.messages);
  const costWith = (completionTokens: number) => {
    const usage = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
    return costOf({ ...call, usage });
  };
  const promptAlone = mustBeKnown(costWith(0), call);
  const perToken = (costWith(MANY_TOKENS).estimatedCost - promptAlone) / MANY_TOKENS;
  const least = costWith(1).estimatedCost;
  if (least > maxCost)
    throw ruleBroken("options.maxCost", `must be at least ${inUsd(least)} for this prompt`);
  let most = perToken > 0 ? Math.floor((maxCost - promptAlone) / perToken) : Number.POSITIVE_INFINITY;
  // The division is of doubles: its last token may be one too many.
  while (Number.isFinite(most) && costWith(most).estimatedCost > maxCost) most--;
  return Math.min(most, MANY_TOKENS);
}

const mostPromptTokens = (messages: readonly Message[]) =>
  messages.reduce((sum, { content }) => sum + Buffer.byteLength(content) + TOKENS_OF_A_MESSAGE, 0);

function mustBeKnown({ estimatedCost, costKnown }: Cost, { provider, model }: CostlyCall): number {
  if (costKnown) return estimatedCost;
  throw ruleBroken("options.maxCost", `cannot be kept: nobody knows what ${model} of ${provider} costs`);
}

/** As a decimal that may be sent as it is. */
const inUsd = (usd: number) => usd.toFixed(8).replace(/0+$/, "");
