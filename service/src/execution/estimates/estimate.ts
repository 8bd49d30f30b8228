import type { Estimate, EstimatedCall, EstimateResult, Execute } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import {
  defaultModels,
  estimateTokens,
  type Message,
  type ProviderId,
} from "../../integrations/ai-providers/ai-provider.ts";
import { mustBeBought, type Product, prepare, renderedFor } from "../prompt-runs/prepare-run.ts";
import { contextWindowOf, PRICE_LIST, usdOf } from "../provider-keys/cost.ts";
import { estimateWorkflow } from "./estimate-workflow.ts";

interface Estimated {
  version: string;
  calls: EstimatedCall[];
  cost: EstimatedCall["cost"];
}

/** What a run would take, by what POST /ai/execute would check. Nothing is called, and nothing is written. */
export async function estimate(ctx: Context, caller: Member, wish: Estimate): Promise<EstimateResult> {
  const { product, ...estimated } = await estimatedBy(ctx, caller, wish);
  const { version: productVersion, calls, cost } = estimated;
  const productId = toId("prod", product.id);
  return {
    productId,
    productVersion,
    type: product.type as EstimateResult["type"],
    calls,
    cost,
    prices: PRICE_LIST,
  };
}

async function estimatedBy(
  ctx: Context,
  caller: Member,
  { apiKeyId, ...wish }: Estimate,
): Promise<Estimated & { product: Product }> {
  if (apiKeyId !== undefined) return withKey(ctx, caller, { ...wish, apiKeyId });
  const product = await findProductToRun(ctx, caller, wish.productId);
  mustBeBought(product);
  if (product.type === "WORKFLOW") return { product, ...(await estimateWorkflow(ctx, product, wish)) };
  const { version, messages } = await renderedFor(ctx, product, wish);
  const call = { messages, maxTokens: wish.options.maxTokens, at: ctx.now() };
  const calls = product.compatibility.map((id) => {
    const provider = id as ProviderId;
    const model = wish.options.model ?? product.models[provider] ?? defaultModels[provider];
    return estimatedCall({ ...call, provider, model });
  });
  return { product, version, calls, cost: rangeOf(calls.map(({ cost }) => cost)) };
}

async function withKey(ctx: Context, caller: Member, wish: Estimate & { apiKeyId: string }) {
  const asked: Execute = { ...wish, stream: false, options: { ...wish.options, store: false } };
  const { product, version, key, model, messages } = await prepare(ctx, caller, asked);
  const { maxTokens } = wish.options;
  const call = estimatedCall({ provider: key.provider, model, messages, maxTokens, at: ctx.now() });
  return { product, version, calls: [call], cost: call.cost };
}

interface OneCall {
  provider: ProviderId;
  model: string | null;
  messages: readonly Message[];
  maxTokens: number | undefined;
  at: Date;
}

function estimatedCall({ messages, maxTokens, model, ...call }: OneCall): EstimatedCall {
  const promptTokens = messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  const contextWindow = model === null ? null : contextWindowOf({ ...call, model });
  const left = contextWindow === null ? null : Math.max(0, contextWindow - promptTokens);
  const most = left === null ? (maxTokens ?? null) : Math.min(left, maxTokens ?? left);
  const costWith = (completionTokens: number | null) =>
    usdOf({ ...call, model }, promptTokens, completionTokens);
  return {
    stepId: null,
    provider: call.provider,
    model,
    calls: { min: 1, max: 1 },
    promptTokens: { min: promptTokens, max: promptTokens },
    completionTokens: { min: 0, max: most },
    cost: { min: costWith(0), max: costWith(most) },
    contextWindow,
    fits: contextWindow === null ? null : promptTokens + (maxTokens ?? 1) <= contextWindow,
  };
}

/** Of several that could be made, the cheapest and the dearest; nothing is known where one is not. */
function rangeOf(costs: readonly EstimatedCall["cost"][]): EstimatedCall["cost"] {
  const [mins, maxs] = [costs.map(({ min }) => min), costs.map(({ max }) => max)];
  return { min: known(mins) ? Math.min(...mins) : null, max: known(maxs) ? Math.max(...maxs) : null };
}

const known = (costs: (number | null)[]): costs is number[] =>
  costs.length > 0 && costs.every((cost) => cost !== null);
