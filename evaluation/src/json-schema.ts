import { canonicalJson } from "./canonical-json.ts";

type Path = readonly PropertyKey[];

/** What does not fit, and where. */
export interface SchemaIssue {
  path: Path;
  reason: string;
}

/**
 * A subset of JSON Schema 2020-12, interpreted and never compiled, because authors are untrusted. No `pattern`: a regular expression can
 * block the process. `$ref` only to `$defs` without cycles, so that validation ends.
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
/** With every `$ref` expanded. */
const MAX_SCHEMAS = 2_000;
const MAX_DEFS = 100;
/** Per value: a long list against many schemas could block the process for minutes. */
const MAX_CHECKS = 200_000;
const CHARACTERS_PER_CHECK = 100;
/** Names are counted, not read. */
const NAMES_PER_CHECK = 10;
const MAX_SHOWN_CHOICES = 50;

interface SchemaWalk {
  issues: SchemaIssue[];
  parts: Map<string, SchemaPart>;
  part: SchemaPart;
}

/** An entry of `$defs`, or the schema itself under the empty name. */
interface SchemaPart {
  schemas: number;
  refs: { name: string; path: Path }[];
}

type KeywordCheck = (value: unknown, path: Path, walk: SchemaWalk) => void;

const createCheck =
  (test: (value: unknown) => boolean, reason: string): KeywordCheck =>
  (value, path, { issues }) => {
    if (!test(value)) issues.push({ path, reason });
  };

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown) => typeof value === "number" && Number.isFinite(value);
const isType = (value: unknown) => types.some((type) => type === value);
const isSet = (value: unknown): value is unknown[] =>
  Array.isArray(value) && new Set(value.map(canonicalJson)).size === value.length;

const anything: KeywordCheck = () => {};
const text = createCheck(isText, "must be a string");
const flag = createCheck((value) => typeof value === "boolean", "must be true or false");
const number = createCheck(isNumber, "must be a number");
const count = createCheck(
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  "must be 0 or a greater integer",
);

const schemas: KeywordCheck = (value, path, walk) => {
  if (!Array.isArray(value) || value.length === 0) {
    walk.issues.push({ path, reason: "must be a list with at least one schema" });
  } else for (const [index, item] of value.entries()) walkSchema(item, [...path, index], walk);
};

const namedSchemas: KeywordCheck = (value, path, walk) => {
  if (!isObject(value)) walk.issues.push({ path, reason: "must be an object of schemas" });
  else for (const [name, item] of Object.entries(value)) walkSchema(item, [...path, name], walk);
};

const reference: KeywordCheck = (value, path, { issues, part }) => {
  const name = typeof value === "string" ? LOCAL_REF.exec(value)?.[1] : undefined;
  if (name === undefined) issues.push({ path, reason: "must be of the form #/$defs/name" });
  else part.refs.push({ name, path });
};

const KEYWORDS = new Map<string, KeywordCheck>(
  Object.entries({
    $schema: createCheck((value) => value === DRAFT, `must be ${DRAFT}`),
    $comment: text,
    title: text,
    description: text,
    default: anything,
    examples: createCheck(Array.isArray, "must be a list"),
    deprecated: flag,
    format: text,
    type: createCheck(
      (value) => isType(value) || (isSet(value) && value.length > 0 && value.every(isType)),
      `must be one or several of ${types.join(", ")}`,
    ),
    enum: createCheck((value) => isSet(value) && value.length > 0, "must be a list of different values"),
    const: anything,
    minLength: count,
    maxLength: count,
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
    multipleOf: createCheck((value) => isNumber(value) && (value as number) > 0, "must be a number above 0"),
    items: walkSchema,
    prefixItems: schemas,
    minItems: count,
    maxItems: count,
    uniqueItems: flag,
    properties: namedSchemas,
    required: createCheck(
      (value) => isSet(value) && value.every(isText),
      "must be a list of different names",
    ),
    additionalProperties: walkSchema,
    minProperties: count,
    maxProperties: count,
    allOf: schemas,
    anyOf: schemas,
    oneOf: schemas,
    not: walkSchema,
    $ref: reference,
  } satisfies Record<string, KeywordCheck>),
);

