import { type Provider, providers } from "@stoa/contract";
import { findSchemaIssues } from "@stoa/evaluation/json-schema";
import type { FieldProblem, ValidationIssue } from "../../core/errors.ts";
import { anyModelProviders } from "../../integrations/ai-providers/ai-provider.ts";
import { validationIssuesOf } from "../../platform/http/validate.ts";
import { listTemplateVariables, parseTemplate } from "../prompt-template/template.ts";
import { type ExpressionCheck, type ExpressionScope, loadExpressionCheck } from "./expression-check.ts";
import { findInputIssues, listInputNames } from "./inputs.ts";
import { isObject, type Path, sortIssues, toProblem } from "./issue-order.ts";
import { parseJsonText } from "./json-parser.ts";
import { createStepNodes, findGraphIssues, listAncestors, type StepNode } from "./step-graph.ts";
import { MAX_STEPS, Workflow } from "./workflow-schema.ts";

const MAX_PROBLEMS = 50;
/** Parsing takes about 5 µs a character, and one request must not block the process. */
const MAX_EXPRESSIONS_CHARACTERS = 20_000;

export type CheckedWorkflow = { workflow: Workflow } | { problems: FieldProblem[] };

/** Returns the workflow in a product's `content`, or all problems in document order. */
export async function checkWorkflow(content: string): Promise<CheckedWorkflow> {
  const read = parseJsonText(content);
  if ("issues" in read) return { problems: toProblems(read.issues) };
  const shape = Workflow.safeParse(read.value, { reportInput: true });
  const issues = shape.success ? [] : validationIssuesOf(shape.error);
  issues.push(...findSemanticIssues(read.value, await loadExpressionCheck()));
  if (shape.success && issues.length === 0) return { workflow: shape.data };
  return { problems: toProblems(sortIssues(read.value, issues)) };
}

const toProblems = (issues: readonly ValidationIssue[]) =>
  issues.slice(0, MAX_PROBLEMS).map((issue) => toProblem("content", issue));

/** Also runs if the schema has issues, so that the author sees all at once. The input may have any shape. */
function findSemanticIssues(definition: unknown, check: ExpressionCheck): ValidationIssue[] {
  if (!isObject(definition)) return [];
  const { input } = definition;
  const steps = Array.isArray(definition["steps"]) ? definition["steps"] : [];
  // The schema reports a list that is too long.
  if (steps.length > MAX_STEPS) return [];
  const nodes = createStepNodes(steps);
  return [
    ...(isObject(input) ? findInputIssues(input, ["input"]) : []),
    ...findGraphIssues(steps, nodes),
    ...steps.flatMap((step, index) => findStepIssues(step, ["steps", index])),
    ...findExpressionIssues(definition, nodes, check),
  ];
}

function findStepIssues(step: unknown, path: Path): ValidationIssue[] {
  if (!isObject(step)) return [];
  return [
    ...(isObject(step["output"]) ? findSchemaIssues(step["output"], [...path, "output"]) : []),
    ...findMessageIssues(step, path),
    // The schema refuses a map in a map.
    ...(path.at(-1) === "do" ? [] : findStepIssues(step["do"], [...path, "do"])),
  ];
}

/** Each variable of the messages needs a value or a default. */
function findMessageIssues({ messages, vars = {} }: Record<string, unknown>, path: Path): ValidationIssue[] {
  if (!Array.isArray(messages) || !isObject(vars)) return [];
  const texts = messages.flatMap((message) =>
    isObject(message) && typeof message["content"] === "string" ? [message["content"]] : [],
  );
  return listTemplateVariables(...texts.map(parseTemplate))
    .filter(({ name, default: standard }) => standard === undefined && !Object.hasOwn(vars, name))
    .map(({ name }) => ({ path: [...path, "vars"], reason: `lacks ${name}, which the messages use` }));
}

