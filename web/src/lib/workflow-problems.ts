import { findPlace, type JsonPlace, lineOf } from "./json-place.ts";
import { type FieldPath, isObject, parseText, valueAt } from "./workflow-document.ts";

/** As the service reports it. */
export interface FieldProblem {
  field: string;
  reason: string;
}

/** What is wrong, at all its places: the step, its field, the line of the source. */
export interface WorkflowProblem {
  key: string;
  /** null: of the workflow as a whole, its input or its result. */
  stepId: string | null;
  /** Within the step, or within the definition: `["vars", "topic"]`. */
  path: FieldPath;
  /** For people: `vars.topic`. */
  label: string;
  /** The same words everywhere. */
  sentence: string;
  place: JsonPlace;
  line: number;
}

const PART = /\[(\d+)\]|([^.[\]]+)/g;
const POSITION = /line (\d+), column (\d+)$/;

export const parseField = (field: string): (string | number)[] =>
  [...field.matchAll(PART)].map(([, index, name]) => (index === undefined ? (name ?? "") : Number(index)));

/** `content.steps[1].vars.topic`, with the text in which it stands. */
export function toProblem(text: string, { field, reason }: FieldProblem): WorkflowProblem {
  const [, ...path] = parseField(field);
  const [root, index, ...rest] = path;
  const step = root === "steps" && typeof index === "number" ? valueAt(parseText(text), [root, index]) : null;
  const stepId = isObject(step) && typeof step["id"] === "string" ? step["id"] : null;
  // The messages use a variable that has no expression: the fault is at its field.
  const [, lacking] = /^lacks (\w+), which the messages use$/.exec(reason) ?? [];
  const inner = [...(stepId === null ? path : rest), ...(lacking === undefined ? [] : [lacking])];
  const place = placeOf(text, path, reason);
  return {
    ...{ key: `${field} ${reason}`, stepId, path: inner, label: labelOf(inner), place },
    sentence: toSentence(labelOf(stepId === null ? path : rest), reason),
    line: lineOf(text, place.from),
  };
}

function placeOf(text: string, path: FieldPath, reason: string): JsonPlace {
  if (path.length > 0) return findPlace(text, path);
  const [, line, column] = POSITION.exec(reason) ?? [];
  if (line === undefined) return { from: Math.max(0, text.length - 1), to: text.length };
  const start = text
    .split("\n")
    .slice(0, Number(line) - 1)
    .join("\n").length;
  const from = start + (line === "1" ? 0 : 1) + Number(column) - 1;
  return { from: Math.min(from, text.length), to: Math.min(from + 1, text.length) };
}

const labelOf = (path: FieldPath): string =>
  path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${part}` : part),
    "",
  );

const toSentence = (label: string, reason: string): string => {
  const text = label === "" ? reason : `${label} ${reason}`;
  return text.charAt(0).toUpperCase() + text.slice(1);
};

const isPrefix = (path: FieldPath, of: FieldPath): boolean =>
  path.length <= of.length && path.every((part, at) => part === of[at]);

/** The problem that a field of a form shows: its own, or one of what it contains. */
export const problemAt = (
  problems: readonly WorkflowProblem[],
  stepId: string | null,
  path: FieldPath,
): WorkflowProblem | undefined =>
  problems.find((problem) => problem.stepId === stepId && isPrefix(path, problem.path));
