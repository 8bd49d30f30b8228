import assert from "node:assert/strict";
import { test } from "node:test";
import { checkTestCases, type Problem } from "../src/index.ts";

const caseWith = (fields: object) => ({
  title: "Greets",
  isHidden: false,
  input: { name: "Ada", list: ["a"], empty: "" },
  assert: [{ type: "contains", value: "Hello" }],
  ...fields,
});

function problemsOf(...cases: unknown[]): Problem[] {
  const result = checkTestCases(cases, {
    checkSchema: (schema) => ("pattern" in (schema as object) ? ["pattern is not supported"] : []),
  });
  return "problems" in result ? result.problems : [];
}

test("checkTestCases: valid cases come back with their known fields", () => {
  const cases = [
    caseWith({
      threshold: 0.5,
      assert: [{ type: "not-regex", value: "^{{name}}", weight: 2, metric: "style" }],
    }),
    caseWith({
      title: "Sets",
      isHidden: true,
      assert: [
        {
          type: "assert-set",
          threshold: 0.5,
          assert: [
            { type: "is-json", value: { type: "object" } },
            { type: "latency", threshold: 900 },
          ],
        },
        { type: "llm-rubric", value: "is kind to {{name}}" },
      ],
    }),
  ];
  assert.deepEqual(checkTestCases(cases), { cases });
  assert.deepEqual(checkTestCases([{ ...cases[0], title: " Greets " }]), { cases: [cases[0]] });
});

const assertion = (fields: object) => caseWith({ assert: [fields] });
const set = (fields: object) =>
  assertion({ type: "assert-set", assert: [{ type: "contains", value: "x" }], ...fields });

