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

/** Above the output limit of every model. */
const MANY_TOKENS = 1_000_000;

/** `capTokens`: the output limit for a request without maxTokens. */
export type RunOptions = Execute["options"] & { capTokens?: number };

/**
 * Lowers `maxTokens` so that the run cannot cost more than `maxCost`. Counts the prompt's bytes as tokens, because no tokenizer
 * makes more tokens than bytes.
 */
export function limitToMaxCost(options: Execute["options"], call: CostlyCall): RunOptions {
  const { maxCost, maxTokens } = options;
  if (maxCost === undefined || call.provider === "sandbox") return options;
  const limit = maxOutputTokens(maxCost, call);
  if (maxTokens !== undefined) return { ...options, maxTokens: Math.min(maxTokens, limit) };
  return limit < MANY_TOKENS ? { ...options, capTokens: limit } : options;
}

function maxOutputTokens(maxCost: number, call: CostlyCall): number {
  const rates = ratesOf(call);
  if (!rates) throw ruleViolation("options.maxCost", unknownPriceReason(call));
  const { promptUsd, tokenUsd } = rates;
  const costWith = (tokens: number) => roundUsd(promptUsd + tokens * tokenUsd);
  const minUsd = costWith(1);
  if (minUsd > maxCost)
    throw ruleViolation(
      "options.maxCost",
      `must be at least ${formatUsd(minUsd)} for this prompt with ${call.model}: raise it, shorten the variables, or choose a cheaper options.model`,
    );
  let limit = tokenUsd > 0 ? Math.floor((maxCost - promptUsd) / tokenUsd) : Number.POSITIVE_INFINITY;
  // Division of doubles may give one token too many.
  while (Number.isFinite(limit) && costWith(limit) > maxCost) limit--;
  return Math.min(limit, MANY_TOKENS);
}

export const unknownPriceReason = ({ model, provider }: Pick<CostlyCall, "model" | "provider">): string =>
  `cannot be enforced, because the price list has no price of ${model} of ${provider}: choose a model with a price (POST /v1/ai/estimate shows the cost if it is known), or leave maxCost out`;

/** A decimal without an exponent, which the caller can send back. */
const formatUsd = (usd: number) => usd.toFixed(8).replace(/0+$/, "");
