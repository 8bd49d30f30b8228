import assert from "node:assert/strict";
import { test } from "node:test";
import { findSchemaIssues, type JsonSchema, validateValue } from "@stoa/evaluation/json-schema";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";

const name = fc.constantFrom("a", "b", "c");
const scalar = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 1, 2, 3, 2.5, 1e21, "", "a", "ab", "😀", "e\u0301"),
  fc.integer({ min: -3, max: 6 }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const small = fc.integer({ min: 0, max: 3 });
const number = fc.constantFrom(-1, 0, 1, 2, 2.5);
const type = fc.constantFrom("string", "number", "integer", "boolean", "object", "array", "null");

/** Combines many supported keywords. */
const { schema } = fc.letrec<{ schema: JsonSchema | boolean }>((tie) => {
  const inner = tie("schema");
  const list = fc.array(inner, { minLength: 1, maxLength: 3 });
  return {
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.boolean(),
      fc.record(
        {
          type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
          enum: fc.uniqueArray(scalar, {
            minLength: 1,
            maxLength: 4,
            selector: (one) => JSON.stringify(one),
          }),
          const: value,
          minLength: small,
          maxLength: small,
          minimum: number,
          maximum: number,
          exclusiveMinimum: number,
          exclusiveMaximum: number,
          multipleOf: fc.constantFrom(0.5, 1, 2, 3),
          minItems: small,
          maxItems: small,
          uniqueItems: fc.boolean(),
          minProperties: small,
          maxProperties: small,
          required: fc.uniqueArray(name),
        },
        { requiredKeys: [] },
      ) as fc.Arbitrary<JsonSchema>,
      fc.record(
        {
          items: inner,
          prefixItems: list,
          properties: fc.dictionary(name, inner, { maxKeys: 3, noNullPrototype: true }),
          additionalProperties: inner,
          allOf: list,
          anyOf: list,
          oneOf: list,
          not: inner,
          $ref: fc.constantFrom("#/$defs/a", "#/$defs/b"),
        },
        { requiredKeys: [] },
      ) as fc.Arbitrary<JsonSchema>,
    ),
  };
});
const definitions = fc.record({ a: fc.record({ type }), b: fc.record({ not: fc.record({ type }) }) });

test("validateValue, any schema and value: agrees with Ajv", () => {
  const ajv = new Ajv2020({ strict: false, validateSchema: false });
  // With this option Ajv generates code with an undeclared variable for some schemas, such as `{ anyOf: [{ oneOf: [{ additionalProperties:
  // false }, false], not: true }, true] }`. It is only needed for `unevaluatedProperties`, which is not supported here.
  ajv.opts.unevaluated = false;
  let fitting = 0;
  fc.assert(
    fc.property(
      schema,
      definitions,
      fc.array(value, { minLength: 5, maxLength: 5 }),
      (any, $defs, values) => {
        const root = { ...(typeof any === "boolean" ? { not: !any } : any), $defs } as JsonSchema;
        assert.deepEqual(findSchemaIssues(root, []), []);
        const fits = ajv.compile(root);
        for (const one of values) {
          const issues = validateValue(root, one);
          assert.equal(issues.length === 0, fits(one), JSON.stringify({ root, one, issues }));
          if (issues.length === 0) fitting++;
        }
      },
    ),
    // Enough runs for a hundred valid values by chance.
    { numRuns: runs(500) },
  );
  assert.ok(fitting > 100, `only ${fitting} values fitted`);
});

const invalid: [schema: JsonSchema, value: unknown, ...issues: string[]][] = [
  [{ type: "string" }, 1, ": must be a string"],
  [{ type: ["integer", "null"] }, 1.5, ": must be an integer or null"],
  [{ enum: ["a", 2] }, "b", ": must be one of a, 2"],
  [{ maxLength: 2 }, "😀😀😀", ": must have at most 2 characters"],
  [{ minLength: 2 }, "😀", ": must have at least 2 characters"],
  [{ items: { type: "string" } }, ["a", 1, 2], "1: must be a string", "2: must be a string"],
  [
    { required: ["a"], properties: { b: { minimum: 1 } }, additionalProperties: false },
    { b: 0, c: 1 },
    ...["a: is required", "b: must be at least 1", "c: is not known here"],
  ],
  [{ anyOf: [{ type: "string" }, { type: "null" }] }, 1, ": must match at least one schema in anyOf"],
  [{ oneOf: [{ minimum: 1 }, { maximum: 5 }] }, 3, ": must match exactly one schema in oneOf"],
  [{ additionalProperties: false }, { toString: 1 }, "toString: is not known here"],
  [{ type: "integer" }, 1e21],
  [
    { uniqueItems: true },
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    ": must not contain the same item twice",
  ],
  [{ properties: { a: { $ref: "#/$defs/x" } }, $defs: { x: { type: "null" } } }, { a: 1 }, "a: must be null"],
];
for (const [schema, value, ...issues] of invalid) {
  test(`${JSON.stringify(value)} against ${JSON.stringify(schema)}: reports its issues`, () => {
    const problems = validateValue(schema, value).map(({ path, reason }) => `${path.join(".")}: ${reason}`);
    assert.deepEqual(problems, issues);
  });
}

