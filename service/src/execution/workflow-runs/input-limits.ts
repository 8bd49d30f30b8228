import type { FieldProblem } from "../../core/errors.ts";
import { MAX_ITEMS, type Workflow } from "../../formats/workflow-definition/workflow-schema.ts";

/** An expression that is only a path in the input, such as `input.list` or `input.order.lines`. */
const INPUT_PATH = /^input((?:\.[A-Za-z_][A-Za-z0-9_]*)+)$/;

/**
 * Finds lists of the input that are too long for a map that iterates over them directly. Such a run could only fail, after its
 * first steps were paid for.
 */
export function findOversizedLists(
  { steps }: Workflow,
  input: Readonly<Record<string, unknown>>,
): FieldProblem[] {
  return steps.flatMap((step) => {
    if (step.type !== "map" || step.when !== undefined || step.onError === "continue") return [];
    const path = INPUT_PATH.exec(step.items.trim())?.[1];
    const list = path === undefined ? undefined : valueAt(input, path.slice(1).split("."));
    if (!Array.isArray(list) || list.length <= MAX_ITEMS) return [];
    const reason = `has ${list.length} items; the map ${step.id} takes at most ${MAX_ITEMS}`;
    return [{ field: `input${path}`, reason }];
  });
}

const valueAt = (value: unknown, names: readonly string[]): unknown =>
  names.reduce<unknown>(
    (at, name) =>
      typeof at === "object" && at !== null && Object.hasOwn(at, name)
        ? (at as Record<string, unknown>)[name]
        : undefined,
    value,
  );
