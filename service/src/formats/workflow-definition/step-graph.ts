import type { ValidationIssue } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { isObject, type Path } from "./issue-order.ts";
import { MAX_STEPS } from "./workflow-schema.ts";

/** Read from a definition that may have other issues. */
export interface StepNode {
  index: number;
  id: string;
  needs: readonly string[];
}

/** The schema reports a longer list. */
const listTexts = (list: unknown): string[] =>
  Array.isArray(list) ? list.slice(0, MAX_STEPS).filter((item) => typeof item === "string") : [];

/** The first step wins if several share an id. */
export function createStepNodes(steps: readonly unknown[]): Map<string, StepNode> {
  const nodes = new Map<string, StepNode>();
  steps.forEach((step, index) => {
    if (!isObject(step) || typeof step["id"] !== "string" || nodes.has(step["id"])) return;
    nodes.set(step["id"], { index, id: step["id"], needs: listTexts(step["needs"]) });
  });
  return nodes;
}

/** Finds duplicate ids, unknown needs, and cycles. */
export function findGraphIssues(
  steps: readonly unknown[],
  nodes: ReadonlyMap<string, StepNode>,
): ValidationIssue[] {
  return [
    ...steps.flatMap((step, index) => (isObject(step) ? findStepIssues(step, index, nodes) : [])),
    ...findCycleIssues(nodes),
  ];
}

function findStepIssues(
  step: Record<string, unknown>,
  index: number,
  nodes: ReadonlyMap<string, StepNode>,
): ValidationIssue[] {
  const path: Path = ["steps", index];
  const issues = findNeedsIssues(step, nodes).map((reason) => ({ path: [...path, "needs"], reason }));
  const first = typeof step["id"] === "string" ? nodes.get(step["id"]) : undefined;
  if (first && first.index !== index) {
    issues.push({ path: [...path, "id"], reason: `is the id of steps[${first.index}] too: choose another` });
  }
  return issues;
}

function findNeedsIssues(step: Record<string, unknown>, nodes: ReadonlyMap<string, StepNode>): string[] {
  const seen = new Set<string>();
  const reasons = new Set<string>();
  for (const need of listTexts(step["needs"])) {
    if (seen.has(need)) reasons.add(`names ${need} twice`);
    else if (need === step["id"]) reasons.add(`names ${need}, which is this step itself`);
    else if (!nodes.has(need)) reasons.add(`names ${need}, but no step has this id`);
    seen.add(need);
  }
  return [...reasons];
}

/** Reports each cycle once, at its first step, by the shortest path. */
function findCycleIssues(nodes: ReadonlyMap<string, StepNode>): ValidationIssue[] {
  const reported = new Set<string>();
  return [...nodes.values()].flatMap(({ id, index }) => {
    const cycle = reported.has(id) ? null : findShortestCycle(id, nodes);
    if (!cycle) return [];
    for (const member of cycle) reported.add(member);
    const reason = `is circular: ${[...cycle, id].join(" → ")}`;
    return [{ path: ["steps", index, "needs"], reason }];
  });
}

/** Omits the end. Another check reports a step that needs itself. */
function findShortestCycle(start: string, nodes: ReadonlyMap<string, StepNode>): string[] | null {
  const from = new Map<string, string>();
  const queue = [start];
  for (const id of queue) {
    for (const need of nodes.get(id)?.needs ?? []) {
      if (need === id || !nodes.has(need)) continue;
      if (need === start) return toPath(id, start, from);
      if (!from.has(need)) {
        from.set(need, id);
        queue.push(need);
      }
    }
  }
  return null;
}

function toPath(end: string, start: string, from: ReadonlyMap<string, string>): string[] {
  const path: string[] = [];
  for (let id = end; id !== start; id = required(from.get(id), "the step before")) path.unshift(id);
  return [start, ...path];
}

/** Direct and indirect needs. */
export function listAncestors(needs: unknown, nodes: ReadonlyMap<string, StepNode>): Set<string> {
  const ancestors = new Set(listTexts(needs));
  // Iterating over a set includes the elements that the loop adds.
  for (const id of ancestors) {
    for (const need of nodes.get(id)?.needs ?? []) ancestors.add(need);
  }
  return ancestors;
}
