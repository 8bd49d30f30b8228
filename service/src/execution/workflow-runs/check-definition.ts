import type { CheckWorkflow, WorkflowCheck } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ruleViolation } from "../../core/errors.ts";
import {
  checkWorkflow,
  listExpressionsOfStep,
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

/** For editors: all problems of a definition, and the values of a step's expressions in an earlier run. */
export async function checkDefinition(
  ctx: Context,
  caller: Member,
  { content, values }: CheckWorkflow,
): Promise<WorkflowCheck> {
  const checked = await checkWorkflow(content);
  const problems = "problems" in checked ? checked.problems : [];
  if (!values) return { problems, values: [] };
  const bindings = await readBindings(ctx, caller, values.executionId);
  const broken = new Set(problems.map(({ field }) => field));
  const expressions = listExpressionsOfStep(content, values.stepId).filter(({ field }) => !broken.has(field));
  if (!bindings || expressions.length === 0) return { problems, values: [] };
  const evaluate = createEvaluation(ctx, caller, bindings);
  return { problems, values: await evaluateInOrder(expressions.slice(0, MAX_VALUES), evaluate, bindings) };
}

/** null: the texts of the run are no longer stored. */
async function readBindings(ctx: Context, caller: Member, executionId: string): Promise<Bindings | null> {
  const { id, type } = await mustFindExecution(ctx, caller, executionId);
  if (type !== "WORKFLOW") throw ruleViolation("values.executionId", "is of a prompt, not of a workflow");
  const sealed = await findSealedStart(ctx.db, id);
  if (!sealed) return null;
  const run = { id, userId: caller.userId };
  const start = openRunInput(ctx, run, sealed);
  const state = await readRunState(ctx, ctx.db, run, Workflow.parse(JSON.parse(start.definition)));
  state.pin(start.pinned ?? {});
  return { input: start.input, steps: state.outputs() };
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