const refusals: [problem: unknown, path: string, reason: RegExp][] = [
  ["text", "[0]", /object with title/],
  [caseWith({ title: " " }), "[0].title", /not empty/],
  [caseWith({ title: "x".repeat(201) }), "[0].title", /at most 200/],
  [caseWith({ title: "a\u202eb" }), "[0].title", /invisible/],
  [caseWith({ title: "a\nb" }), "[0].title", /one line/],
  [caseWith({ isHidden: "yes" }), "[0].isHidden", /true or false/],
  [caseWith({ weight: 1 }), "[0].weight", /not known; the fields are title/],
  [caseWith({ input: [] }), "[0].input", /object/],
  [caseWith({ input: JSON.parse('{"__proto__": 1}') }), "[0].input.__proto__", /no variable/],
  [caseWith({ input: { a: { b: Number.NaN } } }), "[0].input.a", /JSON cannot hold/],
  [caseWith({ input: { a: "x".repeat(100_000) } }), "[0].input.a", /100002 bytes; at most 100000/],
  [caseWith({ input: { a: "file:///etc/passwd" } }), "[0].input.a", /file:\/\//],
  [caseWith({ assert: [] }), "[0].assert", /at least one/],
  [caseWith({ assert: Array(51).fill({ type: "is-html" }) }), "[0].assert", /51 assertions; at most 50/],
  [caseWith({ threshold: 0 }), "[0].threshold", /above 0, at most 1; 0 would always pass/],
  [caseWith({ threshold: 1.1 }), "[0].threshold", /at most 1/],
  [assertion({ type: "contain", value: "x" }), "[0].assert[0].type", /one of equals, contains, .*assert-set/],
  [assertion({ type: "javascript", value: "true" }), "[0].assert[0].type", /no code/],
  [assertion({ type: "not-webhook", value: "x" }), "[0].assert[0].type", /no code/],
  [assertion({ type: "contains", value: "x", weight: 0 }), "[0].assert[0].weight", /0 would always pass/],
  [assertion({ type: "bleu", value: "x", threshold: 0 }), "[0].assert[0].threshold", /0 would always pass/],
  [
    assertion({ type: "assert-set", threshold: 0, assert: [{ type: "contains", value: "x" }] }),
    "[0].assert[0].threshold",
    /0 would always pass/,
  ],
  [assertion({ type: "contains", value: "x", threshold: 1 }), "[0].assert[0].threshold", /no effect/],
  [assertion({ type: "contains", value: "x", transform: "y" }), "[0].assert[0].transform", /not known/],
  [assertion({ type: "contains", value: "x", metric: "{{name}}" }), "[0].assert[0].metric", /template/],
  [assertion({ type: "contains" }), "[0].assert[0].value", /not empty/],
  [assertion({ type: "contains", value: "{{empty}}" }), "[0].assert[0].value", /not empty/],
  [
    assertion({ type: "contains", value: "{{other}}" }),
    "[0].assert[0].value",
    /variable other, which is not/,
  ],
  [assertion({ type: "contains", value: "{{list}}" }), "[0].assert[0].value", /not text/],
  [assertion({ type: "contains", value: "{{ name | upper }}" }), "[0].assert[0].value", /only {{variable}}/],
  [assertion({ type: "contains", value: "{% if name %}" }), "[0].assert[0].value", /only {{variable}}/],
  [assertion({ type: "equals", value: "file://a.txt" }), "[0].assert[0].value", /no file is read/],
  [assertion({ type: "equals" }), "[0].assert[0].value", /required/],
  [assertion({ type: "contains-all", value: ["a", ""] }), "[0].assert[0].value", /not empty/],
  [assertion({ type: "contains-all", value: ["{{empty}}"] }), "[0].assert[0].value", /not empty/],
  [assertion({ type: "contains-any", value: ["a", "package:b"] }), "[0].assert[0].value[1]", /no file/],
  [assertion({ type: "contains-any", value: '"a' }), "[0].assert[0].value", /quotation mark/],
  [assertion({ type: "regex", value: "(a" }), "[0].assert[0].value", /invalid/],
  [assertion({ type: "regex", value: "(?=a)" }), "[0].assert[0].value", /RE2/],
  [assertion({ type: "regex", value: "(a)\\1" }), "[0].assert[0].value", /RE2/],
  [assertion({ type: "regex", value: "(?:a{90}){90}" }), "[0].assert[0].value", /repeat|too large/],
  [assertion({ type: "is-json", value: "{}" }), "[0].assert[0].value", /JSON Schema/],
  [
    assertion({ type: "is-json", value: { pattern: "x" } }),
    "[0].assert[0].value",
    /pattern is not supported/,
  ],
  [
    assertion({ type: "is-sql", value: { databaseType: "PostgreSQL" } }),
    "[0].assert[0].value.databaseType",
    /MySQL/,
  ],
  [
    assertion({ type: "is-sql", value: { allowedTables: ["("] } }),
    "[0].assert[0].value.allowedTables[0]",
    /invalid/,
  ],
  [assertion({ type: "is-xml", value: [] }), "[0].assert[0].value", /element paths/],
  [assertion({ type: "latency" }), "[0].assert[0].threshold", /required/],
  [assertion({ type: "is-html", value: "x" }), "[0].assert[0].value", /no effect/],
  [set({ assert: [] }), "[0].assert[0].assert", /at least one/],
  [set({ weight: 0 }), "[0].assert[0].weight", /always pass/],
  [set({ assert: [{ type: "assert-set", assert: [] }] }), "[0].assert[0].assert[0].type", /must be one of/],
  [
    set({
      assert: [
        { type: "contains", value: "x" },
        { type: "llm-rubric", value: "x" },
      ],
    }),
    "[0].assert[0].assert",
    /two sets/,
  ],
];

test("checkTestCases: each refused field is named with what to do", () => {
  for (const [refused, path, reason] of refusals) {
    const found = problemsOf(refused).find((problem) => problem.path === path);
    assert.match(found?.reason ?? "", reason, `${path}: ${JSON.stringify(problemsOf(refused))}`);
  }
  assert.deepEqual(problemsOf(caseWith({}), caseWith({}))[0]?.path, "[1].title");
  const cases = Array.from({ length: 201 }, (_, index) => caseWith({ title: `Case ${index}` }));
  assert.match(problemsOf(...cases)[0]!.reason, /201 cases; at most 200/);
  assert.equal(problemsOf(...Array(200).fill({})).length, 100);
});

test("checkTestCases: a deep, cyclic or wide value ends in a problem", () => {
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const deep = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`) as unknown;
  for (const value of [cycle, deep]) {
    assert.match(problemsOf(caseWith({ input: { value } }))[0]!.reason, /levels deep/);
    assert.match(problemsOf(assertion({ type: "equals", value }))[0]!.reason, /levels deep/);
  }
});
