import type { Variable } from "@stoa/sdk";
import { reconcileVariables } from "../../lib/prompt-variables.ts";
import { changedFields, type Draft, type DraftField, isSame } from "./draft-fields.ts";

export interface Merge {
  /** With my value in the fields of conflicts. */
  merged: Draft;
  /** Fields that both sides changed, each to something else. */
  conflicts: DraftField[];
  /** Fields that only they changed. */
  taken: DraftField[];
}

/** Three-way merge by field: what only one side changed is taken from that side. */
export function mergeDrafts(base: Draft, mine: Draft, theirs: Draft): Merge {
  const conflicts: DraftField[] = [];
  const taken: DraftField[] = [];
  const merged = { ...mine };
  for (const field of changedFields(base, theirs)) {
    if (isSame(mine[field], theirs[field])) continue;
    if (isSame(mine[field], base[field])) {
      Object.assign(merged, { [field]: theirs[field] });
      taken.push(field);
      continue;
    }
    const variables =
      field === "variables" ? mergeVariables(base.variables, mine.variables, theirs.variables) : null;
    if (variables) merged.variables = variables;
    else conflicts.push(field);
  }
  return { merged: withVariables(merged), conflicts, taken };
}

/** By name; null: both sides changed the same variable. */
function mergeVariables(base: Variable[], mine: Variable[], theirs: Variable[]): Variable[] | null {
  const merged: Variable[] = [];
  for (const name of new Set([...mine, ...theirs].map((variable) => variable.name))) {
    const [old, own, other] = [base, mine, theirs].map((list) => list.find((one) => one.name === name));
    const isTheirs = isSame(own, old);
    if (!isTheirs && !isSame(other, old) && !isSame(own, other)) return null;
    const chosen = isTheirs ? other : own;
    if (chosen) merged.push(chosen);
  }
  return merged;
}

export const withVariables = (draft: Draft): Draft => {
  const variables = reconcileVariables(draft.content, draft.contentFormat, draft.variables);
  return isSame(variables, draft.variables) ? draft : { ...draft, variables };
};

export type Side = "mine" | "theirs" | "base";

export interface Conflict {
  base: Draft;
  mine: Draft;
  theirs: Draft;
  fields: DraftField[];
}

/** What the person chose for each field of a conflict. */
export function resolveConflict(
  { base, mine, theirs, fields }: Conflict,
  choices: Partial<Record<DraftField, Side>>,
): Draft {
  const sides = { mine, theirs, base };
  const { merged } = mergeDrafts(base, mine, theirs);
  const chosen = fields.map((field) => [field, sides[choices[field] ?? "mine"][field]]);
  return withVariables({ ...merged, ...Object.fromEntries(chosen) });
}
