import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { findCostUsd } from "../provider-keys/cost.ts";
import { findRunKey } from "../provider-keys/provider-keys.ts";
import { findProvider } from "../workflow-runs/product-step.ts";
import { findModel } from "../workflow-runs/step-call.ts";

/** The id of a key by provider. */
type Keys = Record<string, string>;

interface BaselineModel {
  provider: string;
  model: string;
  isSandbox: boolean;
  apiKeys: Keys;
}

type Step = Workflow["steps"][number];
type MapStep = Extract<Step, { type: "map" }>;
type ItemStep = MapStep["do"];

interface RequestedModel {
  provider: string;
  /** By provider of the key; undefined: the default one. */
  modelOf: (provider: string) => string | undefined;
}

/**
 * The model of the last step that calls one by itself or by a prompt, with the key that the step gets. null: no step does, or the price
 * list has no price of its model.
 */
export async function findBaselineModel(
  ctx: Context,
  caller: Member,
  { steps }: Workflow,
  apiKeys: Keys,
): Promise<BaselineModel | null> {
  for (const step of steps.toReversed()) {
    const requested = await findRequestedModel(ctx, caller, step.type === "map" ? step.do : step, apiKeys);
    const apiKeyId = requested && apiKeys[requested.provider];
    if (!requested || !apiKeyId) continue;
    const key = await findRunKey(ctx, caller, apiKeyId);
    const model = findModel(key, requested.provider, requested.modelOf(key.provider));
    if (findCostUsd({ provider: key.provider, model, at: ctx.now() }, 1, 1) === null) return null;
    const isSandbox = key.provider === "sandbox";
    return { provider: key.provider, model, isSandbox, apiKeys: { [key.provider]: apiKeyId } };
  }
  return null;
}

async function findRequestedModel(
  ctx: Context,
  caller: Member,
  step: Exclude<Step, MapStep> | ItemStep,
  apiKeys: Keys,
): Promise<RequestedModel | null> {
  if (step.type === "prompt") return { provider: step.provider, modelOf: () => step.model };
  if (step.type !== "product") return null;
  const product = await findProductToRun(ctx, caller, step.productId);
  const provider = product.type === "PROMPT" ? findProvider(product.compatibility, apiKeys) : undefined;
  if (provider === undefined) return null;
  return { provider, modelOf: (ofKey) => step.model ?? product.models[ofKey] };
}
