import type { EstimatedCall } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { fieldError, ruleViolation } from "../../core/errors.ts";
import {
  listTemplateVariables,
  parseTemplate,
  renderMessages,
} from "../../formats/prompt-template/template.ts";
import { checkWorkflow } from "../../formats/workflow-definition/check-workflow.ts";
import { checkInput } from "../../formats/workflow-definition/inputs.ts";
import { MAX_ITEMS, type Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import {
  defaultEmbeddingModels,
  defaultModels,
  estimateTokens,
  MAX_EMBEDDED_TEXTS,
} from "../../integrations/ai-providers/ai-provider.ts";
import { findVersionToRun, type Product } from "../prompt-runs/prepare-run.ts";
import { findContextWindow, findCostUsd, roundUsd } from "../provider-keys/cost.ts";

interface WorkflowEstimateInput {
  variables: Record<string, unknown>;
  options: { version?: string | undefined; model?: string | undefined; maxTokens?: number | undefined };
}

type Step = Workflow["steps"][number];
type StepWork = Exclude<Step, { type: "map" }> | Extract<Step, { type: "map" }>["do"];
type Prompt = Extract<StepWork, { type: "prompt" }>;
type Embedding = Extract<StepWork, { type: "embedding" }>;

/** Estimates each call before the run: prompts that need outputs of other steps get a range. */
export async function estimateWorkflow(
  ctx: Context,
  product: Product,
  { variables, options }: WorkflowEstimateInput,
) {
  for (const name of ["model", "maxTokens"] as const) {
    if (options[name] !== undefined)
      throw ruleViolation(`options.${name}`, "must be omitted: each step of the workflow sets it");
  }
  const version = await findVersionToRun(ctx, product, options.version);
  const checked = await checkWorkflow(version.content);
  // The definition was checked when it was saved, so this fails only if the checks changed.
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const input = checkInput(checked.workflow.input, variables);
  if ("problems" in input) throw fieldError("VALIDATION_ERROR", input.problems.map(toVariableProblem));
  const calls = checked.workflow.steps.flatMap((step) => estimateCalls(step, ctx.now()));
  return { version: version.version, calls, cost: sumCosts(calls.map(({ cost }) => cost)) };
}

/** In an estimate the input is called `variables`. */
const toVariableProblem = ({ field, reason }: { field: string; reason: string }) => ({
  field: field.replace(/^input/, "variables"),
  reason,
});

function estimateCalls(step: Step, at: Date): EstimatedCall[] {
  const work: StepWork = step.type === "map" ? step.do : step;
  if (work.type !== "prompt" && work.type !== "embedding" && work.type !== "product") return [];
  const mayBeNone = step.type === "map" || step.when !== undefined;
  const attempts = 1 + (work.retry?.max ?? 0);
  const calls = { min: mayBeNone ? 0 : 1, max: attempts * (step.type === "map" ? MAX_ITEMS : 1) };
  if (work.type === "product") return [unknownProductCall(step.id, calls)];
  if (work.type === "embedding") return [estimateEmbeddingCall(step.id, work, calls, at)];
  return [estimatePromptCall(step.id, work, calls, at)];
}

/** The texts are not known before the run: each may fill the context window. */
function estimateEmbeddingCall(
  stepId: string,
  { provider, model = defaultEmbeddingModels[provider] ?? undefined, compareTo }: Embedding,
  calls: EstimatedCall["calls"],
  at: Date,
): EstimatedCall {
  const call = { provider, model: model ?? null, at };
  const contextWindow = model === undefined ? null : findContextWindow({ ...call, model });
  const texts = compareTo === undefined ? 1 : MAX_EMBEDDED_TEXTS;
  const promptTokens = { min: 0, max: contextWindow === null ? null : contextWindow * texts };
  return {
    ...{ stepId, provider, model: call.model, calls, promptTokens, completionTokens: { min: 0, max: 0 } },
    cost: {
      min: multiplyUsd(calls.min, findCostUsd(call, promptTokens.min, 0)),
      max: multiplyUsd(calls.max, findCostUsd(call, promptTokens.max, 0)),
    },
    ...{ contextWindow, fits: null },
  };
}

function estimatePromptCall(
  stepId: string,
  step: Prompt,
  calls: EstimatedCall["calls"],
  at: Date,
): EstimatedCall {
  const model = step.model ?? defaultModels[step.provider];
  const call = { provider: step.provider, model, at };
  const contextWindow = model === null ? null : findContextWindow({ ...call, model });
  const promptTokens = estimatePromptTokens(step, contextWindow);
  const max = step.options.maxTokens ?? contextWindow;
  return {
    stepId,
    provider: step.provider,
    model,
    calls,
    promptTokens,
    completionTokens: { min: 0, max: max },
    cost: {
      min: multiplyUsd(calls.min, findCostUsd(call, promptTokens.min, 0)),
      max: multiplyUsd(calls.max, findCostUsd(call, promptTokens.max, max)),
    },
    contextWindow,
    fits: contextWindow === null ? null : promptTokens.min + (step.options.maxTokens ?? 1) <= contextWindow,
  };
}

function estimatePromptTokens({ messages }: Prompt, contextWindow: number | null) {
  const texts = renderMessages(messages, new Map()).map(({ content }) => content);
  const min = texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  const hasValues =
    listTemplateVariables(...messages.map(({ content }) => parseTemplate(content))).length > 0;
  return { min, max: hasValues ? contextWindow : min };
}

/** The estimate of another product is not part of this one. */
const unknownProductCall = (stepId: string, calls: EstimatedCall["calls"]): EstimatedCall => ({
  stepId,
  provider: null,
  model: null,
  calls,
  promptTokens: { min: 0, max: null },
  completionTokens: { min: 0, max: null },
  cost: { min: null, max: null },
  contextWindow: null,
  fits: null,
});

const multiplyUsd = (count: number, usd: number | null) => (usd === null ? null : roundUsd(count * usd));

function sumCosts(costs: readonly EstimatedCall["cost"][]): EstimatedCall["cost"] {
  const sum = (values: (number | null)[]) =>
    values.reduce((all, one) => (all === null || one === null ? null : roundUsd(all + one)), 0);
  return { min: sum(costs.map(({ min }) => min)), max: sum(costs.map(({ max }) => max)) };
}
