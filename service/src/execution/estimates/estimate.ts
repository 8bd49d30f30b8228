import type { Estimate, EstimatedCall, EstimateExecution, Execute } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import {
  defaultModels,
  estimateTokens,
  type Message,
  type ProviderId,
} from "../../integrations/ai-providers/ai-provider.ts";
import { mustBeEntitled, type Product, readAndPrepareRun, renderPrompt } from "../prompt-runs/prepare-run.ts";
import { findContextWindow, findCostUsd, PRICE_LIST } from "../provider-keys/cost.ts";
import { estimateWorkflow } from "./estimate-workflow.ts";

interface EstimatedRun {
  version: string;
  calls: EstimatedCall[];
  cost: EstimatedCall["cost"];
}

/** Estimates a run with the checks of POST /ai/execute. Calls no provider and writes nothing. */
export async function estimateRun(ctx: Context, caller: Member, input: EstimateExecution): Promise<Estimate> {
  const { product, ...estimated } = await estimateProduct(ctx, caller, input);
  const { version: productVersion, calls, cost } = estimated;
  const productId = toId("prod", product.id);
  return {
    productId,
    productVersion,
    type: product.type as Estimate["type"],
    calls,
    cost,
    prices: PRICE_LIST,
  };
}

async function estimateProduct(
  ctx: Context,
  caller: Member,
  { apiKeyId, ...input }: EstimateExecution,
): Promise<EstimatedRun & { product: Pick<Product, "id" | "type"> }> {
  if (apiKeyId !== undefined) return estimateWithKey(ctx, caller, { ...input, apiKeyId });
  const product = await findProductToRun(ctx, caller, input.productId);
  mustBeEntitled(product);
  if (product.type === "WORKFLOW" && input.draft)
    throw ruleViolation("draft", "is for prompts: this product is a workflow");
  if (product.type === "WORKFLOW") return { product, ...(await estimateWorkflow(ctx, product, input)) };
  const { version, messages } = await renderPrompt(ctx, product, input);
  const call = { messages, maxTokens: input.options.maxTokens, at: ctx.now() };
  const calls = product.compatibility.map((id) => {
    const provider = id as ProviderId;
    const model = input.options.model ?? product.models[provider] ?? defaultModels[provider];
    return estimateCall({ ...call, provider, model });
  });
  return { product, version, calls, cost: costRange(calls.map(({ cost }) => cost)) };
}

async function estimateWithKey(
  ctx: Context,
  caller: Member,
  input: EstimateExecution & { apiKeyId: string },
) {
  const request: Execute = { ...input, stream: false, options: { ...input.options, store: false } };
  const { product, version, key, model, messages } = await readAndPrepareRun(ctx, caller, request);
  const { maxTokens } = input.options;
  const call = estimateCall({ provider: key.provider, model, messages, maxTokens, at: ctx.now() });
  return { product, version, calls: [call], cost: call.cost };
}

interface CallInput {
  provider: ProviderId;
  model: string | null;
  messages: readonly Message[];
  maxTokens: number | undefined;
  at: Date;
}

function estimateCall({ messages, maxTokens, model, ...call }: CallInput): EstimatedCall {
  const promptTokens = messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  const contextWindow = model === null ? null : findContextWindow({ ...call, model });
  const left = contextWindow === null ? null : Math.max(0, contextWindow - promptTokens);
  const max = left === null ? (maxTokens ?? null) : Math.min(left, maxTokens ?? left);
  const costWith = (completionTokens: number | null) =>
    findCostUsd({ ...call, model }, promptTokens, completionTokens);
  return {
    stepId: null,
    provider: call.provider,
    model,
    calls: { min: 1, max: 1 },
    promptTokens: { min: promptTokens, max: promptTokens },
    completionTokens: { min: 0, max: max },
    cost: { min: costWith(0), max: costWith(max) },
    contextWindow,
    fits: contextWindow === null ? null : promptTokens + (maxTokens ?? 1) <= contextWindow,
  };
}

/** The range over all providers; null if one of them has no price. */
function costRange(costs: readonly EstimatedCall["cost"][]): EstimatedCall["cost"] {
  const [mins, maxs] = [costs.map(({ min }) => min), costs.map(({ max }) => max)];
  return {
    min: areAllKnown(mins) ? Math.min(...mins) : null,
    max: areAllKnown(maxs) ? Math.max(...maxs) : null,
  };
}

const areAllKnown = (costs: (number | null)[]): costs is number[] =>
  costs.length > 0 && costs.every((cost) => cost !== null);
