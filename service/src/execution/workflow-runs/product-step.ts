import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context } from "../../core/context.ts";
import { ApiError, fieldError, ruleViolation } from "../../core/errors.ts";
import { parseMessages, renderMessages } from "../../formats/prompt-template/template.ts";
import { checkVariables } from "../../formats/prompt-template/variables.ts";
import { checkInput } from "../../formats/workflow-definition/inputs.ts";
import { MAX_CALL_DEPTH, Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { anyModelProviders, ProviderError } from "../../integrations/ai-providers/ai-provider.ts";
import { retryWhileUnavailable } from "../../platform/db/database.ts";
import { recordProductRun } from "../executions/product-runs.ts";
import { findVersionToRun, mustBeEntitled } from "../prompt-runs/prepare-run.ts";
import { mustBeReachable, recordFirstUseOfPurchase } from "../prompt-runs/run-prompt.ts";
import { findUsableKey } from "../provider-keys/provider-keys.ts";
import { toTexts } from "./expressions.ts";
import { insertWorkflowExecution } from "./new-execution.ts";
import type { RunContext } from "./prepare-step.ts";
import { runCaller } from "./run-caller.ts";
import type { StepRun, StepWork } from "./run-state.ts";
import { callForText, catchStepErrors, findModel, type StepCall } from "./step-call.ts";
import type { StepResult } from "./step-result.ts";
import type { UsageTotal } from "./usage-total.ts";

type ProductWork = Extract<StepWork, { type: "product" }>;
type Product = Awaited<ReturnType<typeof findProductToRun>>;

export const MODEL_OF_WORKFLOW = "must be omitted: each step of that workflow sets its own";

/** Runs another product of the owner: a prompt directly, a workflow as a child run. */
export const callProduct = (
  ctx: Context,
  run: RunContext,
  step: StepRun,
  work: ProductWork,
  values: Record<string, unknown>,
  signal: AbortSignal,
): Promise<StepResult> =>
  catchStepErrors(ctx, signal, async (usageTotal) => {
    const caller = runCaller(run.userId);
    const product = await retryWhileUnavailable(signal, async () => {
      const found = await findProductToRun(ctx, caller, work.productId);
      mustBeEntitled(found);
      return { ...found, ...(await findVersionToRun(ctx, found, work.version)) };
    });
    const timeoutMs = work.timeoutSeconds && work.timeoutSeconds * 1_000;
    if (product.type === "PROMPT")
      return callPromptProduct(ctx, run, product, values, {
        model: work.model,
        signal,
        timeoutMs,
        usageTotal,
      });
    if (work.model !== undefined) throw ruleViolation("model", MODEL_OF_WORKFLOW);
    return retryWhileUnavailable(signal, () => startChildRun(ctx, run, step, product, values));
  });

async function callPromptProduct(
  ctx: Context,
  run: RunContext,
  product: Product,
  values: Record<string, unknown>,
  {
    usageTotal,
    model,
    ...limits
  }: {
    model: string | undefined;
    signal: AbortSignal;
    timeoutMs: number | undefined;
    usageTotal: UsageTotal;
  },
): Promise<StepResult> {
  const texts = toTexts(values);
  const checked = checkVariables(product.variables, texts);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const provider = findProvider(product.compatibility, run.start.apiKeys);
  if (!provider) throw new ApiError("PROVIDER_NOT_SUPPORTED");
  const caller = runCaller(run.userId);
  const key = await retryWhileUnavailable(limits.signal, () =>
    findUsableKey(ctx, caller, run.start.apiKeys[provider]!),
  );
  mustBeReachable(ctx, key);
  await retryWhileUnavailable(limits.signal, () => recordFirstUseOfPurchase(ctx, caller, { product }));
  const call = {
    key,
    model: findModel(key, provider, model ?? product.models[key.provider]),
    messages: renderMessages(parseMessages(product.contentFormat, product.content), checked.values),
    options: {},
    versionId: `${product.id}@${product.version}`,
    ...limits,
  };
  return withRecordedRun(ctx, run, product, call, () => callForText(ctx, run, call, usageTotal));
}

/** Records the run for the author of the product, if the provider may have been called. A run of an evaluation is no use of the product. */
async function withRecordedRun(
  ctx: Context,
  { userId, start }: RunContext,
  product: Product,
  { key, model, signal }: StepCall,
  work: () => Promise<StepResult>,
): Promise<StepResult> {
  if (start.isEvaluation) return work();
  const run = {
    userId,
    productId: product.id,
    productVersion: product.version,
    provider: key.provider,
    model,
  };
  try {
    const result = await work();
    await recordProductRun(ctx, { ...run, status: "completed", errorCode: null });
    return result;
  } catch (error) {
    // Another process repeats a call that a shutdown aborted.
    const isCanceled = signal.aborted && !ctx.shutdown.aborted;
    const errorCode = error instanceof ProviderError ? error.code : null;
    if (isCanceled || errorCode)
      await recordProductRun(ctx, { ...run, status: isCanceled ? "canceled" : "failed", errorCode });
    throw error;
  }
}

/** The first provider that has a key and that the prompt supports. */
export const findProvider = (
  compatibility: readonly string[],
  apiKeys: Record<string, string>,
): string | undefined =>
  Object.keys(apiKeys).find(
    (provider) => compatibility.includes(provider) || anyModelProviders.has(provider),
  );

async function startChildRun(
  ctx: Context,
  run: RunContext,
  step: StepRun,
  product: Product,
  values: Record<string, unknown>,
): Promise<StepResult> {
  if (run.depth >= MAX_CALL_DEPTH)
    throw ruleViolation("productId", `is a workflow in a workflow, more than ${MAX_CALL_DEPTH} deep`);
  const workflow = Workflow.parse(JSON.parse(product.content));
  const checked = checkInput(workflow.input, values);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  await recordFirstUseOfPurchase(ctx, runCaller(run.userId), { product });
  const executionId = await insertWorkflowExecution(ctx, run.userId, {
    productId: product.id,
    version: product.version,
    definition: product.content,
    input: checked.input,
    apiKeys: run.start.apiKeys,
    maxCost: run.costLimit?.left ?? null,
    callbackId: null,
    isEvaluation: run.start.isEvaluation,
    depth: run.depth + 1,
    parent: { id: run.id, stepId: step.stepId, item: step.item, attempt: step.attempt },
  });
  return { kind: "called", executionId };
}