test("reasons: never quote the value", () => {
  const schema: JsonSchema = { enum: ["a"], properties: { a: { maxLength: 1 } }, not: { type: "array" } };
  for (const secret of ["secret", { a: "secret" }, ["secret"]]) {
    const issues = validateValue(schema, secret);
    assert.ok(issues.length > 0);
    assert.ok(!JSON.stringify(issues.map(({ reason }) => reason)).includes("secret"));
  }
});

test("names of Object.prototype: treated like other names", () => {
  const schema = JSON.parse('{"required":["toString"],"properties":{"constructor":{"type":"string"}}}');
  assert.deepEqual(
    validateValue(schema, JSON.parse('{"constructor":1}')).map(({ path }) => path),
    [["toString"], ["constructor"]],
  );
});

test("the largest schemas: validated in bounded time", () => {
  const defs = Object.fromEntries(
    Array.from({ length: 9 }, (_, index) => [
      `d${index}`,
      { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
    ]),
  );
  const doubling = (depth: number) => ({
    $defs: { ...defs, d9: { type: "null" } },
    $ref: `#/$defs/d${9 - depth}`,
  });
  assert.deepEqual(findSchemaIssues(doubling(8), []), []);
  assert.match(findSchemaIssues(doubling(9), [])[0]!.reason, /more than 2000 schemas/);
  const { $ref, $defs } = doubling(8);
  const list = { items: { $ref }, $defs } as JsonSchema;
  const start = process.cpuUsage();
  assert.equal(validateValue(list, Array(100).fill("x")).length, 100);
  for (const schema of [list, { not: list, $defs } as JsonSchema]) {
    assert.deepEqual(validateValue(schema, Array(60_000).fill("x")), [
      { path: [], reason: "is too large to be validated against its schema" },
    ]);
  }
  const long = { sort: "x".repeat(250_000) };
  const schemaWithManyEnums: JsonSchema = {
    anyOf: Array.from({ length: 1_900 }, (_, index) => ({ enum: [{ index }, 1] })),
  };
  assert.match(validateValue(schemaWithManyEnums, long)[0]!.reason, /too large/);
  const ofAny = (schema: JsonSchema, count: number): JsonSchema => ({ anyOf: Array(count).fill(schema) });
  const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`n${index}`, 1]));
  const expensive: [JsonSchema, unknown][] = [
    [{ items: { required: Object.keys(wide) } }, Array(100).fill({})],
    [ofAny({ maxProperties: 1 }, 200), wide],
    [ofAny({ minLength: 200_000 }, 200), "x".repeat(150_000)],
  ];
  for (const [schema, value] of expensive) assert.match(validateValue(schema, value)[0]!.reason, /too large/);
  const manyChoices: JsonSchema = { items: { enum: Array.from({ length: 20_000 }, (_, index) => index) } };
  assert.deepEqual(validateValue(manyChoices, Array(60_000).fill(7)), []);
  const { user, system } = process.cpuUsage(start);
  assert.ok(user + system < 3_000_000, `${(user + system) / 1_000} ms`);
});

const bounds: [schema: JsonSchema, fits: unknown, isPast: unknown][] = [
  [{ maxLength: 2 }, "ab", "abc"],
  [{ minLength: 2 }, "ab", "a"],
  [{ maximum: 2 }, 2, 2.5],
  [{ minimum: 2 }, 2, 1.5],
  [{ exclusiveMaximum: 2 }, 1.5, 2],
  [{ exclusiveMinimum: 2 }, 2.5, 2],
  [{ maxItems: 1 }, [1], [1, 2]],
  [{ minItems: 1 }, [1], []],
  [{ maxProperties: 1 }, { a: 1 }, { a: 1, b: 1 }],
  [{ minProperties: 1 }, { a: 1 }, {}],
];

test("limits: inclusive or exclusive as specified", () => {
  for (const [schema, fits, isPast] of bounds)
    assert.deepEqual(
      [fits, isPast].map((value) => validateValue(schema, value).length),
      [0, 1],
      JSON.stringify(schema),
    );
});

test("an enum that is empty or has duplicates: an issue", () => {
  for (const values of [[], [1, 1]])
    assert.deepEqual(findSchemaIssues({ enum: values }, []), [
      { path: ["enum"], reason: "must be a list of different values" },
    ]);
});
