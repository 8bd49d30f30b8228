import { hasEmbeddings } from "./providers.ts";

/** A workflow while its author edits it: it may have any shape that JSON can have. */

export type Json = unknown;
export type JsonObject = Record<string, unknown>;
export type FieldPath = readonly (string | number)[];

export interface Position {
  x: number;
  y: number;
}

/** What commands change. The text is what is saved: source and canvas show the same. */
export interface WorkflowDocument {
  text: string;
  /** Of steps that the author moved; others have the place of the layout. */
  positions: Readonly<Record<string, Position>>;
}

export interface EditedStep extends JsonObject {
  id: string;
}

export const STEP_TYPES = [
  "prompt",
  "map",
  "product",
  "approval",
  "transform",
  "embedding",
  "delay",
] as const;
export type StepType = (typeof STEP_TYPES)[number];

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

let last: { text: string; value: JsonObject | null } = { text: "", value: null };

/** null: the text is no JSON object. The result is shared, and must not be changed. */
export function parseText(text: string): JsonObject | null {
  if (last.text !== text) last = { text, value: parseObject(text) };
  return last.value;
}

function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

export const formatText = (definition: JsonObject): string => JSON.stringify(definition, null, 2);

const isStep = (step: unknown): step is EditedStep => isObject(step) && typeof step["id"] === "string";

/** The steps that have an id, each id once. */
export function stepsOf(definition: JsonObject | null): EditedStep[] {
  const steps = definition?.["steps"];
  if (!Array.isArray(steps)) return [];
  const byId = new Map<string, EditedStep>();
  for (const step of steps) if (isStep(step) && !byId.has(step.id)) byId.set(step.id, step);
  return [...byId.values()];
}

/** The place of a step in `steps`, as problems name it; -1: there is none. */
export const indexOfStep = (definition: JsonObject | null, id: string): number => {
  const steps = definition?.["steps"];
  return Array.isArray(steps) ? steps.findIndex((step) => isStep(step) && step.id === id) : -1;
};

export const needsOf = (step: JsonObject): string[] =>
  Array.isArray(step["needs"]) ? step["needs"].filter((need) => typeof need === "string") : [];

/** What a step needs, directly and through others. */
export function ancestorsOf(steps: readonly EditedStep[], id: string): string[] {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const found = new Set<string>();
  const visit = (step: EditedStep | undefined) => {
    for (const need of step ? needsOf(step) : [])
      if (!found.has(need) && byId.has(need)) {
        found.add(need);
        visit(byId.get(need));
      }
  };
  visit(byId.get(id));
  found.delete(id);
  return steps.flatMap((step) => (found.has(step.id) ? [step.id] : []));
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export const valueAt = (value: unknown, path: FieldPath): unknown =>
  path.reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null && Object.hasOwn(at, key)
        ? (at as Record<string | number, unknown>)[key]
        : undefined,
    value,
  );

/** A name that no step has: `prompt`, `prompt2`. */
export function freeId(steps: readonly EditedStep[], base: string): string {
  const taken = new Set(steps.map(({ id }) => id));
  for (let count = 1; ; count++) {
    const id = count === 1 ? base : `${base}${count}`;
    if (!taken.has(id)) return id;
  }
}

/** A step that passes the checks where it can; a product must be chosen. */
export function newStep(type: StepType, id: string, needs: string[], provider: string): EditedStep {
  const list = needs.length === 1 ? `[steps.${needs[0]}.output]` : '["one", "two"]';
  const fields: Record<StepType, JsonObject> = {
    prompt: { provider, messages: [{ role: "user", content: "Write one sentence." }] },
    map: { items: list, do: { type: "transform", value: "item" } },
    product: { productId: "", variables: {} },
    approval: { timeoutSeconds: 86_400, prompt: "Go on?" },
    transform: { value: needs.length === 1 ? `steps.${needs[0]}.output` : '"text"' },
    embedding: {
      provider: hasEmbeddings(provider) ? provider : "openai",
      text: needs.length === 1 ? `steps.${needs[0]}.output` : '"text"',
      compareTo: '["other text"]',
    },
    delay: { seconds: 60 },
  };
  return { id, type, ...(needs.length > 0 && { needs }), ...fields[type] };
}