const UNSUPPORTED_KEYWORDS = new Map([
  [
    "pattern",
    "is not supported, because a regular expression can run forever: use enum, maxLength or a step",
  ],
  ["$defs", "is allowed only at the top of a schema"],
]);

/** Returns the reasons why an object is not a supported schema. */
export function findSchemaIssues(schema: unknown, path: Path): SchemaIssue[] {
  const part: SchemaPart = { schemas: 0, refs: [] };
  const walk: SchemaWalk = { issues: [], parts: new Map([["", part]]), part };
  if (isObject(schema)) {
    const { $defs, ...top } = schema;
    walkSchema(top, path, walk);
    if ($defs !== undefined) walkDefs($defs, [...path, "$defs"], walk);
  } else walkSchema(schema, path, walk);
  return [...walk.issues, ...findReferenceIssues(walk.parts, path)];
}

function walkDefs($defs: unknown, path: Path, walk: SchemaWalk): void {
  if (!isObject($defs) || Object.keys($defs).length > MAX_DEFS) {
    walk.issues.push({ path, reason: `must be an object of at most ${MAX_DEFS} schemas` });
    return;
  }
  for (const [name, item] of Object.entries($defs)) {
    beginPart(walk, name);
    walkSchema(item, [...path, name], walk);
  }
}

function beginPart(walk: SchemaWalk, name: string): void {
  walk.part = { schemas: 0, refs: [] };
  walk.parts.set(name, walk.part);
}

function walkSchema(schema: unknown, path: Path, walk: SchemaWalk): void {
  walk.part.schemas++;
  if (typeof schema === "boolean") return;
  if (!isObject(schema)) {
    walk.issues.push({ path, reason: "must be a schema: an object, true or false" });
    return;
  }
  for (const [keyword, value] of Object.entries(schema)) {
    const at = [...path, keyword];
    const check = KEYWORDS.get(keyword);
    if (check) check(value, at, walk);
    else
      walk.issues.push({
        path: at,
        reason: UNSUPPORTED_KEYWORDS.get(keyword) ?? "is not a supported JSON Schema keyword",
      });
  }
}

function findReferenceIssues(parts: ReadonlyMap<string, SchemaPart>, path: Path): SchemaIssue[] {
  const issues: SchemaIssue[] = [];
  const sizes = new Map<string, number>();
  // With every `$ref` expanded. A cycle ends where it closes.
  const sizeOf = (name: string, part: SchemaPart, trail: readonly string[]): number => {
    const known = sizes.get(name);
    if (known !== undefined) return known;
    let size = part.schemas;
    for (const ref of part.refs) {
      const target = parts.get(ref.name);
      if (!target) issues.push({ path: ref.path, reason: `names ${ref.name}, which $defs lacks` });
      else if (ref.name === name || trail.includes(ref.name))
        issues.push({ path: ref.path, reason: "is circular: a schema cannot contain itself" });
      else size += sizeOf(ref.name, target, [...trail, name]);
    }
    sizes.set(name, size);
    return size;
  };
  // Unused entries can have issues, too.
  for (const [name, part] of parts) sizeOf(name, part, []);
  if ((sizes.get("") ?? 0) > MAX_SCHEMAS) {
    issues.push({ path, reason: `holds more than ${MAX_SCHEMAS} schemas, with each $ref written out` });
  }
  return issues;
}

/** The defaults share one limit of checks. */
export function findDefaultIssues(schema: JsonSchema, path: Path): SchemaIssue[] {
  const validation = startValidation(schema);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    if (typeof property === "boolean" || property.default === undefined) return [];
    const [problem] = validateAgainst(property, property.default, validation);
    if (!problem) return [];
    return [{ path: [...path, "properties", name, "default", ...problem.path], reason: problem.reason }];
  });
}

/** The schema must have no issues. No reason quotes the value. */
export const validateValue = (schema: JsonSchema, value: unknown): SchemaIssue[] =>
  validateAgainst(schema, value, startValidation(schema));

