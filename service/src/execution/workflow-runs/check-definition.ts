import { isDeepStrictEqual } from "node:util";
import type { CheckWorkflow, WorkflowCheck } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import {
  checkWorkflow,
  listExpressionsOf,
  type PlacedExpression,
} from "../../formats/workflow-definition/check-workflow.ts";
import { EvaluationError } from "../../formats/workflow-definition/evaluation-error.ts";
import type { Bindings, Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { mustFindExecution } from "../executions/executions.ts";
import { findSealedStart } from "./queries.ts";
import { openRunInput } from "./sealed-texts.ts";
import { readRunState } from "./step-rows.ts";

declare module "../../core/context.ts" {
  interface Context {
    evaluator: Evaluator;
  }
}

/** More would take longer than an author waits; each has 200 ms of CPU time at most. */
const MAX_VALUES = 40;

/** For editors: all problems of a definition, and with an earlier run the values of expressions and the changed steps. */
export async function checkDefinition(
  ctx: Context,
  caller: Member,
  { content, values }: CheckWorkflow,
): Promise<WorkflowCheck> {
  const checked = await checkWorkflow(content);
  const problems = "problems" in checked ? checked.problems : [];
  const run = values ? await readRun(ctx, caller, values.executionId) : null;
  if (!values || !run) return { problems, values: [], changedSteps: [] };
  const { bindings, definition } = run;
  const broken = new Set(problems.map(({ field }) => field));
  const expressions = listExpressionsOf(content, values.stepId ?? null)
    .filter(({ field }) => !broken.has(field))
    .slice(0, MAX_VALUES);
  return {
    problems,
    values: await evaluateInOrder(expressions, createEvaluation(ctx, caller, bindings), bindings),
    changedSteps: "workflow" in checked ? listChangedSteps(definition, checked.workflow) : [],
  };
}

function listChangedSteps(before: Workflow, after: Workflow): string[] {
  const old = new Map(before.steps.map((step) => [step.id, step]));
  return after.steps.filter((step) => !isDeepStrictEqual(step, old.get(step.id))).map(({ id }) => id);
}

interface EarlierRun {
  bindings: Bindings;
  definition: Workflow;
}

/** null: the texts of the run are no longer stored. */
async function readRun(ctx: Context, caller: Member, executionId: string): Promise<EarlierRun | null> {
  const { id, type } = await mustFindExecution(ctx, caller, executionId);
  if (type !== "WORKFLOW") throw ruleViolation("values.executionId", "is of a prompt, not of a workflow");
  const sealed = await findSealedStart(ctx.db, id);
  if (!sealed) return null;
  const run = { id, userId: caller.userId };
  const start = openRunInput(ctx, run, sealed);
  const definition = Workflow.parse(JSON.parse(start.definition));
  const state = await readRunState(ctx, ctx.db, run, definition);
  state.pin(start.pinned ?? {});
  return { bindings: { input: start.input, steps: state.outputs() }, definition };
}

type Value = WorkflowCheck["values"][number];
type Evaluate = (expression: PlacedExpression, item: Pick<Bindings, "item" | "index">) => Promise<Value>;

const createEvaluation =
  (ctx: Context, { userId }: Member, bindings: Bindings): Evaluate =>
  async ({ field, source }, item) => {
    try {
      const value = await ctx.evaluator.evaluate(source, { ...bindings, ...item }, userId);
      return { field, value: value ?? null, error: null };
    } catch (error) {
      if (error instanceof EvaluationError) return { field, value: null, error: error.reason };
      throw error;
    }
  };

/** The items of a map come first: the others read one of them. */
async function evaluateInOrder(
  expressions: PlacedExpression[],
  evaluate: Evaluate,
  { steps }: Bindings,
): Promise<Value[]> {
  const values: Value[] = [];
  let items: unknown[] = [];
  for (const expression of expressions) {
    if (!areStepsKnown(expression.source, steps)) {
      values.push({ field: expression.field, value: null, error: "reads a step that did not run" });
      continue;
    }
    if (expression.isInMap && items.length === 0) continue;
    const value = await evaluate(expression, expression.isInMap ? { item: items[0], index: 0 } : {});
    if (expression.isItems && Array.isArray(value.value)) items = value.value;
    values.push(value);
  }
  return values;
}

const STEP = /\bsteps\.([A-Za-z]\w*)/g;

const areStepsKnown = (source: string, steps: Bindings["steps"]): boolean =>
  [...source.matchAll(STEP)].every(([, id]) => id !== undefined && Object.hasOwn(steps, id));
