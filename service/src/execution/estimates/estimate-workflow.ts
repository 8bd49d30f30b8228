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
import { defaultModels, estimateTokens } from "../../integrations/ai-providers/ai-provider.ts";
import { type Product, versionToRun } from "../prompt-runs/prepare-run.ts";
import { contextWindowOf, roundUsd, usdOf } from "../provider-keys/cost.ts";

interface Wish {
  variables: Record<string, unknown>;
  options: { version?: string | undefined; model?: string | undefined; maxTokens?: number | undefined };
}

type Step = Workflow["steps"][number];
type Doing = Exclude<Step, { type: "map" }> | Extract<Step, { type: "map" }>["do"];
type Prompt = Extract<Doing, { type: "prompt" }>;

/** What the calls of a workflow's steps would take, as far as that is known before they have given anything to each other. */
export async function estimateWorkflow(ctx: Context, product: Product, { variables, options }: Wish) {
  for (const name of ["model", "maxTokens"] as const) {
    if (options[name] !== undefined)
      throw ruleViolation(`options.${name}`, "is said by each step of a workflow");
  }
  const version = await versionToRun(ctx, product, options.version);
  const checked = await checkWorkflow(version.content);
  // It was checked when it was written.
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  const input = checkInput(checked.workflow.input, variables);
  if ("problems" in input) throw fieldError("VALIDATION_ERROR", input.problems.map(asVariable));
  const calls = checked.workflow.steps.flatMap((step) => callsOf(step, ctx.now()));
  return { version: version.version, calls, cost: sumOf(calls.map(({ cost }) => cost)) };
}

/** Here the input is given as `variables`. */
const asVariable = ({ field, reason }: { field: string; reason: string }) => ({
  field: field.replace(/^input/, "variables"),
  reason,
});

function callsOf(step: Step, at: Date): EstimatedCall[] {
  const doing: Doing = step.type === "map" ? step.do : step;
  if (doing.type !== "prompt" && doing.type !== "product") return [];
  const mayBeNone = step.type === "map" || step.when !== undefined;
  const tries = 1 + (doing.retry?.max ?? 0);
  const calls = { min: mayBeNone ? 0 : 1, max: tries * (step.type === "map" ? MAX_ITEMS : 1) };
  return [doing.type === "prompt" ? promptCall(step.id, doing, calls, at) : productCall(step.id, calls)];
}

function promptCall(stepId: string, step: Prompt, calls: EstimatedCall["calls"], at: Date): EstimatedCall {
  const model = step.model ?? defaultModels[step.provider];
  const call = { provider: step.provider, model, at };
  const contextWindow = model === null ? null : contextWindowOf({ ...call, model });
  const promptTokens = promptTokensOf(step, contextWindow);
  const most = step.options.maxTokens ?? contextWindow;
  return {
    stepId,
    provider: step.provider,
    model,
    calls,
    promptTokens,
    completionTokens: { min: 0, max: most },
    cost: {
      min: times(calls.min, usdOf(call, promptTokens.min, 0)),
      max: times(calls.max, usdOf(call, promptTokens.max, most)),
    },
    contextWindow,
    fits: contextWindow === null ? null : promptTokens.min + (step.options.maxTokens ?? 1) <= contextWindow,
  };
}

function promptTokensOf({ messages }: Prompt, contextWindow: number | null) {
  const texts = renderMessages(messages, new Map()).map(({ content }) => content);
  const min = texts.reduce((sum, text) => sum + estimateTokens(text), 0);
  const hasValues =
    listTemplateVariables(...messages.map(({ content }) => parseTemplate(content))).length > 0;
  return { min, max: hasValues ? contextWindow : min };
}

/** What another product takes is that product's to say. */
const productCall = (stepId: string, calls: EstimatedCall["calls"]): EstimatedCall => ({
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

const times = (count: number, usd: number | null) => (usd === null ? null : roundUsd(count * usd));

function sumOf(costs: readonly EstimatedCall["cost"][]): EstimatedCall["cost"] {
  const sum = (values: (number | null)[]) =>
    values.reduce((all, one) => (all === null || one === null ? null : roundUsd(all + one)), 0);
  return { min: sum(costs.map(({ min }) => min)), max: sum(costs.map(({ max }) => max)) };
}
