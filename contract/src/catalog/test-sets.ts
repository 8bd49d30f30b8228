import { MAX_FILE_CHARACTERS } from "@stoa/evaluation/limits";
import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";
import { visibleLine } from "../core/visible-text.ts";

export const MAX_TEST_CASES = 200;
const MAX_ASSERTIONS = 50;

const threshold = z.number().optional();
const weight = z.number().optional().describe("Above 0; 1 if absent");
const metric = z.string().max(100).optional().describe("A name under which results are grouped");
const type = z
  .string()
  .max(40)
  .describe(
    "A promptfoo type that needs no code, such as equals, contains, regex, is-json or llm-rubric, or assert-set. `not-` before a type negates it",
  );

const assertionFields = {
  type,
  value: z.unknown().describe("A text, a list of texts or a JSON Schema, as the type needs it"),
  threshold: threshold.describe("From 0 to 1; milliseconds for latency, USD for cost, edits for levenshtein"),
  weight,
  metric,
};

const Assertion = z.strictObject(assertionFields).partial({ value: true }).meta({ id: "TestAssertion" });

const AssertionOrSet = z
  .strictObject({
    ...assertionFields,
    assert: z.array(Assertion).min(1).max(MAX_ASSERTIONS).optional().describe("Those of an assert-set"),
  })
  .partial({ value: true })
  .meta({ id: "TestAssertionOrSet" });

const title = visibleLine(200);
const isHidden = z.boolean().describe("Buyers see only its title");
const input = z
  .record(z.string(), z.unknown())
  .describe("The variables of a prompt, each a string, or the input of a workflow");
const caseThreshold = threshold.describe(
  "The weighted score from which the case passes, above 0 and at most 1; absent: each assertion must pass",
);

export const TestCaseInput = z
  .strictObject({
    title,
    isHidden: isHidden.default(false),
    input: input.default({}),
    assert: z.array(AssertionOrSet).min(1).max(MAX_ASSERTIONS),
    threshold: caseThreshold,
  })
  .meta({ id: "TestCaseInput" });

const ShownTestCase = z
  .object({
    title: z.string(),
    isHidden,
    input: input.nullable().describe("null, like `assert`: it is hidden from you"),
    assert: z.array(AssertionOrSet).nullable(),
    threshold: caseThreshold,
  })
  .meta({ id: "TestCase" });

const TEST_SET_HASH =
  "Names its cases: equal cases of a product have equal hashes. HMAC-SHA256, under a secret salt, of the hexadecimal SHA-256 of their canonical JSON (RFC 8785). The proof of an evaluation publishes the salt if no case is hidden";
export const testSetHash = z.string().describe(TEST_SET_HASH);

export const TestSet = z
  .object({
    version: z.string().nullable().describe("The version of the product when it was stored"),
    hash: testSetHash.nullable().describe(`${TEST_SET_HASH}. null: the product has no test set`),
    visibleCases: z.int(),
    hiddenCases: z.int(),
    cases: z.array(ShownTestCase),
    createdAt: Timestamp.nullable(),
  })
  .meta({ id: "TestSet", description: "The cases by which a product is evaluated." });

export const testSetFormats = ["promptfoo-yaml", "promptfoo-csv", "agent-skills"] as const;
const format = z
  .enum(testSetFormats)
  .describe(
    "promptfoo's YAML or CSV, or the `evals.json` of Agent Skills. Templates other than {{name}} and assertions that run code are refused",
  );

export const TestSetImportResult = z
  .object({
    dryRun: z.boolean(),
    imported: z.int().describe("Number of cases that were stored, or would be by a dry run"),
    problems: z
      .array(
        z.object({
          line: z.int().nullable().describe("Where it begins in the file"),
          path: z.string().describe("The place in the file, such as tests[3].assert[0]"),
          reason: z.string(),
        }),
      )
      .describe("Every part of the file that was not imported"),
  })
  .meta({ id: "TestSetImportResult" });

export type TestSet = z.input<typeof TestSet>;
export type TestCaseInput = z.output<typeof TestCaseInput>;
export type TestSetImportResult = z.infer<typeof TestSetImportResult>;
export type TestSetFormat = (typeof testSetFormats)[number];

const params = z.object({ productId: z.string() });
const writes = { who: "member", permission: "products:write" } as const;

export const get = endpoint({
  name: "products.testSet.get",
  method: "GET",
  path: "/products/:productId/test-set",
  summary: "Read the test set of a product",
  description:
    "The author and administrators get every case. Everybody else who sees the product gets the visible cases, and of hidden ones the title.",
  access: { who: "visitor", permission: "products:read" },
  params,
  response: one(TestSet),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const replace = endpoint({
  name: "products.testSet.replace",
  method: "PUT",
  path: "/products/:productId/test-set",
  summary: "Replace the test set of a product",
  description: `For its author; at most ${MAX_TEST_CASES} cases. It belongs to the current version and to later ones until you replace it. Evaluations keep the test set with which they began. An empty list removes it.`,
  access: writes,
  params,
  request: json(z.strictObject({ cases: z.array(TestCaseInput).max(MAX_TEST_CASES) }), {
    cases: [
      {
        title: "Three lines",
        input: { topic: "rain" },
        assert: [
          { type: "icontains", value: "rain" },
          { type: "not-contains", value: "As an AI" },
        ],
      },
    ],
  }),
  response: one(TestSet),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const importFile = endpoint({
  name: "products.testSet.import",
  method: "POST",
  path: "/products/:productId/test-set/import",
  summary: "Replace the test set of a product by a file",
  description:
    "For its author. The cases that can be read replace the test set, and `problems` lists every other part of the file with its line. With `dryRun`, nothing is written. A file without a case that can be read is refused.",
  access: writes,
  params,
  request: json(
    z.strictObject({
      format,
      content: z.string().min(1).max(MAX_FILE_CHARACTERS),
      dryRun: z.boolean().default(false),
    }),
    {
      format: "promptfoo-yaml",
      content:
        "tests:\n  - description: Three lines\n    vars:\n      topic: rain\n    assert:\n      - type: icontains\n        value: rain\n",
    },
  ),
  response: one(TestSetImportResult),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const exportFile = endpoint({
  name: "products.testSet.export",
  method: "GET",
  path: "/products/:productId/test-set/export",
  summary: "Export the test set of a product as a file",
  description:
    "For its author and administrators. promptfoo's YAML holds every test set. CSV and `evals.json` refuse with 422 what they cannot hold.",
  access: { who: "member", permission: "products:read" },
  params,
  query: z.strictObject({ format: format.default("promptfoo-yaml") }),
  response: { kind: "file", types: ["application/yaml", "text/csv", "application/json"] },
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});