function validateAgainst(schema: Schema, value: unknown, validation: Validation): SchemaIssue[] {
  const issues = checkValue(schema, value, [], validation);
  // Issues of an incomplete validation may be wrong, and under `not` they are inverted.
  return validation.checksLeft < 0
    ? [{ path: [], reason: "is too large to be validated against its schema" }]
    : issues;
}

interface Validation {
  root: JsonSchema;
  checksLeft: number;
  choicesOf: (schema: JsonSchema) => Choices | null;
}

const startValidation = (root: JsonSchema): Validation => ({
  root,
  checksLeft: MAX_CHECKS,
  choicesOf: createChoiceCache(),
});

/** Canonical texts of the allowed values, and the reason for other values. */
interface Choices {
  texts: ReadonlySet<string>;
  reason: string;
}

/** One schema may apply to each item of a long list. */
function createChoiceCache(): Validation["choicesOf"] {
  const cache = new Map<JsonSchema, Choices>();
  return (schema) => {
    if (!schema.enum && schema.const === undefined) return null;
    let own = cache.get(schema);
    if (!own) {
      own = toChoices(listAllowedValues(schema));
      cache.set(schema, own);
    }
    return own;
  };
}

function toChoices(allowed: readonly unknown[]): Choices {
  const listed = allowed.slice(0, MAX_SHOWN_CHOICES).map((one) => (isText(one) ? one : canonicalJson(one)));
  const more = allowed.length > listed.length ? ` and ${allowed.length - listed.length} others` : "";
  const reason = `must be ${allowed.length === 1 ? "" : "one of "}${listed.join(", ")}${more}`;
  return { texts: new Set(allowed.map(canonicalJson)), reason };
}

function listAllowedValues({ enum: several, const: one }: JsonSchema): unknown[] {
  if (one === undefined) return several ?? [];
  return !several || several.some((each) => canonicalJson(each) === canonicalJson(one)) ? [one] : [];
}

function checkValue(schema: Schema, value: unknown, path: Path, validation: Validation): SchemaIssue[] {
  if (validation.checksLeft-- <= 0) return [];
  if (schema === true) return [];
  if (schema === false) return [{ path, reason: "is not known here" }];
  const reason = findReason(schema, value, validation);
  // Further checks would only repeat that the type is wrong.
  if (reason) return [{ path, reason }];
  return [
    ...(Array.isArray(value) ? checkItems(schema, value, path, validation) : []),
    ...(isObject(value) ? checkProperties(schema, value, path, validation) : []),
    ...checkCombinations(schema, value, path, validation),
  ];
}

function findReason(schema: JsonSchema, value: unknown, validation: Validation): string | null {
  const allowed = schema.type === undefined ? null : [schema.type].flat();
  if (allowed && !allowed.some((type) => isOfType(type, value))) return `must be ${describeTypes(allowed)}`;
  const choices = validation.choicesOf(schema);
  if (choices && !choices.texts.has(toComparableText(value, validation))) return choices.reason;
  if (typeof value === "string") return findStringReason(schema, value, validation);
  if (typeof value === "number") return findNumberReason(schema, value);
  if (Array.isArray(value)) return findArrayReason(schema, value, validation);
  return isObject(value) ? findObjectReason(schema, value, validation) : null;
}

/** Counts a long text as many checks, because its canonical form takes time. */
function toComparableText(value: unknown, validation: Validation): string {
  const text = canonicalJson(value);
  validation.checksLeft -= text.length / CHARACTERS_PER_CHECK;
  return text;
}

function isOfType(type: Type, value: unknown): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return typeof value === type;
}

const TYPE_LABELS: Record<Type, string> = {
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: "null",
};
/** All types if the schema names none. */
export const listTypes = (schema: JsonSchema | boolean): readonly Type[] =>
  typeof schema === "boolean" || schema.type === undefined ? types : [schema.type].flat();

/** Whether `now` refuses a type that `before` accepts. */
export const isNarrower = (now: readonly Type[], before: readonly Type[]): boolean =>
  !before.every((type) => now.includes(type) || (type === "integer" && now.includes("number")));

