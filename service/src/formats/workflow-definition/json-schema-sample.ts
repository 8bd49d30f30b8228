import { type JsonSchema, resolveRef, validateValue } from "@stoa/evaluation/json-schema";
import { ownValue, required } from "../../core/required.ts";

type Schema = JsonSchema | boolean;

const MAX_BRANCHES = 8;
/** Of the whole sample: a schema may describe lists of lists of lists. */
const MAX_VALUES = 2_000;
const MAX_TEXT = 10_000;
const WORD = "sandbox";

interface SampleState {
  root: JsonSchema;
  /** The index of the branch of `anyOf` and `oneOf`. */
  branch: number;
  /** Includes optional parts: one item of a list, and all named properties. */
  isFull: boolean;
  valuesLeft: number;
}

/** Returns a small valid value, always the same one; undefined: none was found. */
export function generateSample(root: JsonSchema): unknown {
  for (let branch = 0; branch < MAX_BRANCHES; branch++) {
    for (const isFull of [true, false]) {
      const value = generateValue(root, { root, branch, isFull, valuesLeft: MAX_VALUES }, 0);
      if (validateValue(root, value).length === 0) return value;
    }
  }
  return undefined;
}

/** `n` makes distinct values for lists with unique items. */
function generateValue(schema: Schema, state: SampleState, n: number): unknown {
  if (state.valuesLeft-- <= 0) return null;
  const flat = flattenSchema(schema, state);
  if (flat.const !== undefined) return flat.const;
  if (flat.enum) return flat.enum[n % flat.enum.length];
  switch (chooseType(flat)) {
    case "object":
      return generateObject(flat, state);
    case "array":
      return generateArray(flat, state);
    case "integer":
    case "number":
      return generateNumber(flat, n);
    case "boolean":
      return n % 2 === 1;
    case "null":
      return null;
    default:
      return generateString(flat, n);
  }
}

/** Merges all schemas that apply together. */
function flattenSchema(schema: Schema, state: SampleState): JsonSchema {
  if (typeof schema === "boolean") return {};
  const { allOf = [], anyOf, oneOf, $ref, ...own } = schema;
  const parts: Schema[] = [...allOf];
  if ($ref) parts.push(resolveRef($ref, state.root));
  for (const branches of [anyOf, oneOf])
    if (branches) parts.push(required(branches[state.branch % branches.length], "a branch"));
  return parts.reduce<JsonSchema>((all, part) => mergeSchemas(all, flattenSchema(part, state)), own);
}

function mergeSchemas(a: JsonSchema, b: JsonSchema): JsonSchema {
  const properties = { ...a.properties };
  for (const [name, schema] of Object.entries(b.properties ?? {})) {
    const other = ownValue(properties, name);
    properties[name] = other === undefined ? schema : { allOf: [other, schema] };
  }
  const items =
    a.items === undefined ? b.items : b.items === undefined ? a.items : { allOf: [a.items, b.items] };
  return {
    ...a,
    ...b,
    ...mergeBounds(a, b, Math.max, ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"]),
    ...mergeBounds(a, b, Math.min, ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"]),
    properties,
    required: [...new Set([...(a.required ?? []), ...(b.required ?? [])])],
    ...(items !== undefined && { items }),
  };
}

type Bound =
  | `${"minimum" | "maximum"}`
  | `exclusive${"Minimum" | "Maximum"}`
  | `${"min" | "max"}${"Length" | "Items" | "Properties"}`;

const mergeBounds = (a: JsonSchema, b: JsonSchema, pick: (...of: number[]) => number, names: Bound[]) =>
  Object.fromEntries(
    names.flatMap((name) => {
      const both = [a[name], b[name]].filter((bound) => bound !== undefined);
      return both.length > 0 ? [[name, pick(...both)]] : [];
    }),
  );

function chooseType(schema: JsonSchema): string | undefined {
  if (schema.type !== undefined) return [schema.type].flat()[0];
  if (Object.keys(schema.properties ?? {}).length > 0 || schema.required?.length) return "object";
  if (schema.items !== undefined || schema.prefixItems || schema.minItems !== undefined) return "array";
  return schema.minimum !== undefined || schema.maximum !== undefined ? "number" : undefined;
}

function generateObject(
  { properties = {}, required = [], ...schema }: JsonSchema,
  state: SampleState,
): unknown {
  const names = new Set(state.isFull ? [...required, ...Object.keys(properties)] : required);
  for (let n = 1; names.size < Math.min(schema.minProperties ?? 0, MAX_VALUES); n++) names.add(`${WORD}${n}`);
  const schemaOf = (name: string) => ownValue(properties, name) ?? schema.additionalProperties ?? true;
  return Object.fromEntries([...names].map((name) => [name, generateValue(schemaOf(name), state, 0)]));
}

function generateArray(
  { items = true, prefixItems = [], minItems = 0, maxItems }: JsonSchema,
  state: SampleState,
): unknown[] {
  const count = state.isFull ? Math.max(minItems, 1, prefixItems.length) : minItems;
  const length = Math.min(count, maxItems ?? count, MAX_VALUES);
  return Array.from({ length }, (_, n) => generateValue(prefixItems[n] ?? items, state, n));
}

function generateNumber(schema: JsonSchema, n: number): number {
  const step = schema.multipleOf ?? (schema.type === "number" ? 0.5 : 1);
  const low = Math.max(schema.minimum ?? -Infinity, schema.exclusiveMinimum ?? -Infinity);
  const high = Math.min(schema.maximum ?? Infinity, schema.exclusiveMaximum ?? Infinity);
  const start = low > 0 ? low : high < 0 ? high : 0;
  const isOut = (value: number) => value <= (schema.exclusiveMinimum ?? -Infinity);
  const first = (start < 0 ? Math.floor : Math.ceil)(start / step) * step;
  if (start < 0)
    return first >= (schema.exclusiveMaximum ?? Infinity) ? first - step * (n + 1) : first - step * n;
  return first + step * (isOut(first) ? n + 1 : n);
}

function generateString({ minLength = 0, maxLength = MAX_TEXT }: JsonSchema, n: number): string {
  const word = n === 0 ? WORD : `${WORD}${n}`;
  return word.padEnd(Math.min(minLength, MAX_TEXT), "x").slice(0, maxLength);
}
