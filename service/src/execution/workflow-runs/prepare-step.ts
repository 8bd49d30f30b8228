import type { Context } from "../../core/context.ts";
import type { Bindings } from "../../formats/workflow-definition/evaluator.ts";
import { validateValue } from "../../formats/workflow-definition/json-schema.ts";
import { MAX_ITEMS } from "../../formats/workflow-definition/workflow-schema.ts";
import type { CostLimit } from "./cost-limit.ts";
import { type Evaluation, valuesOf } from "./expressions.ts";
import type { KeyedCalls } from "./pending-calls.ts";
import { callProduct } from "./product-step.ts";
import { preparePrompt } from "./prompt-step.ts";
import type { RunKeys } from "./run-keys.ts";
import type { StepRun, Work } from "./run-state.ts";
import type { RunStart } from "./sealed-texts.ts";
import { type CallFacts, type End, failed, type Prepared } from "./step-result.ts";

/** The run that a step belongs to. */
export interface Surroundings extends Evaluation {
  id: string;
  depth: number;
  start: RunStart;
  keys: RunKeys;
  calls: KeyedCalls;
  /** null: whoever asked for it named none. */
  costLimit: CostLimit | null;
}

/** What a step comes to by its definition and what ended before: all but asking somebody outside. */
export async function prepareStep(
  ctx: Context,
  run: Surroundings,
  step: StepRun,
  work: Work,
  bindings: Bindings,
): Promise<Prepared> {
  // A map that goes on after a crash was not skipped when it began.
  if (work.when !== undefined && step.items === null) {
    const valued = await valuesOf(run, { when: work.when }, bindings);
    if ("fault" in valued) return expressionFailed(valued.fault);
    if (typeof valued.values["when"] !== "boolean") return expressionFailed("when is neither true nor false");
    if (!valued.values["when"]) return { kind: "skipped" };
  }
  return prepareWork(ctx, run, step, work, bindings);
}

const expressionFailed = (why: string): End => failed("EXPRESSION_FAILED", why);

async function prepareWork(
  ctx: Context,
  run: Surroundings,
  step: StepRun,
  work: Work,
  bindings: Bindings,
): Promise<Prepared> {
  const inSeconds = (seconds: number) => new Date(ctx.now().getTime() + seconds * 1000);
  switch (work.type) {
    case "approval":
      return { kind: "wait", until: inSeconds(work.timeoutSeconds) };
    case "delay":
      return { kind: "wait", until: inSeconds(work.seconds) };
    case "transform":
      return withValue(run, "value", work.value, bindings, (value) => fitted(work, value));
    case "map":
      return withValue(run, "items", work.items, bindings, toItems);
    case "prompt":
      return withValues(run, "vars", work.vars, bindings, (values) =>
        preparePrompt(ctx, run, { work, values }),
      );
    case "product":
      return withValues(run, "variables", work.variables, bindings, (values) => ({
        kind: "call",
        opens: null,
        call: async (signal) => {
          const outcome = await callProduct(ctx, run, step, work, values, signal);
          return outcome.kind === "completed" ? fitted(work, outcome.output, outcome.facts) : outcome;
        },
      }));
  }
}

async function withValue(
  run: Surroundings,
  field: string,
  expression: string,
  bindings: Bindings,
  then: (value: unknown) => Prepared,
): Promise<Prepared> {
  const valued = await valuesOf(run, { [field]: expression }, bindings);
  return "fault" in valued ? expressionFailed(valued.fault) : then(valued.values[field]);
}

async function withValues(
  run: Surroundings,
  field: string,
  expressions: Record<string, string>,
  bindings: Bindings,
  then: (values: Record<string, unknown>) => Prepared | Promise<Prepared>,
): Promise<Prepared> {
  const valued = await valuesOf(run, expressions, bindings, field);
  return "fault" in valued ? expressionFailed(valued.fault) : then(valued.values);
}

function toItems(value: unknown): Prepared {
  if (!Array.isArray(value)) return expressionFailed("items is no list");
  if (value.length > MAX_ITEMS)
    return failed("LIMIT_EXCEEDED", `items: has ${value.length} items; a map takes at most ${MAX_ITEMS}`);
  return { kind: "map", items: value };
}

/** What came out, if it fits the step's schema. */
export function fitted(work: Work, output: unknown, facts?: CallFacts): End {
  if (work.output === undefined || validateValue(work.output, output).length === 0)
    return { kind: "completed", output, facts };
  return failed("OUTPUT_SCHEMA_MISMATCH", "The output does not fit the step's schema.", { facts });
}
