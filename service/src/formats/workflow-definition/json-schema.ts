import type { ValidationIssue } from "../../core/errors.ts";
import { isObject, type Path } from "./fault.ts";

/**
 * The part of JSON Schema 2020-12 that a definition may use. It is read, never compiled: a schema of a stranger
 * becomes no code. No `pattern`, because a regular expression of a stranger can stop the process; no `$ref` but to
 * `$defs` of the same schema and not in a circle, so that checking a value ends.
 */
export interface JsonSchema {
  type?: Type | Type[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  const?: unknown;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  items?: Schema;
  prefixItems?: Schema[];
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
  minProperties?: number;
  maxProperties?: number;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
  $ref?: string;
  $defs?: Record<string, Schema>;
}
type Schema = JsonSchema | boolean;

const types = ["string", "number", "integer", "boolean", "object", "array", "null"] as const;
export type Type = (typeof types)[number];

const DRAFT = "https://json-schema.org/draft/2020-12/schema";
const LOCAL_REF = /^#\/\$defs\/([A-Za-z0-9_.-]{1,100})$/;
/** With every `$ref` written out: what a value can be held against at most. */
const MAX_SCHEMAS = 2_000;
const MAX_DEFS = 100;
/** Of one value: a long list against many forms would otherwise hold up everybody else for minutes. */
const MAX_CHECKS = 200_000;
const CHARACTERS_A_CHECK = 100;
/** Counted, and not looked at. */
const NAMES_A_CHECK = 10;
const MAX_SHOWN_CHOICES = 50;

interface Walk {
  faults: ValidationIssue[];
  parts: Map<string, Part>;
  /** The part that is walked just now. */
  part: string;
}

/** An entry of `$defs`, or the schema itself under the empty name. */
interface Part {
  schemas: number;
  refs: { name: string; path: Path }[];
}

type Check = (value: unknown, path: Path, walk: Walk) => void;

const must =
  (test: (value: unknown) => boolean, reason: string): Check =>
  (value, path, { faults }) => {
    if (!test(value)) faults.push({ path, reason });
  };

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown) => typeof value === "number" && Number.isFinite(value);
const isType = (value: unknown) => types.some((type) => type === value);
const isSet = (value: unknown): value is unknown[] =>
  Array.isArray(value) && new Set(value.map(canonical)).size === value.length;

const anything: Check = () => {};
const text = must(isText, "must be a string");
const flag = must((value) => typeof value === "boolean", "must be true or false");
const number = must(isNumber, "must be a number");
const count = must(
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  "must be 0 or a greater integer",
);

const schemas: Check = (value, path, walk) => {
  if (!Array.isArray(value) || value.length === 0) {
    walk.faults.push({ path, reason: "must be a list with at least one schema" });
  } else for (const [index, item] of value.entries()) walkSchema(item, [...path, index], walk);
};

const namedSchemas: Check = (value, path, walk) => {
  if (!isObject(value)) walk.faults.push({ path, reason: "must be an object of schemas" });
  else for (const [name, item] of Object.entries(value)) walkSchema(item, [...path, name], walk);
};

const reference: Check = (value, path, { faults, parts, part }) => {
  const name = typeof value === "string" ? LOCAL_REF.exec(value)?.[1] : undefined;
  if (name === undefined) faults.push({ path, reason: "must be of the form #/$defs/name" });
  else parts.get(part)!.refs.push({ name, path });
};

const KEYWORDS = new Map<string, Check>(
  Object.entries({
    $schema: must((value) => value === DRAFT, `must be ${DRAFT}`),
    $comment: text,
    title: text,
    description: text,
    default: anything,
    examples: must(Array.isArray, "must be a list"),
    deprecated: flag,
    format: text,
    type: must(
      (value) => isType(value) || (isSet(value) && value.length > 0 && value.every(isType)),
      `must be one or several of ${types.join(", ")}`,
    ),
    enum: must((value) => isSet(value) && value.length > 0, "must be a list of different values"),
    const: anything,
    minLength: count,
    maxLength: count,
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
    multipleOf: must((value) => isNumber(value) && (value as number) > 0, "must be a number above 0"),
    items: walkSchema,
    prefixItems: schemas,
    minItems: count,
    maxItems: count,
    uniqueItems: flag,
    properties: namedSchemas,
    required: must((value) => isSet(value) && value.every(isText), "must be a list of different names"),
    additionalProperties: walkSchema,
    minProperties: count,
    maxProperties: count,
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: walkSchema,
    $ref: reference,
  } satisfies Record<string, Check>),
);

