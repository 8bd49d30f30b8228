import { type Provider, providers } from "@stoa/contract";
import type { FieldProblem, ValidationIssue } from "../../core/errors.ts";
import { anyModelProviders } from "../../integrations/ai-providers/ai-provider.ts";
import { validationIssuesOf } from "../../platform/http/validate.ts";
import { parseTemplate, variablesOf } from "../prompt-template/template.ts";
import { MAX_STEPS, Workflow } from "./definition.ts";
import { type ExpressionCheck, openExpressions, type Scope } from "./expression.ts";
import { inOrder, isObject, type Path, toProblem } from "./fault.ts";
import { ancestorsOf, graphFaults, type Node, nodesOf } from "./graph.ts";
import { inputFaults, inputNames } from "./inputs.ts";
import { schemaFaults } from "./json-schema.ts";
import { readJson } from "./json-text.ts";

/** Enough to mend a definition by. */
const MAX_PROBLEMS = 50;
/** Parsing takes some five microseconds a character, and one answer shall not take all of a process's time. */
const MAX_EXPRESSIONS_CHARACTERS = 20_000;

export type CheckedWorkflow = { workflow: Workflow } | { problems: FieldProblem[] };

/** The workflow that a product's `content` holds, or all that is wrong with it, by its place in the text. */
export async function checkWorkflow(content: string): Promise<CheckedWorkflow> {
  const read = readJson(content);
  if ("faults" in read) return { problems: toProblems(read.faults) };
  const shape = Workflow.safeParse(read.value, { reportInput: true });
  const faults = shape.success ? [] : validationIssuesOf(shape.error);
  faults.push(...innerFaults(read.value, await openExpressions()));
  if (shape.success && faults.length === 0) return { workflow: shape.data };
  return { problems: toProblems(inOrder(read.value, faults)) };
}

const toProblems = (faults: readonly ValidationIssue[]) =>
  faults.slice(0, MAX_PROBLEMS).map((fault) => toProblem("content", fault));

/** What a shape cannot say. It reads what may be of any shape: whoever wrote both kinds of faults is told of both. */
function innerFaults(definition: unknown, check: ExpressionCheck): ValidationIssue[] {
  if (!isObject(definition)) return [];
  const { input } = definition;
  const steps = Array.isArray(definition["steps"]) ? definition["steps"] : [];
  // A list that is too long is told as such, and not looked through.
  if (steps.length > MAX_STEPS) return [];
  const nodes = nodesOf(steps);
  return [
    ...(isObject(input) ? inputFaults(input, ["input"]) : []),
    ...graphFaults(steps, nodes),
    ...steps.flatMap((step, index) => stepFaults(step, ["steps", index])),
    ...expressionFaults(definition, nodes, check),
  ];
}

/** The schema and the messages of a step, and of the step that a map does. */
function stepFaults(step: unknown, path: Path): ValidationIssue[] {
  if (!isObject(step)) return [];
  return [
    ...(isObject(step["output"]) ? schemaFaults(step["output"], [...path, "output"]) : []),
    ...messageFaults(step, path),
    // Once: a map in a map is a fault of the shape.
    ...(path.at(-1) === "do" ? [] : stepFaults(step["do"], [...path, "do"])),
  ];
}

/** Each name in the messages has a value or a default. */
function messageFaults({ messages, vars = {} }: Record<string, unknown>, path: Path): ValidationIssue[] {
  if (!Array.isArray(messages) || !isObject(vars)) return [];
  const texts = messages.flatMap((message) =>
    isObject(message) && typeof message["content"] === "string" ? [message["content"]] : [],
  );
  return variablesOf(...texts.map(parseTemplate))
    .filter(({ name, default: standard }) => standard === undefined && !Object.hasOwn(vars, name))
    .map(({ name }) => ({ path: [...path, "vars"], reason: `lacks ${name}, which the messages use` }));
}

/** The providers of all prompt steps, in the order of the registry: whoever runs it has a key of each. */
export function providersOf({ steps }: Workflow): Provider[] {
  const all = steps.map((step) => (step.type === "map" ? step.do : step));
  return providers.filter((id) => all.some((step) => step.type === "prompt" && step.provider === id));
}

/** Those that a product which says that it is compatible with these would lack. */
export const missingProviders = (workflow: Workflow, compatibility: readonly string[]): Provider[] =>
  providersOf(workflow).filter((id) => !anyModelProviders.has(id) && !compatibility.includes(id));

interface Place {
  path: Path;
  source: string;
  scope: Scope;
}

function expressionFaults(
  definition: Record<string, unknown>,
  nodes: ReadonlyMap<string, Node>,
  check: ExpressionCheck,
): ValidationIssue[] {
  const places = placesOf(definition, nodes);
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
function placesOf(definition: Record<string, unknown>, nodes: ReadonlyMap<string, Node>): Place[] {
  const { input, steps, result } = definition;
  const everywhere = { inputs: inputNames(input), steps: nodes };
  const inSteps = (Array.isArray(steps) ? steps : []).flatMap((step, index) => {
    if (!isObject(step)) return [];
    const path = ["steps", index];
    const scope = { ...everywhere, ended: ancestorsOf(step["needs"], nodes) };
    return [
      ...expressionsIn(step, path, { ...scope, inMap: false }),
      ...expressionsIn(step["do"], [...path, "do"], { ...scope, inMap: true }),
    ];
  });
  const scope = { ...everywhere, ended: null, inMap: false };
  return typeof result === "string" ? [...inSteps, { path: ["result"], source: result, scope }] : inSteps;
}

function expressionsIn(step: unknown, path: Path, scope: Scope): Place[] {
  if (!isObject(step)) return [];
  const named = ["vars", "variables"].flatMap((field) =>
    isObject(step[field])
      ? Object.entries(step[field]).map(([name, source]) => ({ path: [...path, field, name], source }))
      : [],
  );
  const single = ["when", "items", "value"].map((field) => ({ path: [...path, field], source: step[field] }));
  // An empty one is a fault of the shape.
  return [...single, ...named].flatMap(({ path: at, source }) =>
    typeof source === "string" && source !== "" ? [{ path: at, source, scope }] : [],
  );
}
