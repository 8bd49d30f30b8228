import type { TestWorkflow, WorkflowExecution } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, type FieldProblem, fieldError, ruleViolation } from "../../core/errors.ts";
import { checkWorkflow } from "../../formats/workflow-definition/check-workflow.ts";
import { checkInput } from "../../formats/workflow-definition/inputs.ts";
import { createStepNodes, listAncestors } from "../../formats/workflow-definition/step-graph.ts";
import type { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { PreferHeader } from "../../platform/http/prefer.ts";
import type { DataResponse } from "../../platform/http/route.ts";
import { toDraftVersion } from "../executions/draft-version.ts";
import { findVersionToRun } from "../prompt-runs/prepare-run.ts";
import { engine } from "./engine.ts";
import { toRunAnswer } from "./execute-workflow.ts";
import { findOversizedLists } from "./input-limits.ts";
import { checkRequirements } from "./requirements.ts";

/** Runs a definition that its author edits, or the part of it that leads to one step. */
export async function testWorkflow(
  ctx: Context,
  caller: Member,
  workflowId: string,
  request: TestWorkflow,
  prefer: PreferHeader,
): Promise<DataResponse<WorkflowExecution>> {
  return toRunAnswer(ctx, caller, await startTest(ctx, caller, workflowId, request), prefer);
}

async function startTest(
  ctx: Context,
  caller: Member,
  workflowId: string,
  request: TestWorkflow,
): Promise<string> {
  const product = await findProductToRun(ctx, caller, workflowId);
  if (product.reason !== "author")
    throw new ApiError("UNAUTHORIZED", "Only the author can test drafts of this product.", {
      required: "author",
    });
  if (product.type !== "WORKFLOW") throw ruleViolation("workflowId", "is a prompt, not a workflow");
  const content = request.content ?? (await findVersionToRun(ctx, product, undefined)).content;
  const whole = await parseDefinition(content);
  mustNameSteps(whole, request);
  const workflow = request.stepId === undefined ? whole : cutAfter(whole, request.stepId, request.outputs);
  const checked = checkInput(workflow.input, request.input);
  const requirements = await checkRequirements(
    ctx,
    caller,
    withoutPinned(workflow, request.outputs),
    request.apiKeys,
  );
  const problems = [
    ...("problems" in checked ? checked.problems : findOversizedLists(workflow, checked.input)),
    ...requirements.problems,
  ];
  if ("problems" in checked || problems.length > 0) throw fieldError("VALIDATION_ERROR", problems);
  return engine.start(ctx, caller.userId, {
    productId: product.id,
    version: toDraftVersion(product.version),
    definition: JSON.stringify(workflow),
    input: checked.input,
    apiKeys: request.apiKeys,
    maxCost: request.options.maxCost ?? null,
    pinned: request.outputs,
    callbackId: null,
    depth: 1,
    parent: null,
    keys: requirements.keys,
  });
}

async function parseDefinition(content: string): Promise<Workflow> {
  const checked = await checkWorkflow(content);
  if ("problems" in checked) throw fieldError("VALIDATION_ERROR", checked.problems);
  return checked.workflow;
}

function mustNameSteps({ steps }: Workflow, { stepId, outputs }: TestWorkflow): void {
  const ids = new Set(steps.map(({ id }) => id));
  const problems: FieldProblem[] = Object.keys(outputs)
    .filter((id) => !ids.has(id))
    .map((id) => ({ field: `outputs.${id}`, reason: "is not the id of a step" }));
  if (stepId !== undefined && !ids.has(stepId))
    problems.push({ field: "stepId", reason: "is not the id of a step" });
  if (stepId !== undefined && Object.hasOwn(outputs, stepId))
    problems.push({ field: `outputs.${stepId}`, reason: "is the step to run: do not pin it" });
  if (problems.length > 0) throw fieldError("VALIDATION_ERROR", problems);
}

/** The step and what it needs, directly or through steps that are not pinned. */
function cutAfter(workflow: Workflow, stepId: string, outputs: Readonly<Record<string, unknown>>): Workflow {
  const nodes = createStepNodes(workflow.steps);
  // An expression reads any ancestor, so that a pinned one stays.
  const kept = listAncestors([stepId], nodes);
  const steps = workflow.steps
    .filter(({ id }) => kept.has(id))
    .map((step) => (Object.hasOwn(outputs, step.id) ? { ...step, needs: [] } : step));
  return { ...workflow, steps: withoutUnused(steps, stepId, outputs), result: `steps.${stepId}.output` };
}

/** Without steps that only pinned ones need: their outputs are not read unless they are pinned, too. */
function withoutUnused(
  steps: Workflow["steps"],
  stepId: string,
  outputs: Readonly<Record<string, unknown>>,
): Workflow["steps"] {
  const used = listAncestors([stepId], createStepNodes(steps));
  return steps.filter(({ id }) => used.has(id) || Object.hasOwn(outputs, id));
}

/** The steps that run: a pinned one needs no key. */
const withoutPinned = (workflow: Workflow, outputs: Readonly<Record<string, unknown>>): Workflow => ({
  ...workflow,
  steps: workflow.steps.filter(({ id }) => !Object.hasOwn(outputs, id)),
});
