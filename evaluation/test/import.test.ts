import assert from "node:assert/strict";
import { test } from "node:test";
import { generateCases, seeded } from "../../scripts/verdict-cases.ts";
import {
  checkTestCases,
  exportTestSet,
  type ImportProblem,
  importTestSet,
  type TestCase,
  TestSetExportError,
  type TestSetFormat,
} from "../src/index.ts";

const YAML = `# A configuration of promptfoo
description: Greetings
prompts: [prompt.txt]
providers: [openai:gpt-5]
defaultTest:
  vars: { tone: kind }
  assert:
    - type: latency
      threshold: 2000
scenarios: []
tests:
  - description: Greets
    vars:
      name: Ada
    threshold: 0.5
    assert:
      - type: contains
        value: "{{name}}"
        weight: 2
        metric: style
      - type: javascript
        value: output.length < 10
      - type: assert-set
        threshold: 0.5
        assert: [{ type: regex, value: "^Hello" }, { type: not-icontains, value: sorry }]
      - type: regex
        value: (a)\\1
      - type: contains
        value: "{{ name | upper }}"
  - vars: { name: [Bo, Cy] }
    options: { disableDefaultAsserts: true }
    metadata: { hidden: true }
    assert:
      - type: is-json
        value: '{"type": "object"}'
  - description: Only code
    options: { disableDefaultAsserts: true }
    assert:
      - type: contains
        value: x
        weight: 0
  - description: Free pass
    threshold: 0
    assert: [{ type: contains, value: x }]
  - description: Template
    vars: { name: "{% if x %}" }
    assert: [{ type: contains, value: x }]
  - file://more.yaml
  - description: Transformed
    options: { transform: output.trim() }
    assert: [{ type: contains, value: x }]
  - description: Merged
    vars: { <<: { a: b } }
    assert: [{ type: contains, value: x }]
  - description: Numbers
    vars: { 1: a }
    assert: [{ type: contains, value: x }]
`;

const places = (problems: ImportProblem[]) => problems.map(({ line, path }) => `${line} ${path}`);

test("importTestSet: promptfoo YAML: cases are read, and what cannot be is named by line", () => {
  const { cases, problems } = importTestSet("promptfoo-yaml", YAML);
  const latency = { type: "latency", threshold: 2000 };
  assert.deepEqual(cases, [
    {
      title: "Greets",
      isHidden: false,
      input: { tone: "kind", name: "Ada" },
      assert: [
        latency,
        { type: "contains", value: "{{name}}", weight: 2, metric: "style" },
        {
          type: "assert-set",
          assert: [
            { type: "regex", value: "^Hello" },
            { type: "not-icontains", value: "sorry" },
          ],
          threshold: 0.5,
        },
      ],
      threshold: 0.5,
    },
    ...["Bo", "Cy"].map((name, index) => ({
      title: `Case ${index + 2}`,
      isHidden: true,
      input: { tone: "kind", name },
      assert: [{ type: "is-json", value: { type: "object" } }],
    })),
  ]);
  assert.deepEqual(places(problems), [
    "10 scenarios",
    "21 tests[0].assert[1].type",
    "27 tests[0].assert[3].value",
    "29 tests[0].assert[4].value",
    "36 tests[2]",
    "41 tests[2].assert[0].weight",
    "43 tests[3].threshold",
    "46 tests[4].vars.name",
    "48 tests[5]",
    "50 tests[6].options.transform",
    "53 tests[7].vars",
    "56 tests[8].vars",
  ]);
  assert.ok(problems.every(({ reason }) => reason.length > 10));
});

const CSV = `name,__expected,__expected2,__description,__metric,__threshold,__metadata:hidden,__config:__expected2:threshold
Ada,"contains-any:""a, b"",c",bleu:Hello Ada,Greets,style,0.5,true,0.3
"Bo
Bo",fn:output,javascript:true,,,,,0.3
Cy,"is-json:{""type"":""object""}",not-levenshtein(3): x,Greets,,0,,1
Dy,g-eval:polite,Hello,,,,,1
Ey,cost(0.01),"grade: is kind",Twice,,,,0.9
Fy,"equals: contains:x",bleu(0.4):x,Twice,,,,0.9
{{x}},x,y,,,,,1
`;

