import { validateValue } from "@stoa/evaluation/json-schema";
import type { Context } from "../../core/context.ts";
import type { Bindings } from "../../formats/workflow-definition/evaluator.ts";
import { MAX_ITEMS } from "../../formats/workflow-definition/workflow-schema.ts";
import type { CostLimit } from "./cost-limit.ts";
import { prepareEmbedding } from "./embedding-step.ts";
import { type ExpressionScope, evaluateAll } from "./expressions.ts";
import type { PendingCalls } from "./pending-calls.ts";
import { callProduct } from "./product-step.ts";
import { preparePrompt } from "./prompt-step.ts";
import type { RunKeys } from "./run-keys.ts";
import type { StepRun, StepWork } from "./run-state.ts";
import type { RunInput } from "./sealed-texts.ts";
import { type CallUsage, type PreparedStep, type StepEnd, toFailedStep } from "./step-result.ts";

/** The run that a step belongs to. */
export interface RunContext extends ExpressionScope {
  id: string;
  depth: number;
  start: RunInput;
  keys: RunKeys;
  pendingCalls: PendingCalls;
  /** null: the request set no limit. */
  costLimit: CostLimit | null;
}

/** Evaluates the condition and the expressions of a step, up to its call. */
export async function prepareStep(
  ctx: Context,
  run: RunContext,
  step: StepRun,
  work: StepWork,
  bindings: Bindings,
): Promise<PreparedStep> {
  // A map that continues after a crash passed its condition when it began.
  if (work.when !== undefined && step.items === null) {
    const valued = await evaluateAll(run, { when: work.when }, bindings);
    if ("fault" in valued) return toExpressionFailure(valued.fault);
    if (typeof valued.values["when"] !== "boolean")
      return toExpressionFailure("when is neither true nor false");
    if (!valued.values["when"]) return { kind: "skipped" };
  }
  return prepareWork(ctx, run, step, work, bindings);
}

const toExpressionFailure = (reason: string): StepEnd => toFailedStep("EXPRESSION_FAILED", reason);

async function prepareWork(
  ctx: Context,
  run: RunContext,
  step: StepRun,
  work: StepWork,
  bindings: Bindings,
): Promise<PreparedStep> {
  const inSeconds = (seconds: number) => new Date(ctx.now().getTime() + seconds * 1000);
  switch (work.type) {
    case "approval":
      return { kind: "wait", until: inSeconds(work.timeoutSeconds) };
    case "delay":
      return { kind: "wait", until: inSeconds(work.seconds) };
    case "transform":
      return withValue(run, "value", work.value, bindings, (value) => checkOutput(work, value));
    case "map":
      return withValue(run, "items", work.items, bindings, toItems);
    case "prompt":
      return withValues(run, "vars", work.vars, bindings, (values) =>
        preparePrompt(ctx, run, { work, values }),
      );
    case "embedding": {
      const { text, compareTo } = work;
      const expressions = { text, ...(compareTo !== undefined && { compareTo }) };
      return withValues(run, "", expressions, bindings, async (values) =>
        withCheckedOutput(work, await prepareEmbedding(ctx, run, { work, values })),
      );
    }
    case "product":
      return withValues(run, "variables", work.variables, bindings, (values) =>
        withCheckedOutput(work, {
          kind: "call",
          opens: null,
          call: (signal) => callProduct(ctx, run, step, work, values, signal),
        }),
      );
  }
}

/** The result of the call must match the step's schema. */
function withCheckedOutput(work: StepWork, prepared: PreparedStep): PreparedStep {
  if (prepared.kind !== "call") return prepared;
  const call = async (signal: AbortSignal) => {
    const result = await prepared.call(signal);
    return result.kind === "completed" ? checkOutput(work, result.output, result.callUsage) : result;
  };
  return { ...prepared, call };
}

async function withValue(
  run: RunContext,
  field: string,
  expression: string,
  bindings: Bindings,
  then: (value: unknown) => PreparedStep,
): Promise<PreparedStep> {
  const valued = await evaluateAll(run, { [field]: expression }, bindings);
  return "fault" in valued ? toExpressionFailure(valued.fault) : then(valued.values[field]);
}

async function withValues(
  run: RunContext,
  field: string,
  expressions: Record<string, string>,
  bindings: Bindings,
  then: (values: Record<string, unknown>) => PreparedStep | Promise<PreparedStep>,
): Promise<PreparedStep> {
  const valued = await evaluateAll(run, expressions, bindings, field);
  return "fault" in valued ? toExpressionFailure(valued.fault) : then(valued.values);
}

function toItems(value: unknown): PreparedStep {
  if (!Array.isArray(value)) return toExpressionFailure("items is not a list");
  if (value.length > MAX_ITEMS)
    return toFailedStep(
      "LIMIT_EXCEEDED",
      `items: has ${value.length} items; a map takes at most ${MAX_ITEMS}`,
    );
  return { kind: "map", items: value };
}

/** Fails an output that does not match the step's schema. */
export function checkOutput(work: StepWork, output: unknown, callUsage?: CallUsage): StepEnd {
  if (work.output === undefined || validateValue(work.output, output).length === 0)
    return { kind: "completed", output, callUsage };
  return toFailedStep("OUTPUT_SCHEMA_MISMATCH", "The output does not fit the step's schema.", { callUsage });
}