const INSTEAD = new Map([
  ["pattern", "is not taken, because a regular expression can take for ever: use enum, maxLength or a step"],
  ["$defs", "can stand at the top of a schema alone"],
]);

/** What keeps an object from being a schema that we can check values against. */
export function schemaFaults(schema: unknown, path: Path): ValidationIssue[] {
  const walk: Walk = { faults: [], parts: new Map(), part: "" };
  beginPart(walk, "");
  if (isObject(schema)) {
    const { $defs, ...top } = schema;
    walkSchema(top, path, walk);
    if ($defs !== undefined) walkDefs($defs, [...path, "$defs"], walk);
  } else walkSchema(schema, path, walk);
  return [...walk.faults, ...referenceFaults(walk.parts, path)];
}

function walkDefs($defs: unknown, path: Path, walk: Walk): void {
  if (!isObject($defs) || Object.keys($defs).length > MAX_DEFS) {
    walk.faults.push({ path, reason: `must be an object of at most ${MAX_DEFS} schemas` });
    return;
  }
  for (const [name, item] of Object.entries($defs)) {
    beginPart(walk, name);
    walkSchema(item, [...path, name], walk);
  }
}

function beginPart(walk: Walk, name: string): void {
  walk.part = name;
  walk.parts.set(name, { schemas: 0, refs: [] });
}

function walkSchema(schema: unknown, path: Path, walk: Walk): void {
  walk.parts.get(walk.part)!.schemas++;
  if (typeof schema === "boolean") return;
  if (!isObject(schema)) {
    walk.faults.push({ path, reason: "must be a schema: an object, true or false" });
    return;
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const at = [...path, keyword];
    const check = KEYWORDS.get(keyword);
    if (check) check(value, at, walk);
    else
      walk.faults.push({
        path: at,
        reason: INSTEAD.get(keyword) ?? "is no keyword of the JSON Schema that is taken here",
      });
  }
}

function referenceFaults(parts: ReadonlyMap<string, Part>, path: Path): ValidationIssue[] {
  const faults: ValidationIssue[] = [];
  const sizes = new Map<string, number>();
  // Written out with all that it refers to. A circle is cut where it closes.
  const sizeOf = (name: string, trail: readonly string[]): number => {
    const known = sizes.get(name);
    if (known !== undefined) return known;
    const { schemas, refs } = parts.get(name)!;
    let size = schemas;
    for (const ref of refs) {
      if (!parts.has(ref.name))
        faults.push({ path: ref.path, reason: `names ${ref.name}, which $defs lacks` });
      else if (ref.name === name || trail.includes(ref.name))
        faults.push({ path: ref.path, reason: "makes a circle: a schema cannot hold itself" });
      else size += sizeOf(ref.name, [...trail, name]);
    }
    sizes.set(name, size);
    return size;
  };
  // All of them, for the faults of those that nobody refers to.
  for (const name of parts.keys()) sizeOf(name, []);
  if (sizes.get("")! > MAX_SCHEMAS) {
    faults.push({ path, reason: `holds more than ${MAX_SCHEMAS} schemas, with each $ref written out` });
  }
  return faults;
}

/** The defaults of properties that their own schemas refuse. They share the checks that one value may take. */
export function defaultFaults(schema: JsonSchema, path: Path): ValidationIssue[] {
  const look = lookAt(schema);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    if (typeof property === "boolean" || property.default === undefined) return [];
    const [problem] = faultsAgainst(property, property.default, look);
    if (!problem) return [];
    return [{ path: [...path, "properties", name, "default", ...problem.path], reason: problem.reason }];
  });
}

