import type { Execute } from "@stoa/contract";
import { ruleViolation } from "../../core/errors.ts";
import type { Message, ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { ratesOf } from "../provider-keys/call-price.ts";
import { roundUsd } from "../provider-keys/cost.ts";

export interface CostlyCall {
  provider: ProviderId;
  model: string;
  messages: readonly Message[];
  at: Date;
}

/** More than any model answers. */
const MANY_TOKENS = 1_000_000;

/** `capTokens`: the most that an answer may have whose caller named no maxTokens. */
export type RunOptions = Execute["options"] & { capTokens?: number };

/**
 * The options with `maxTokens` so low that the run cannot cost more than `maxCost`. The tokens of the prompt are
 * counted as its bytes, because no tokenizer of those providers makes more of a text: a promise is no rule of thumb.
 */
export function limitToMaxCost(options: Execute["options"], call: CostlyCall): RunOptions {
  const { maxCost, maxTokens } = options;
  if (maxCost === undefined || call.provider === "sandbox") return options;
  const most = maxOutputTokens(maxCost, call);
  if (maxTokens !== undefined) return { ...options, maxTokens: Math.min(maxTokens, most) };
  return most < MANY_TOKENS ? { ...options, capTokens: most } : options;
}

function maxOutputTokens(maxCost: number, call: CostlyCall): number {
  const rates = ratesOf(call);
  if (!rates) throw ruleViolation("options.maxCost", unknownPriceReason(call));
  const { promptUsd, tokenUsd } = rates;
  const costWith = (tokens: number) => roundUsd(promptUsd + tokens * tokenUsd);
  const least = costWith(1);
  if (least > maxCost)
    throw ruleViolation(
      "options.maxCost",
      `must be at least ${formatUsd(least)} for this prompt with ${call.model}: raise it, shorten the variables, or choose a cheaper options.model`,
    );
  let most = tokenUsd > 0 ? Math.floor((maxCost - promptUsd) / tokenUsd) : Number.POSITIVE_INFINITY;
  // The division is of doubles: its last token may be one too many.
  while (Number.isFinite(most) && costWith(most) > maxCost) most--;
  return Math.min(most, MANY_TOKENS);
}

export const unknownPriceReason = ({ model, provider }: Pick<CostlyCall, "model" | "provider">): string =>
  `cannot be kept, because the price list has no price of ${model} of ${provider}: choose a model with a price (POST /v1/ai/estimate shows the cost if it is known), or leave maxCost out`;

/** As a decimal that may be sent as it is. */
const formatUsd = (usd: number) => usd.toFixed(8).replace(/0+$/, "");