/** A run needs a key for each of these providers. */
export function listProviders({ steps }: Workflow): Provider[] {
  const all = steps.map((step) => (step.type === "map" ? step.do : step));
  return providers.filter((id) => all.some((step) => "provider" in step && step.provider === id));
}

/** The providers that `compatibility` lacks. */
export const listMissingProviders = (workflow: Workflow, compatibility: readonly string[]): Provider[] =>
  listProviders(workflow).filter((id) => !anyModelProviders.has(id) && !compatibility.includes(id));

interface ScopedExpression {
  path: Path;
  source: string;
  scope: ExpressionScope;
}

export interface PlacedExpression {
  /** As a problem names it. */
  field: string;
  source: string;
  isInMap: boolean;
  /** The list of a map. */
  isItems: boolean;
}

/**
 * The expressions of a step in the order in which a run evaluates them, or with null the result; the definition may have
 * problems.
 */
export function listExpressionsOf(content: string, stepId: string | null): PlacedExpression[] {
  const read = parseJsonText(content);
  const definition = "value" in read && isObject(read.value) ? read.value : {};
  const { steps, result } = definition;
  if (!Array.isArray(steps)) return [];
  const nodes = createStepNodes(steps);
  const index = stepId === null ? null : nodes.get(stepId)?.index;
  if (index === undefined) return [];
  return listExpressions({ steps, result }, nodes)
    .filter(({ path }) => (index === null ? path[0] === "result" : path[0] === "steps" && path[1] === index))
    .map(({ path, source, scope }) => ({
      field: toProblem("content", { path, reason: "" }).field,
      source,
      isInMap: scope.inMap,
      isItems: path.at(-1) === "items",
    }));
}

function findExpressionIssues(
  definition: Record<string, unknown>,
  nodes: ReadonlyMap<string, StepNode>,
  check: ExpressionCheck,
): ValidationIssue[] {
  const places = listExpressions(definition, nodes);
  const characters = places.reduce((sum, { source }) => sum + source.length, 0);
  if (characters > MAX_EXPRESSIONS_CHARACTERS) {
    const reason = `holds expressions of more than ${MAX_EXPRESSIONS_CHARACTERS} characters together`;
    return [{ path: [], reason }];
  }
  return places.flatMap(({ path, source, scope }) =>
    check(source, scope).map((reason) => ({ path, reason })),
  );
}

/** With the names that each expression may read. */
function listExpressions(
  definition: Record<string, unknown>,
  nodes: ReadonlyMap<string, StepNode>,
): ScopedExpression[] {
  const { input, steps, result } = definition;
  const everywhere = { inputs: listInputNames(input), steps: nodes };
  const inSteps = (Array.isArray(steps) ? steps : []).flatMap((step, index) => {
    if (!isObject(step)) return [];
    const path = ["steps", index];
    const scope = { ...everywhere, ended: listAncestors(step["needs"], nodes) };
    return [
      ...listStepExpressions(step, path, { ...scope, inMap: false }),
      ...listStepExpressions(step["do"], [...path, "do"], { ...scope, inMap: true }),
    ];
  });
  const scope = { ...everywhere, ended: null, inMap: false };
  return typeof result === "string" ? [...inSteps, { path: ["result"], source: result, scope }] : inSteps;
}

function listStepExpressions(step: unknown, path: Path, scope: ExpressionScope): ScopedExpression[] {
  if (!isObject(step)) return [];
  const named = ["vars", "variables"].flatMap((field) =>
    isObject(step[field])
      ? Object.entries(step[field]).map(([name, source]) => ({ path: [...path, field, name], source }))
      : [],
  );
  const single = ["when", "items", "value", "text", "compareTo"].map((field) => ({
    path: [...path, field],
    source: step[field],
  }));
  // The schema reports an empty expression.
  return [...single, ...named].flatMap(({ path: at, source }) =>
    typeof source === "string" && source !== "" ? [{ path: at, source, scope }] : [],
  );
}
