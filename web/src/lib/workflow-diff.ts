import { type EditedStep, isObject, type JsonObject, parseText, stepsOf } from "./workflow-document.ts";

export interface FieldChange {
  /** `messages[0].content`; empty: the whole. */
  field: string;
  /** JSON or text; null: it is not there. */
  before: string | null;
  after: string | null;
}

export interface StepChange {
  id: string;
  type: string;
  kind: "added" | "removed" | "changed";
  fields: FieldChange[];
}

export interface WorkflowDiff {
  steps: StepChange[];
  /** Of input, result and what else stands outside of the steps. */
  workflow: FieldChange[];
}

/** null: one of the texts is no JSON object. */
export function diffWorkflows(before: string, after: string): WorkflowDiff | null {
  const [old, fresh] = [parseText(before), parseText(after)];
  if (!old || !fresh) return null;
  const [oldSteps, freshSteps] = [stepsOf(old), stepsOf(fresh)];
  const oldById = new Map(oldSteps.map((step) => [step.id, step]));
  const freshIds = new Set(freshSteps.map(({ id }) => id));
  return {
    steps: [
      ...freshSteps.flatMap((step) => compareStep(oldById.get(step.id), step)),
      ...oldSteps.filter(({ id }) => !freshIds.has(id)).map((step) => whole(step, "removed")),
    ],
    workflow: diffValues("", withoutSteps(old), withoutSteps(fresh)),
  };
}

export const isSame = ({ steps, workflow }: WorkflowDiff): boolean =>
  steps.length === 0 && workflow.length === 0;

const withoutSteps = ({ steps: _, ...rest }: JsonObject): JsonObject => rest;

function compareStep(before: EditedStep | undefined, after: EditedStep): StepChange[] {
  if (!before) return [whole(after, "added")];
  const fields = diffValues("", before, after);
  return fields.length === 0 ? [] : [{ id: after.id, type: typeOf(after), kind: "changed", fields }];
}

const whole = (step: EditedStep, kind: "added" | "removed"): StepChange => {
  const { id, type: _, ...rest } = step;
  const fields = kind === "added" ? diffValues("", {}, rest) : diffValues("", rest, {});
  return { id, type: typeOf(step), kind, fields };
};

const typeOf = (step: JsonObject): string => (typeof step["type"] === "string" ? step["type"] : "step");

function diffValues(field: string, before: unknown, after: unknown): FieldChange[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) =>
      diffValues(field === "" ? name : `${field}.${name}`, before[name], after[name]),
    );
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((item, at) => diffValues(`${field}[${at}]`, item, after[at]));
  return [{ field, before: show(before), after: show(after) }];
}

const show = (value: unknown): string | null =>
  value === undefined ? null : typeof value === "string" ? value : JSON.stringify(value);
