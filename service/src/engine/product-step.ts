import { mustBeBought, versionToRun } from "../ai/prepare.ts";
import { keyToRunWith } from "../ai/provider-keys.ts";
import { noteFirstUse } from "../ai/run.ts";
import type { Context } from "../context.ts";
import { ApiError, fieldError, ruleBroken } from "../errors.ts";
import { fitsEverything } from "../outside/ai-provider.ts";
import { findProductToRun } from "../products/detail.ts";
import { parseMessages, renderMessages } from "../prompts/template.ts";
import { checkVariables } from "../prompts/variables.ts";
import { Workflow } from "../workflows/definition.ts";
import { checkInput } from "../workflows/inputs.ts";
import { callForText, guarded, modelFor } from "./calls.ts";
import { memberOf } from "./member.ts";
import { newExecution } from "./new-execution.ts";
import type { Outcome } from "./outcome.ts";
import type { Surroundings } from "./prepare.ts";
import type { StepRun, Work } from "./state.ts";
import { toText } from "./values.ts";

type ProductWork = Extract<Work, { type: "product" }>;
type Product = Awaited<ReturnType<typeof findProductToRun>>;

/** How deep workflows may call each other; the one that was asked for is the first. */
export const MAX_DEPTH = 3;

/** Runs another product that the run's owner has: a prompt at once, a workflow as an execution of its own. */
export const callProduct = (
  ctx: Context,
  run: Surroundings,
  step: StepRun,
  work: ProductWork,
  values: Record<string, unknown>,
  signal: AbortSignal,
): Promise<Outcome> =>
  guarded(ctx, signal, async () => {
    const caller = memberOf(run.userId);
    const product = await findProductToRun(ctx, caller, work.productId);
    mustBeBought(product);
    const version = await versionToRun(ctx, product, work.version);
    if (product.type === "PROMPT") return callPromptOf(ctx, run, { ...product, ...version }, values, signal);
    return callWorkflowOf(ctx, run, step, { ...product, ...version }, values);
  });

async function callPromptOf(
  ctx: Context,
  run: Surroundings,
  product: Product,
  values: Record<string, unknown>,
  signal: AbortSignal,
): Promise<Outcome> {
  const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, toText(value)]));
  const checked = checkVariables(product.variables, texts);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const provider = providerFor(product.compatibility, run.start.apiKeys);
  if (!provider) throw new ApiError("PROVIDER_NOT_SUPPORTED");
  const caller = memberOf(run.userId);
  const key = await keyToRunWith(ctx, caller, run.start.apiKeys[provider]!);
  await noteFirstUse(ctx, caller, { product });
  return callForText(ctx, run, {
    key,
    model: modelFor(key, provider, product.models[key.provider]),
    messages: renderMessages(parseMessages(product.contentFormat, product.content), checked.values),
    options: {},
    versionId: `${product.id}@${product.version}`,
    signal,
  });
}

/** The first provider for which there is a key and that a prompt runs on. */
export const providerFor = (
  compatibility: readonly string[],
  apiKeys: Record<string, string>,
): string | undefined =>
  Object.keys(apiKeys).find((provider) => compatibility.includes(provider) || fitsEverything.has(provider));

async function callWorkflowOf(
  ctx: Context,
  run: Surroundings,
  step: StepRun,
  product: Product,
  values: Record<string, unknown>,
): Promise<Outcome> {
  if (run.depth >= MAX_DEPTH)
    throw ruleBroken("productId", `is a workflow in a workflow, more than ${MAX_DEPTH} deep`);
  const workflow = Workflow.parse(JSON.parse(product.content));
  const checked = checkInput(workflow.input, values);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  await noteFirstUse(ctx, memberOf(run.userId), { product });
  const executionId = await newExecution(ctx, run.userId, {
    productId: product.id,
    version: product.version,
    definition: product.content,
    input: checked.input,
    apiKeys: run.start.apiKeys,
    callbackId: null,
    depth: run.depth + 1,
    parent: { id: run.id, stepId: step.stepId, item: step.item, attempt: step.attempt },
  });
  return { kind: "called", executionId };
}
