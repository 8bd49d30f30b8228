import type { TestCaseInput } from "@stoa/contract";
import { toInputText } from "@stoa/evaluation/input-text";
import { ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { MAX_STEPS } from "../../formats/workflow-definition/workflow-schema.ts";

/** The places of a column's runs: which case, and which of its repeats. */
export interface Place {
  caseN: number;
  repeatN: number;
}

interface Group {
  stepId: string;
  names: string[];
  items: unknown[];
  places: Place[];
}

export interface ColumnSpec {
  kind: "product" | "baseline" | "judge";
  provider: string | null;
  model: string | null;
}

interface TestedVersion {
  productId: string;
  version: string;
  cases: readonly Pick<TestCaseInput, "input">[];
  repeats: number;
}

/** A workflow whose maps run each case of a column as often as it repeats. */
export function toColumnRun(column: ColumnSpec, tested: TestedVersion) {
  const groups = groupsOf(column, tested);
  const definition = {
    format: "workflow/1",
    input: { type: "object" },
    steps: groups.map((group) => ({
      id: group.stepId,
      type: "map",
      items: `input.${group.stepId}`,
      do: { ...toStep(column, tested, group), onError: "continue" },
    })),
    result: "null",
  };
  return {
    definition: JSON.stringify(definition),
    input: Object.fromEntries(groups.map(({ stepId, items }) => [stepId, items])),
  };
}

/** The place of each item of a column's maps. */
export const listPlaces = (column: ColumnSpec, tested: TestedVersion) =>
  groupsOf(column, tested).flatMap(({ stepId, places }) =>
    places.map((place, item) => ({ stepId, item, place })),
  );

/** Finds the place of an item; undefined: the step is none of the column's. */
export function placeFinder(column: ColumnSpec, tested: TestedVersion) {
  const keyOf = ({ stepId, item }: { stepId: string; item: number }) => `${stepId} ${item}`;
  const places = new Map(listPlaces(column, tested).map((one) => [keyOf(one), one.place]));
  return (step: { stepId: string; item: number }): Place | undefined => places.get(keyOf(step));
}

/** An expression cannot omit a variable, so cases with other variables are items of another map. */
function groupsOf(column: ColumnSpec, { cases, repeats }: TestedVersion): Group[] {
  const groups = new Map<string, Group>();
  for (let repeatN = 0; repeatN < repeats; repeatN++)
    for (const [caseN, { input }] of cases.entries()) {
      const names = column.kind === "baseline" ? [] : Object.keys(input).sort();
      const key = JSON.stringify(names);
      const group = groups.get(key) ?? { stepId: `runs${groups.size}`, names, items: [], places: [] };
      groups.set(key, group);
      group.items.push(column.kind === "baseline" ? toInputText(input) : input);
      group.places.push({ caseN, repeatN });
    }
  if (groups.size > MAX_STEPS)
    throw ruleViolation(
      "productId",
      `has cases with ${groups.size} different sets of inputs; at most ${MAX_STEPS} can be evaluated`,
    );
  return [...groups.values()];
}

function toStep(
  { kind, provider, model }: ColumnSpec,
  { productId, version }: TestedVersion,
  { names }: Group,
) {
  if (kind === "baseline")
    return {
      type: "prompt",
      provider,
      model,
      messages: [{ role: "user", content: "{{variables}}" }],
      vars: { variables: "item" },
    };
  return {
    type: "product",
    productId: toId("prod", productId),
    version,
    ...(model !== null && { model }),
    variables: Object.fromEntries(names.map((name) => [name, `item[${JSON.stringify(name)}]`])),
  };
}
