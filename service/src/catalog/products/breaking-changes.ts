import type { Variable } from "@stoa/contract";
import { describeTypes, isNarrower } from "@stoa/evaluation/json-schema";
import { type FieldProblem, fieldError } from "../../core/errors.ts";
import { isClosedInput, parseInputTypes } from "../../formats/workflow-definition/inputs.ts";
import { majorOf } from "../entitlements/entitlements.ts";
import type { LockedProduct } from "./ownership.ts";

type InputDefinition = Pick<LockedProduct, "type" | "content" | "variables" | "version">;

/**
 * Buyers run the newest version of the bought major line with their old inputs. So a new version of a line must accept
 * every input of the version before.
 */
export function mustAcceptOldInputs(before: InputDefinition, after: InputDefinition): void {
  if (majorOf(after.version) > majorOf(before.version)) return;
  const problems = [...narrowedVariables(before, after), ...narrowedTypes(before, after)];
  if (problems.length > 0) throw fieldError("VALIDATION_ERROR", problems);
}

function narrowedVariables(before: InputDefinition, after: InputDefinition): FieldProblem[] {
  const [old, now] = [byName(before.variables), byName(after.variables)];
  const narrowed = after.variables.flatMap((variable) => {
    const change = narrowing(old.get(variable.name), variable);
    return change ? [problem(before, variable.name, change)] : [];
  });
  if (after.type === "WORKFLOW" && !isClosedInput(after.content)) return narrowed;
  const removed = before.variables.filter(({ name }) => !now.has(name));
  return [...narrowed, ...removed.map(({ name }) => problem(before, name, "is removed"))];
}

const byName = (variables: readonly Variable[]) =>
  new Map(variables.map((variable) => [variable.name, variable]));

const isRequiredInput = ({ required, default: standard }: Variable) => required && standard === undefined;

/** The first input that was valid before and is not now; null: none. */
function narrowing(old: Variable | undefined, now: Variable): string | null {
  if (isRequiredInput(now) && !(old && isRequiredInput(old))) {
    return old ? "becomes required" : "is new and required";
  }
  if (!old) return null;
  const { enum: choices, maxLength = Number.POSITIVE_INFINITY } = now;
  if (choices && !old.enum?.every((choice) => choices.includes(choice))) return "accepts fewer values";
  return maxLength < (old.maxLength ?? Number.POSITIVE_INFINITY) ? "becomes shorter" : null;
}

/** Compares the JSON types of workflow inputs; variables have no types. */
function narrowedTypes(before: InputDefinition, after: InputDefinition): FieldProblem[] {
  if (before.type !== "WORKFLOW" || after.type !== "WORKFLOW") return [];
  const now = parseInputTypes(after.content);
  return [...parseInputTypes(before.content)].flatMap(([name, types]) => {
    const allowed = now.get(name);
    if (!allowed || !isNarrower(allowed, types)) return [];
    return [problem(before, name, `must now be ${describeTypes(allowed)}`)];
  });
}

const problem = ({ version }: InputDefinition, name: string, change: string): FieldProblem => ({
  field: `variables.${name}`,
  reason: `${change}, which breaks the runs of buyers of ${majorOf(version)}.x: keep accepting the old inputs (give a new variable a default), or send version ${majorOf(version) + 1}.0.0`,
});
