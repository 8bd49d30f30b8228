import { readFileSync } from "node:fs";
import type { ModelInfo, Usage } from "@pydantic/genai-prices";
import type { ModelMode } from "@stoa/contract";
import { HOUR_MS } from "../../core/dates.ts";
import { deferPackage } from "../../core/defer-package.ts";
import {
  estimateTokens,
  type Message,
  type ProviderId,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";

const priceList = deferPackage<typeof import("@pydantic/genai-prices")>("@pydantic/genai-prices");

export interface Cost {
  /** USD with at most 8 decimals; 0 where the price is unknown. */
  estimatedCost: number;
  costKnown: boolean;
}

export interface PricedCall {
  provider: ProviderId;
  /** The model that the answer names. */
  model: string;
  /** The requested model, in case the price list has only that name. */
  askedModel?: string;
  usage: TokenUsage;
  /** Prices change, some of them by the hour. */
  at: Date;
}

const unknownCost: Cost = { estimatedCost: 0, costKnown: false };

/**
 * The price list's names of our providers. Missing are `ollama` and `openai-compatible`: their price is between the server's owner
 * and the caller, so it is unknown rather than 0.
 */
const listedProviders: Partial<Record<ProviderId, string>> = {
  openai: "openai",
  anthropic: "anthropic",
  google: "google",
  mistral: "mistral",
  groq: "groq",
  deepseek: "deepseek",
  xai: "x-ai",
  openrouter: "openrouter",
};

const manifest = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
/** The version of the price list: it gives the same price for the same day. */
export const PRICE_LIST = `genai-prices ${JSON.parse(manifest).dependencies["@pydantic/genai-prices"]}`;

export interface ListedModel {
  id: string;
  mode: ModelMode;
  name: string | null;
  contextWindow: number | null;
  /** USD for a million tokens, at the rate of short prompts. */
  promptPrice: number;
  completionPrice: number;
}

const PRICED_TOKENS = 1_000;
const toMillionPrice = (usd: number) => roundUsd((usd * 1_000_000) / PRICED_TOKENS);

/** To price a thousand models takes 30 ms. Prices change with the hour. */
const pricedModels = new Map<ProviderId, { hour: number; models: readonly ListedModel[] }>();

/** The provider's models of both modes that have a price; those that the list calls deprecated are left out. */
export function listPricedModels(provider: ProviderId, at: Date): readonly ListedModel[] {
  const hour = Math.floor(at.getTime() / HOUR_MS);
  const known = pricedModels.get(provider);
  if (known?.hour === hour) return known.models;
  const models = priceModels(provider, at);
  pricedModels.set(provider, { hour, models });
  return models;
}

function priceModels(provider: ProviderId, at: Date): ListedModel[] {
  const providerId = listedProviders[provider];
  if (!providerId) return [];
  const usage = { input_tokens: PRICED_TOKENS, output_tokens: PRICED_TOKENS };
  return (priceList().findProvider({ providerId })?.models ?? []).flatMap((model) => {
    const price = priceList().calcPrice(usage, model.id, { providerId, timestamp: at });
    const mode = modeOf(model);
    // Some names are found as another model: a run with them would have its price.
    if (price?.model.id !== model.id || model.deprecated || !mode) return [];
    return {
      id: model.id,
      mode,
      name: model.name ?? null,
      contextWindow: model.context_window ?? null,
      promptPrice: toMillionPrice(price.input_price),
      completionPrice: toMillionPrice(price.output_price),
    };
  });
}

export interface ListPrice {
  /** USD for a million tokens, at the rate of short prompts; null: the list has no price. */
  promptPrice: number | null;
  completionPrice: number | null;
  isDeprecated: boolean;
}

/** At noon in UTC: prices that change by the hour are the same each day. */
export function findListPrice({ provider, model, at }: Omit<PricedCall, "usage">): ListPrice {
  const providerId = listedProviders[provider];
  const noon = new Date(at);
  noon.setUTCHours(12, 0, 0, 0);
  const usage = { input_tokens: PRICED_TOKENS, output_tokens: PRICED_TOKENS };
  const price = providerId ? priceList().calcPrice(usage, model, { providerId, timestamp: noon }) : null;
  return {
    promptPrice: price && toMillionPrice(price.input_price),
    completionPrice: price && toMillionPrice(price.output_price),
    isDeprecated: price?.model.deprecated ?? false,
  };
}

/**
 * The price list has no modes. Embedding models are recognized by their names: some have a price of an output, although they never return one.
 * null: another kind, such as transcriptions.
 */
function modeOf({ id, prices }: Pick<ModelInfo, "id" | "prices">): ModelMode | null {
  const all = Array.isArray(prices) ? prices.map((conditional) => conditional.prices) : [prices];
  const has = (price: "input_mtok" | "output_mtok") => all.some((each) => each[price] !== undefined);
  if (id.includes("embed")) return has("input_mtok") ? "embedding" : null;
  return has("output_mtok") ? "chat" : null;
}

/** null: the list does not have the model. */
export function findListedMode({ provider, model, at }: Omit<PricedCall, "usage">): ModelMode | null {
  const providerId = listedProviders[provider];
  const usage = { input_tokens: 0, output_tokens: 0 };
  const listed = providerId && priceList().calcPrice(usage, model, { providerId, timestamp: at });
  return listed ? modeOf(listed.model) : null;
}

export function findContextWindow({ provider, model, at }: Omit<PricedCall, "usage">): number | null {
  const providerId = listedProviders[provider];
  if (!providerId) return null;
  const listed = priceList().calcPrice({ input_tokens: 0, output_tokens: 0 }, model, {
    providerId,
    timestamp: at,
  });
  return listed?.model.context_window ?? null;
}

export function priceUsage({ provider, model, askedModel = model, usage, at }: PricedCall): Cost {
  if (provider === "sandbox") return { estimatedCost: 0, costKnown: true };
  const providerId = listedProviders[provider];
  if (!providerId) return unknownCost;
  const billed = toBilledUsage(usage);
  const options = { providerId, timestamp: at };
  const price =
    priceList().calcPrice(billed, model, options) ?? priceList().calcPrice(billed, askedModel, options);
  return price ? { estimatedCost: roundUsd(price.total_price), costKnown: true } : unknownCost;
}

/** The cost of these tokens; null: a count or the price is unknown. */
export function findCostUsd(
  { provider, model, at }: Pick<PricedCall, "provider" | "at"> & { model: string | null },
  promptTokens: number | null,
  completionTokens: number | null,
): number | null {
  if (provider === "sandbox") return 0;
  if (model === null || promptTokens === null || completionTokens === null) return null;
  const usage = { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
  const { estimatedCost, costKnown } = priceUsage({ provider, model, usage, at });
  return costKnown ? estimatedCost : null;
}

/**
 * Expected output of a call without maxTokens. A higher value blocks calls that fit a budget; a lower one exceeds the budget
 * unnoticed.
 */
const DEFAULT_OUTPUT_TOKENS = 500;

export interface ExpectedCall extends Pick<PricedCall, "provider" | "model" | "at"> {
  messages: readonly Message[];
  options: { maxTokens?: number | undefined };
}

/** The expected cost of a call in USD; 0: the price is unknown. */
export const expectedCostOf = (call: ExpectedCall): number =>
  priceUsage({ ...call, usage: estimateUsage(call) }).estimatedCost;

export function estimateUsage({ messages, options }: ExpectedCall): TokenUsage {
  const promptTokens = messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  const completionTokens = options.maxTokens ?? DEFAULT_OUTPUT_TOKENS;
  return { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens };
}

/** The price list throws on more cached tokens than tokens, which some providers report. */
function toBilledUsage({
  promptTokens,
  completionTokens,
  cachedTokens = 0,
  cacheWriteTokens = 0,
}: TokenUsage): Usage {
  const read = Math.min(cachedTokens, promptTokens);
  return {
    input_tokens: promptTokens,
    cache_read_tokens: read,
    cache_write_tokens: Math.min(cacheWriteTokens, promptTokens - read),
    output_tokens: completionTokens,
  };
}

const DECIMALS = 8;
/** A double holds 15 decimal digits exactly; further digits are noise of earlier sums. */
const EXACT_DIGITS = 15;

/** Half-up to 8 decimals, on the decimal digits: 1.5e-8 is 2e-8, even if a sum left it at 1.4999999999999999e-8. */
export function roundUsd(usd: number): number {
  const [mantissa = "0", exponent = "0"] = usd.toExponential(EXACT_DIGITS - 1).split("e");
  const digits = BigInt(mantissa.replace(".", ""));
  const shift = Number(exponent) - (EXACT_DIGITS - 1) + DECIMALS;
  if (shift >= 0) return Number(`${digits * 10n ** BigInt(shift)}e-${DECIMALS}`);
  const divisor = 10n ** BigInt(-shift);
  return Number(`${(digits + divisor / 2n) / divisor}e-${DECIMALS}`);
}
