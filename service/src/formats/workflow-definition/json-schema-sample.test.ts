import assert from "node:assert/strict";
import { test } from "node:test";
import { type JsonSchema, validateValue } from "@stoa/evaluation/json-schema";
import fc from "fast-check";
import { generateSample } from "./json-schema-sample.ts";

const schemas: [schema: JsonSchema, sample: unknown][] = [
  [
    { type: "object", properties: { parts: { type: "array", items: { type: "string" } } } },
    { parts: ["sandbox"] },
  ],
  [{ type: "string", minLength: 9 }, "sandboxxx"],
  [{ type: "string", maxLength: 3 }, "san"],
  [{ enum: ["b", "a"] }, "b"],
  [{ const: { a: 1 } }, { a: 1 }],
  [{ type: "integer", minimum: 3, multipleOf: 5 }, 5],
  [{ type: "integer", exclusiveMinimum: 3 }, 4],
  [{ type: "number", exclusiveMinimum: 0, maximum: 0.5 }, 0.5],
  [{ type: "integer", maximum: -3 }, -3],
  [{ type: "integer", exclusiveMaximum: -3 }, -4],
  [{ type: ["null", "string"] }, null],
  [
    { type: "array", items: { type: "string" }, minItems: 3, uniqueItems: true },
    ["sandbox", "sandbox1", "sandbox2"],
  ],
  [{ type: "array", maxItems: 0 }, []],
  [{ type: "array", prefixItems: [{ type: "boolean" }, { type: "null" }], items: false }, [false, null]],
  [{ $ref: "#/$defs/a", $defs: { a: { type: "integer" } } }, 0],
  [{ allOf: [{ minimum: 2 }, { minimum: 7 }], type: "integer" }, 7],
  [{ oneOf: [{ type: "string" }, { type: "string", maxLength: 3 }] }, "sandbox"],
  [{ not: { type: "string" }, anyOf: [{ type: "string" }, { type: "integer" }] }, 0],
  [
    { type: "object", required: ["a"], additionalProperties: { type: "integer" }, minProperties: 2 },
    { a: 0, sandbox1: 0 },
  ],
  [{ type: "object", properties: { a: false, b: { type: "null" } }, required: ["b"] }, { b: null }],
  [{}, "sandbox"],
];

test("generateSample: a small valid value", () => {
  for (const [schema, sample] of schemas) {
    assert.deepEqual(generateSample(schema), sample, JSON.stringify(schema));
    assert.deepEqual(validateValue(schema, sample), []);
  }
});

test("generateSample, no valid or no small value: undefined, quickly", () => {
  let lists: JsonSchema = { type: "string" };
  for (let depth = 0; depth < 20; depth++) lists = { type: "array", items: lists, minItems: 1_000_000_000 };
  for (const schema of [
    lists,
    { not: {} },
    { type: "string", minLength: 1_000_000_000 },
    { enum: [1], type: "string" },
  ])
    assert.equal(generateSample(schema as JsonSchema), undefined);
});

const leaf = fc.oneof(
  fc.record({ type: fc.constant("string"), minLength: fc.nat(20) }),
  fc.record({ type: fc.constant("integer"), minimum: fc.integer({ min: -50, max: 50 }) }),
  fc.record({
    type: fc.constant("integer"),
    maximum: fc.integer({ min: -50, max: 50 }),
    multipleOf: fc.integer({ min: 1, max: 9 }),
  }),
  fc.constant({ type: "boolean" }),
  fc.constant({ enum: ["x", 2, null] }),
);
const { schema: anySchema } = fc.letrec<{ schema: object }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.record({ type: fc.constant("array"), items: tie("schema"), minItems: fc.nat(3) }),
    fc.record({
      type: fc.constant("object"),
      properties: fc.dictionary(fc.constantFrom("a", "b", "constructor"), tie("schema")),
      required: fc.subarray(["a", "b", "other"]),
    }),
    fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
  ),
}));

test("generateSample, any schema: a valid value", () => {
  fc.assert(
    fc.property(anySchema, (schema) => {
      assert.deepEqual(validateValue(schema as JsonSchema, generateSample(schema as JsonSchema)), []);
    }),
  );
});