export const describeTypes = (allowed: readonly Type[]): string =>
  allowed.map((type) => TYPE_LABELS[type]).join(" or ");

function findFirstBroken(...rules: [broken: boolean, reason: string][]): string | null {
  return rules.find(([broken]) => broken)?.[1] ?? null;
}

function findStringReason(schema: JsonSchema, value: string, validation: Validation) {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
  // A character has one or two UTF-16 code units: count characters only if that decides.
  if (value.length >= minLength * 2 && value.length <= maxLength) return null;
  validation.checksLeft -= value.length / CHARACTERS_PER_CHECK;
  const length = Array.from(value).length;
  return findFirstBroken(
    [length < minLength, `must have at least ${minLength} characters`],
    [length > maxLength, `must have at most ${maxLength} characters`],
  );
}

function findNumberReason(schema: JsonSchema, value: number) {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema;
  return findFirstBroken(
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

function findArrayReason(
  { minItems = 0, maxItems, uniqueItems }: JsonSchema,
  value: unknown[],
  validation: Validation,
) {
  const isUnique = () =>
    new Set(value.map((item) => toComparableText(item, validation))).size === value.length;
  return findFirstBroken(
    [value.length < minItems, `must have at least ${minItems} items`],
    [maxItems !== undefined && value.length > maxItems, `must have at most ${maxItems} items`],
    [uniqueItems === true && !isUnique(), "must not contain the same item twice"],
  );
}

function findObjectReason(schema: JsonSchema, value: Record<string, unknown>, validation: Validation) {
  const { minProperties = 0, maxProperties } = schema;
  if (minProperties === 0 && maxProperties === undefined) return null;
  const count = Object.keys(value).length;
  validation.checksLeft -= count / NAMES_PER_CHECK;
  return findFirstBroken(
    [count < minProperties, `must have at least ${minProperties} fields`],
    [maxProperties !== undefined && count > maxProperties, `must have at most ${maxProperties} fields`],
  );
}

function checkItems(schema: JsonSchema, value: unknown[], path: Path, validation: Validation): SchemaIssue[] {
  const { prefixItems = [], items = true } = schema;
  return value.flatMap((item, index) =>
    checkValue(prefixItems[index] ?? items, item, [...path, index], validation),
  );
}

function checkProperties(
  schema: JsonSchema,
  value: Record<string, unknown>,
  path: Path,
  validation: Validation,
): SchemaIssue[] {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  validation.checksLeft -= required.length;
  const missing = validation.checksLeft < 0 ? [] : required.filter((name) => !Object.hasOwn(value, name));
  return [
    ...missing.map((name) => ({ path: [...path, name], reason: "is required" })),
    ...Object.entries(value).flatMap(([name, item]) => {
      const property = ownValue(properties, name) ?? additionalProperties;
      return checkValue(property, item, [...path, name], validation);
    }),
  ];
}

function checkCombinations(
  schema: JsonSchema,
  value: unknown,
  path: Path,
  validation: Validation,
): SchemaIssue[] {
  const fits = (one: Schema) => checkValue(one, value, path, validation).length === 0;
  const wrong = (reason: string) => [{ path, reason }];
  return [
    ...(schema.$ref ? checkValue(resolveRef(schema.$ref, validation.root), value, path, validation) : []),
    ...(schema.allOf ?? []).flatMap((one) => checkValue(one, value, path, validation)),
    ...(schema.anyOf && !schema.anyOf.some(fits) ? wrong("must match at least one schema in anyOf") : []),
    ...(schema.oneOf && schema.oneOf.filter(fits).length !== 1
      ? wrong("must match exactly one schema in oneOf")
      : []),
    ...(schema.not !== undefined && fits(schema.not) ? wrong("must not match the schema in not") : []),
  ];
}

/** For a schema without issues. */
export function resolveRef(ref: string, { $defs = {} }: JsonSchema): Schema {
  const [, name = ""] = LOCAL_REF.exec(ref) ?? [];
  const found = ownValue($defs, name);
  if (found === undefined) throw new Error(`${ref} is missing`);
  return found;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Ignores inherited properties such as `constructor`. */
const ownValue = <T>(values: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;