test("importTestSet: promptfoo CSV: cells are read as promptfoo does, and refusals are named by line", () => {
  const { cases, problems } = importTestSet("promptfoo-csv", CSV);
  assert.deepEqual(cases, [
    {
      title: "Greets",
      isHidden: true,
      input: { name: "Ada" },
      assert: [
        { type: "contains-any", value: ["a, b", "c"], metric: "style" },
        { type: "bleu", value: "Hello Ada", metric: "style", threshold: 0.3 },
      ],
      threshold: 0.5,
    },
    {
      title: "Case 4",
      isHidden: false,
      input: { name: "Dy" },
      assert: [{ type: "equals", value: "Hello" }],
    },
    {
      title: "Twice",
      isHidden: false,
      input: { name: "Ey" },
      assert: [
        { type: "cost", threshold: 0.01 },
        { type: "llm-rubric", value: " is kind", threshold: 0.9 },
      ],
    },
    {
      title: "Twice (2)",
      isHidden: false,
      input: { name: "Fy" },
      assert: [{ type: "equals", value: "contains:x" }],
    },
  ]);
  assert.deepEqual(places(problems), [
    "3 row[2].__expected",
    "3 row[2].__expected2",
    "3 row[2]",
    "5 row[3].__threshold",
    "6 row[4].__expected",
    "8 row[6].__expected2",
    "9 row[7].name",
  ]);
});

const EVALS = `{
  "skill_name": "pdf",
  "evals": [
    {
      "id": 1,
      "prompt": "Fill the form",
      "expected_output": "A filled form",
      "files": [],
      "assertions": ["It has a name", 5]
    },
    { "id": "second", "prompt": "Read", "files": ["a.pdf"], "assertions": ["x"] },
    { "id": "third", "prompt": "Write", "assertions": ["Is {{good}}", "Is short"] },
    { "id": 4, "prompt": "", "expected_output": "x" }
  ]
}`;

test("importTestSet: evals.json: prompts become inputs and assertions judged ones", () => {
  const { cases, problems } = importTestSet("agent-skills", EVALS);
  const rubric = (value: string) => ({ type: "llm-rubric", value });
  assert.deepEqual(cases, [
    {
      title: "Case 1",
      isHidden: false,
      input: { prompt: "Fill the form" },
      assert: [{ ...rubric("A filled form"), metric: "expected_output" }, rubric("It has a name")],
    },
    { title: "third", isHidden: false, input: { prompt: "Write" }, assert: [rubric("Is short")] },
  ]);
  assert.deepEqual(places(problems), [
    "9 evals[0].assertions[1]",
    "11 evals[1].files",
    "12 evals[2].assertions[0]",
    "13 evals[3].prompt",
  ]);
});

const YAML_FAULTS: [text: string, reason: RegExp][] = [
  ["a: 1\na: 2\ntests: []", /unique/],
  ["tests: [", /not valid YAML/],
  ["- &a [*a]", /must be a test|contains itself/],
  ["- vars: &a { x: *a }\n  assert: [{ type: is-html }]", /contains itself/],
  ["- vars: { x: *missing }", /not valid YAML|not defined/],
  ["- vars: { __proto__: { x: 1 } }", /__proto__/],
  ["- vars: { ? [a] : 1 }", /key that is no text/],
  ["- vars: { x: !!binary aGk= }", /no text|not valid YAML|Unresolved/],
  ["--- 1\n--- 2", /not valid YAML/],
  ["tests: file://a.yaml", /list of tests/],
  ["tests: {}", /list of tests/],
  ["5", /list of tests/],
  ["", /list of tests/],
  ["defaultTest: file://a.yaml\ntests: []", /must be a test/],
  ["- vars: file://a.yaml\n  assert: [{ type: is-html }]", /must be an object/],
  ["- assert: is-html", /list with at least one/],
  ["- assert: [{ $ref: '#/templates/a' }]", /not known/],
  ["- vars: { x: file:///etc/passwd }\n  assert: [{ type: is-html }]", /file:/],
  [`- vars: { x: [${"'a', ".repeat(300)}] }\n  assert: [{ type: is-html }]`, /at most 200/],
  [`- vars: ${"{ a: ".repeat(3_000)}1${" }".repeat(3_000)}`, /deep/],
  [`- vars: { x: ${"[".repeat(200_000)}`, /deep|not valid/],
  [`x: ${"a".repeat(2_000_001)}`, /2000004 characters; at most 500000/],
];

