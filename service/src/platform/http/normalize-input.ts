import { type Endpoint, isFilter } from "@stoa/contract";
import type { z } from "zod";

type Schema = z.core.$ZodType;
/** The parts of a zod schema's definition with inner schemas. */
interface Definition {
  type: string;
  innerType?: Schema;
  in?: Schema;
  out?: Schema;
  entries?: Record<string, string>;
  shape?: Record<string, Schema>;
  element?: Schema;
  /** Of a union. */
  options?: Schema[];
  keyType?: Schema;
  valueType?: Schema;
}

const definitionOf = (schema: Schema) => schema._zod.def as unknown as Definition;

/** The inner schema of `optional`, `default` and the like. */
function innerSchemaOf(schema: Schema): Schema {
  const { innerType, in: first, out } = definitionOf(schema);
  if (innerType) return innerSchemaOf(innerType);
  if (!first || !out) return schema;
  return innerSchemaOf(definitionOf(first).type === "transform" ? out : first);
}

/** Normalizes the value of one query parameter; undefined: it counts as absent. */
type Normalize = (value: unknown) => unknown;

const textsIn = (value: unknown): unknown =>
  Array.isArray(value) ? simplified(value.filter((item) => item !== "")) : value === "" ? undefined : value;
const simplified = (items: unknown[]): unknown => (items.length > 1 ? items : items[0]);
const isAll = (value: unknown) => typeof value === "string" && value.toLowerCase() === "all";

function normalizerOf(schema: z.ZodType): Normalize {
  const { entries } = definitionOf(innerSchemaOf(schema));
  const spellings = new Map(Object.values(entries ?? {}).map((value) => [value.toLowerCase(), value]));
  const spelled = (value: unknown) =>
    typeof value === "string" ? (spellings.get(value.toLowerCase()) ?? value) : value;
  const canBeLeftOut = isFilter(schema) && !spellings.has("all");
  return (value) => {
    const given = textsIn(value);
    return canBeLeftOut && isAll(given) ? undefined : spelled(given);
  };
}

const normalizers = new WeakMap<Endpoint["query"], Map<string, Normalize>>();

function normalizersOf({ query }: Endpoint): Map<string, Normalize> {
  const known = normalizers.get(query);
  if (known) return known;
  const made = new Map(
    Object.entries(query.shape).map(([name, schema]) => [name, normalizerOf(schema as z.ZodType)]),
  );
  normalizers.set(query, made);
  return made;
}

/** A query without its empty parameters and without filters that are `all`; enumerated values as the contract spells them. */
export function normalizeQuery(endpoint: Endpoint, query: Record<string, unknown>): Record<string, unknown> {
  const normalizerByName = normalizersOf(endpoint);
  const normalized: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(query)) {
    const result = (normalizerByName.get(name) ?? textsIn)(value);
    if (result !== undefined) normalized[name] = result;
  }
  return normalized;
}

const accepts = (schema: Schema, value: unknown) => (schema as z.ZodType).safeParse(value).success;
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Copies a JSON value without each `null` for an optional field whose schema does not accept it. */
export function omitNulls(schema: Schema, value: unknown): unknown {
  const given = definitionOf(innerSchemaOf(schema));
  if (given.options) return omitNullsInUnion(given.options, value);
  if (Array.isArray(value) && given.element) return value.map((item) => omitNulls(given.element!, item));
  if (!isObject(value)) return value;
  if (given.shape) return omitNullFields(given.shape, value);
  // A map with enumerated names, such as providers, has optional fields; any other map has only values.
  const isEnumerated = given.keyType && definitionOf(innerSchemaOf(given.keyType)).entries;
  if (isEnumerated && !accepts(given.valueType!, null)) return withoutNullValues(value);
  return value;
}

/** Tries the options in order. A value that no option accepts stays unchanged, so that its error shows what was sent. */
function omitNullsInUnion(options: Schema[], value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const option of options) {
    const normalized = omitNulls(option, value);
    if (accepts(option, normalized)) return normalized;
  }
  return value;
}

function omitNullFields(shape: Record<string, Schema>, value: Record<string, unknown>) {
  const entries = Object.entries(value).flatMap(([name, item]) => {
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (!schema) return [[name, item]];
    if (item === null && accepts(schema, undefined) && !accepts(schema, null)) return [];
    return [[name, omitNulls(schema, item)]];
  });
  return Object.fromEntries(entries);
}

const withoutNullValues = (value: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