/** One text for equal values, whatever the order of their keys: JSON without spaces, names in order (RFC 8785). */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(",")}}`;
}

/** What a schema without faults finds wrong in a JSON value. No reason quotes the value. */
export const valueFaults = (schema: JsonSchema, value: unknown): ValidationIssue[] =>
  faultsAgainst(schema, value, lookAt(schema));

function faultsAgainst(schema: Schema, value: unknown, look: Look): ValidationIssue[] {
  const faults = check(schema, value, [], look);
  // What was found without looking at all of it may be wrong, under a `not` even the other way around.
  return look.checksLeft < 0 ? [{ path: [], reason: "is too much to be held against its schema" }] : faults;
}

interface Look {
  root: JsonSchema;
  checksLeft: number;
  choicesOf: (schema: JsonSchema) => Choices | null;
}

const lookAt = (root: JsonSchema): Look => ({ root, checksLeft: MAX_CHECKS, choicesOf: choices() });

/** What `enum` and `const` allow, as texts to compare by, and how others are refused. */
interface Choices {
  texts: ReadonlySet<string>;
  reason: string;
}

/** Made once for each schema, which may be held against each item of a long list. */
function choices(): Look["choicesOf"] {
  const made = new Map<JsonSchema, Choices>();
  return (schema) => {
    if (!schema.enum && schema.const === undefined) return null;
    let own = made.get(schema);
    if (!own) {
      own = choicesAmong(allowedBy(schema));
      made.set(schema, own);
    }
    return own;
  };
}

function choicesAmong(allowed: readonly unknown[]): Choices {
  const shown = allowed.slice(0, MAX_SHOWN_CHOICES).map((one) => (isText(one) ? one : canonical(one)));
  const more = allowed.length > shown.length ? ` and ${allowed.length - shown.length} others` : "";
  const reason = `must be ${allowed.length === 1 ? "" : "one of "}${shown.join(", ")}${more}`;
  return { texts: new Set(allowed.map(canonical)), reason };
}

function allowedBy({ enum: several, const: one }: JsonSchema): unknown[] {
  if (one === undefined) return several ?? [];
  return !several || several.some((each) => canonical(each) === canonical(one)) ? [one] : [];
}

function check(schema: Schema, value: unknown, path: Path, look: Look): ValidationIssue[] {
  if (look.checksLeft-- <= 0) return [];
  if (schema === true) return [];
  if (schema === false) return [{ path, reason: "is not known here" }];
  const reason = reasonAgainst(schema, value, look);
  // The rest would only say again that it is of another type.
  if (reason) return [{ path, reason }];
  return [
    ...(Array.isArray(value) ? itemFaults(schema, value, path, look) : []),
    ...(isObject(value) ? propertyFaults(schema, value, path, look) : []),
    ...combinedFaults(schema, value, path, look),
  ];
}

function reasonAgainst(schema: JsonSchema, value: unknown, look: Look): string | null {
  const allowed = schema.type === undefined ? null : [schema.type].flat();
  if (allowed && !allowed.some((type) => isOf(type, value))) return `must be ${namesOf(allowed)}`;
  const choices = look.choicesOf(schema);
  if (choices && !choices.texts.has(textOf(value, look))) return choices.reason;
  if (typeof value === "string") return textReason(schema, value, look);
  if (typeof value === "number") return numberReason(schema, value);
  if (Array.isArray(value)) return listReason(schema, value, look);
  return isObject(value) ? objectReason(schema, value, look) : null;
}

/** To compare by. A long text counts for many checks, because making it takes as long. */
function textOf(value: unknown, look: Look): string {
  const text = canonical(value);
  look.checksLeft -= text.length / CHARACTERS_A_CHECK;
  return text;
}

function isOf(type: Type, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return typeof value === type;
}

const NAMES: Record<Type, string> = {
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: "null",
};
/** The types that a schema accepts: all, where it names none. */
export const typesOf = (schema: JsonSchema | boolean): readonly Type[] =>
  typeof schema === "boolean" || schema.type === undefined ? types : [schema.type].flat();

/** Whether `now` refuses a value of a type that `before` accepts. */
export const isNarrower = (now: readonly Type[], before: readonly Type[]): boolean =>
  !before.every((type) => now.includes(type) || (type === "integer" && now.includes("number")));

export const namesOf = (allowed: readonly Type[]): string => allowed.map((type) => NAMES[type]).join(" or ");

function firstBroken(...rules: [broken: boolean, reason: string][]): string | null {
  return rules.find(([broken]) => broken)?.[1] ?? null;
}

function textReason(schema: JsonSchema, value: string, look: Look) {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  // Characters, which are one or two UTF-16 units each: counted only where that decides.
  if (value.length >= minLength * 2 && value.length <= maxLength) return null;
  look.checksLeft -= value.length / CHARACTERS_A_CHECK;
  const length = Array.from(value).length;
  return firstBroken(
    [length < minLength, `must have at least ${minLength} characters`],
    [length > maxLength, `must have at most ${maxLength} characters`],
  );
}

function numberReason(schema: JsonSchema, value: number) {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema;
  return firstBroken(
    [minimum !== undefined && value < minimum, `must be at least ${minimum}`],
    [maximum !== undefined && value > maximum, `must be at most ${maximum}`],
    [above !== undefined && value <= above, `must be greater than ${above}`],
    [below !== undefined && value >= below, `must be less than ${below}`],
    [
      multipleOf !== undefined && !Number.isInteger(value / multipleOf),
      `must be a multiple of ${multipleOf}`,
    ],
  );
}

function listReason({ minItems = 0, maxItems, uniqueItems }: JsonSchema, value: unknown[], look: Look) {
  const isUnique = () => new Set(value.map((item) => textOf(item, look))).size === value.length;
  return firstBroken(
    [value.length < minItems, `must have at least ${minItems} items`],
    [maxItems !== undefined && value.length > maxItems, `must have at most ${maxItems} items`],
    [uniqueItems === true && !isUnique(), "must not hold the same item twice"],
  );
}

function objectReason(schema: JsonSchema, value: Record<string, unknown>, look: Look) {
  const { minProperties = 0, maxProperties } = schema;
  if (minProperties === 0 && maxProperties === undefined) return null;
  const count = Object.keys(value).length;
  look.checksLeft -= count / NAMES_A_CHECK;
  return firstBroken(
    [count < minProperties, `must have at least ${minProperties} fields`],
    [maxProperties !== undefined && count > maxProperties, `must have at most ${maxProperties} fields`],
  );
}

function itemFaults(schema: JsonSchema, value: unknown[], path: Path, look: Look): ValidationIssue[] {
  const { prefixItems = [], items = true } = schema;
  return value.flatMap((item, index) => check(prefixItems[index] ?? items, item, [...path, index], look));
}

function propertyFaults(
  schema: JsonSchema,
  value: Record<string, unknown>,
  path: Path,
  look: Look,
): ValidationIssue[] {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  look.checksLeft -= required.length;
  const missing = look.checksLeft < 0 ? [] : required.filter((name) => !Object.hasOwn(value, name));
  return [
    ...missing.map((name) => ({ path: [...path, name], reason: "is required" })),
    ...Object.entries(value).flatMap(([name, item]) => {
      const property = Object.hasOwn(properties, name) ? properties[name]! : additionalProperties;
      return check(property, item, [...path, name], look);
    }),
  ];
}

function combinedFaults(schema: JsonSchema, value: unknown, path: Path, look: Look): ValidationIssue[] {
  const fits = (one: Schema) => check(one, value, path, look).length === 0;
  const wrong = (reason: string) => [{ path, reason }];
  return [
    ...(schema.$ref ? check(referred(schema.$ref, look.root), value, path, look) : []),
    ...(schema.allOf ?? []).flatMap((one) => check(one, value, path, look)),
    ...(schema.anyOf && !schema.anyOf.some(fits) ? wrong("has none of the forms that it may have") : []),
    ...(schema.oneOf && schema.oneOf.filter(fits).length !== 1
      ? wrong("must have exactly one of the forms that it may have")
      : []),
    ...(schema.not !== undefined && fits(schema.not) ? wrong("has a form that it must not have") : []),
  ];
}

const referred = (ref: string, root: JsonSchema): Schema => root.$defs![LOCAL_REF.exec(ref)![1]!]!;