/** Ten levels of ten aliases each. */
const BOMB = [
  "a0: &a0 [x,x,x,x,x,x,x,x,x,x]",
  ...Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(10)}]`),
  "tests: [{ vars: { x: *a9 }, assert: [{ type: is-html }] }]",
].join("\n");

test("importTestSet: bad files of each format end in a named problem", () => {
  for (const [text, reason] of [...YAML_FAULTS, [BOMB, /more than 50000 values/] as const]) {
    const { cases, problems } = importTestSet("promptfoo-yaml", text);
    assert.ok(cases.length === 0 || cases.length === 200, text.slice(0, 80));
    assert.match(problems.map((problem) => problem.reason).join("\n"), reason, text.slice(0, 80));
  }
  const csv = (text: string) =>
    importTestSet("promptfoo-csv", text).problems.map(({ line, reason }) => `${line} ${reason}`);
  assert.match(csv('a,b\n"x')[0]!, /^\d+ is not valid CSV/);
  assert.match(csv("a,b\nx")[0]!, /^2 is not valid CSV/);
  assert.match(csv("a,a\nx,y")[0]!, /two columns/);
  assert.match(csv("__proto__,b\nx,y")[0]!, /no column/);
  assert.match(csv("a,__prefix\nx,y")[0]!, /not supported/);
  assert.deepEqual(csv(""), []);
  const evals = (text: string) => importTestSet("agent-skills", text).problems[0]!;
  assert.match(evals("{").reason, /not valid JSON/);
  assert.match(evals("[]").reason, /list of evals/);
  assert.match(evals('{"evals": [5]}').reason, /object with prompt/);
  assert.match(evals(`{"evals": [${"[".repeat(50_000)}${"]".repeat(50_000)}]}`).reason, /deep/);
});

const withoutNewLines = (text: string) => text.replace(/\s+/g, " ").trim();

/** Generated cases that pass the check, with more than texts as input. */
function validCases(): TestCase[] {
  const random = seeded(9);
  const inputs = [
    {},
    { n: 1.5 },
    { list: ["a", "b"] },
    { deep: { a: [null, true, "yes", "2024-01-01", ""] } },
    { text: "a\n\tb: #c" },
  ];
  return generateCases(240, 9).flatMap(({ testCase }, index) => {
    const one = {
      ...testCase,
      title: withoutNewLines(testCase.title),
      isHidden: random() < 0.5,
      input: { ...testCase.input, ...inputs[index % inputs.length] },
    };
    const checked = checkTestCases([one]);
    return "cases" in checked ? checked.cases : [];
  });
}

/** Without what CSV cannot hold for sure; not all of the rest can be written either. */
const toPlain = ({ title, isHidden, input, assert: assertions, threshold }: TestCase): TestCase => ({
  title,
  isHidden,
  input: { word: input["word"] },
  assert: assertions
    .filter((assertion) => assertion.type !== "assert-set")
    .map(({ weight: _, ...assertion }) => assertion),
  ...(threshold !== undefined && { threshold }),
});

const inSlices = (cases: TestCase[]) => [cases.slice(0, 100), cases.slice(100, 300)];

test("exportTestSet: what each format holds comes back equal", () => {
  const cases = validCases();
  assert.ok(cases.length > 150, `${cases.length}`);
  for (const slice of inSlices(cases))
    assert.deepEqual(importTestSet("promptfoo-yaml", exportTestSet("promptfoo-yaml", slice)), {
      cases: slice,
      problems: [],
    });

  let written = 0;
  for (const one of cases.map(toPlain)) {
    try {
      const again = importTestSet("promptfoo-csv", exportTestSet("promptfoo-csv", [one]));
      assert.deepEqual(again.problems, []);
      assert.equal(again.cases.length, 1);
      // Files of equal cases are equal.
      assert.equal(exportTestSet("promptfoo-csv", again.cases), exportTestSet("promptfoo-csv", [one]));
      written++;
    } catch (error) {
      assert.ok(error instanceof TestSetExportError && error.problems.length > 0, `${error}`);
    }
  }
  assert.ok(written > 50, `${written}`);

  const { cases: evals } = importTestSet("agent-skills", EVALS);
  assert.deepEqual(importTestSet("agent-skills", exportTestSet("agent-skills", evals)).cases, evals);
});

test("exportTestSet: what a format cannot hold is named", () => {
  const base: TestCase = {
    title: "A",
    isHidden: false,
    input: { x: "1" },
    assert: [{ type: "contains", value: "x" }],
  };
  const refused: [TestSetFormat, Partial<TestCase>, RegExp][] = [
    [
      "promptfoo-csv",
      { assert: [{ type: "contains", value: "x", weight: 2 }] },
      /\[0\]\.assert cannot be written as CSV/,
    ],
    ["promptfoo-csv", { assert: [{ type: "contains", value: " x" }] }, /assert/],
    ["promptfoo-csv", { input: { x: 1 } }, /\[0\]\.input must be texts/],
    ["promptfoo-yaml", { input: { x: "{{y}}" } }, /\[0\]\.input\.x has a template/],
    ["promptfoo-yaml", { assert: [] }, /at least one assertion/],
    ["agent-skills", {}, /\[0\]\.input must be one text named prompt.*assert\[0\] is not an llm-rubric/],
  ];
  for (const [format, fields, reason] of refused)
    assert.throws(
      () => exportTestSet(format, [{ ...base, ...fields }]),
      (error: Error) => reason.test(error.message),
      `${reason}`,
    );
});
