import type { ValidationIssue } from "../../core/errors.ts";
import { MAX_STEPS } from "./definition.ts";
import { isObject, type Path } from "./fault.ts";

/** What a step is to the others, read from a definition that may be wrong elsewhere. */
export interface Node {
  index: number;
  id: string;
  needs: readonly string[];
}

/** No more than there can be: a longer list is a fault of the shape. */
const textsOf = (list: unknown): string[] =>
  Array.isArray(list) ? list.slice(0, MAX_STEPS).filter((item) => typeof item === "string") : [];

/** The steps that have an id; of those that share one the first. */
export function nodesOf(steps: readonly unknown[]): Map<string, Node> {
  const nodes = new Map<string, Node>();
  steps.forEach((step, index) => {
    if (!isObject(step) || typeof step["id"] !== "string" || nodes.has(step["id"])) return;
    nodes.set(step["id"], { index, id: step["id"], needs: textsOf(step["needs"]) });
  });
  return nodes;
}

/** Ids that stand twice, needs that lead nowhere, and circles. */
export function graphFaults(steps: readonly unknown[], nodes: ReadonlyMap<string, Node>): ValidationIssue[] {
  return [
    ...steps.flatMap((step, index) => (isObject(step) ? stepFaults(step, index, nodes) : [])),
    ...circles(nodes),
  ];
}

function stepFaults(
  step: Record<string, unknown>,
  index: number,
  nodes: ReadonlyMap<string, Node>,
): ValidationIssue[] {
  const path: Path = ["steps", index];
  const faults = needsFaults(step, nodes).map((reason) => ({ path: [...path, "needs"], reason }));
  const first = typeof step["id"] === "string" ? nodes.get(step["id"]) : undefined;
  if (first && first.index !== index) {
    faults.push({ path: [...path, "id"], reason: `is the id of steps[${first.index}] too: choose another` });
  }
  return faults;
}

function needsFaults(step: Record<string, unknown>, nodes: ReadonlyMap<string, Node>): string[] {
  const seen = new Set<string>();
  const reasons = new Set<string>();
  for (const need of textsOf(step["needs"])) {
    if (seen.has(need)) reasons.add(`names ${need} twice`);
    else if (need === step["id"]) reasons.add(`names ${need}, which is this step itself`);
    else if (!nodes.has(need)) reasons.add(`names ${need}, but no step has this id`);
    seen.add(need);
  }
  return [...reasons];
}

/** Each circle once, told at its step that comes first, and the shortest way around. */
function circles(nodes: ReadonlyMap<string, Node>): ValidationIssue[] {
  const told = new Set<string>();
  return [...nodes.values()].flatMap(({ id, index }) => {
    const circle = told.has(id) ? null : wayBack(id, nodes);
    if (!circle) return [];
    for (const member of circle) told.add(member);
    const reason = `makes a circle: ${[...circle, id].join(" → ")}`;
    return [{ path: ["steps", index, "needs"], reason }];
  });
}

/** The shortest way from a step over what it needs back to itself, without the end; a step that needs itself aside. */
function wayBack(start: string, nodes: ReadonlyMap<string, Node>): string[] | null {
  const from = new Map<string, string>();
  const queue = [start];
  for (const id of queue) {
    for (const need of nodes.get(id)!.needs) {
      if (need === id || !nodes.has(need)) continue;
      if (need === start) return trail(id, start, from);
      if (!from.has(need)) {
        from.set(need, id);
        queue.push(need);
      }
    }
  }
  return null;
}

function trail(end: string, start: string, from: ReadonlyMap<string, string>): string[] {
  const way = [end];
  while (way[0] !== start) way.unshift(from.get(way[0]!)!);
  return way;
}

/** All that a step with these needs waits for, over however many others. */
export function ancestorsOf(needs: unknown, nodes: ReadonlyMap<string, Node>): Set<string> {
  const ancestors = new Set(textsOf(needs));
  // A set is gone through in the order in which it grows.
  for (const id of ancestors) {
    for (const need of nodes.get(id)?.needs ?? []) ancestors.add(need);
  }
  return ancestors;
}
