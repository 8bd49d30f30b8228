import { type Provider, providers } from "@stoa/contract";
import type { FieldProblem, ValidationIssue } from "../../core/errors.ts";
import { anyModelProviders } from "../../integrations/ai-providers/ai-provider.ts";
import { validationIssuesOf } from "../../platform/http/validate.ts";
import { listTemplateVariables, parseTemplate } from "../prompt-template/template.ts";
import { type ExpressionCheck, type ExpressionScope, loadExpressionCheck } from "./expression-check.ts";
import { findInputIssues, listInputNames } from "./inputs.ts";
import { isObject, type Path, sortIssues, toProblem } from "./issue-order.ts";
import { parseJsonText } from "./json-parser.ts";
import { findSchemaIssues } from "./json-schema.ts";
import { createStepNodes, findGraphIssues, listAncestors, type StepNode } from "./step-graph.ts";
import { MAX_STEPS, Workflow } from "./workflow-schema.ts";

/** Enough to mend a definition by. */
const MAX_PROBLEMS = 50;
/** Parsing takes some five microseconds a character, and one answer shall not take all of a process's time. */
const MAX_EXPRESSIONS_CHARACTERS = 20_000;

export type CheckedWorkflow = { workflow: Workflow } | { problems: FieldProblem[] };

/** The workflow that a product's `content` holds, or all that is wrong with it, by its place in the text. */
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

/** What a shape cannot say. It reads what may be of any shape: whoever wrote both kinds of issues is told of both. */
function findSemanticIssues(definition: unknown, check: ExpressionCheck): ValidationIssue[] {
  if (!isObject(definition)) return [];
  const { input } = definition;
  const steps = Array.isArray(definition["steps"]) ? definition["steps"] : [];
  // A list that is too long is told as such, and not looked through.
  if (steps.length > MAX_STEPS) return [];
  const nodes = createStepNodes(steps);
  return [
    ...(isObject(input) ? findInputIssues(input, ["input"]) : []),
    ...findGraphIssues(steps, nodes),
    ...steps.flatMap((step, index) => findStepIssues(step, ["steps", index])),
    ...findExpressionIssues(definition, nodes, check),
  ];
}

/** The schema and the messages of a step, and of the step that a map does. */
function findStepIssues(step: unknown, path: Path): ValidationIssue[] {
  if (!isObject(step)) return [];
  return [
    ...(isObject(step["output"]) ? findSchemaIssues(step["output"], [...path, "output"]) : []),
    ...findMessageIssues(step, path),
    // Once: a map in a map is an issue of the shape.
    ...(path.at(-1) === "do" ? [] : findStepIssues(step["do"], [...path, "do"])),
  ];
}

/** Each name in the messages has a value or a default. */
function findMessageIssues({ messages, vars = {} }: Record<string, unknown>, path: Path): ValidationIssue[] {
  if (!Array.isArray(messages) || !isObject(vars)) return [];
  const texts = messages.flatMap((message) =>
    isObject(message) && typeof message["content"] === "string" ? [message["content"]] : [],
  );
  return listTemplateVariables(...texts.map(parseTemplate))
    .filter(({ name, default: standard }) => standard === undefined && !Object.hasOwn(vars, name))
    .map(({ name }) => ({ path: [...path, "vars"], reason: `lacks ${name}, which the messages use` }));
}

/** The providers of all prompt steps, in the order of the registry: whoever runs it has a key of each. */
export function listProviders({ steps }: Workflow): Provider[] {
  const all = steps.map((step) => (step.type === "map" ? step.do : step));
  return providers.filter((id) => all.some((step) => step.type === "prompt" && step.provider === id));
}

/** Those that a product which says that it is compatible with these would lack. */
export const listMissingProviders = (workflow: Workflow, compatibility: readonly string[]): Provider[] =>
  listProviders(workflow).filter((id) => !anyModelProviders.has(id) && !compatibility.includes(id));

interface PlacedExpression {
  path: Path;
  source: string;
  scope: ExpressionScope;
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

/** Every expression of a definition, with what may be read where it stands. */
function listExpressions(
  definition: Record<string, unknown>,
  nodes: ReadonlyMap<string, StepNode>,
): PlacedExpression[] {
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

function listStepExpressions(step: unknown, path: Path, scope: ExpressionScope): PlacedExpression[] {
  if (!isObject(step)) return [];
  const named = ["vars", "variables"].flatMap((field) =>
    isObject(step[field])
      ? Object.entries(step[field]).map(([name, source]) => ({ path: [...path, field, name], source }))
      : [],
  );
  const single = ["when", "items", "value"].map((field) => ({ path: [...path, field], source: step[field] }));
  // An empty one is an issue of the shape.
  return [...single, ...named].flatMap(({ path: at, source }) =>
    typeof source === "string" && source !== "" ? [{ path: at, source, scope }] : [],
  );
}
