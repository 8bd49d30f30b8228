import assert from "node:assert/strict";
import { test } from "node:test";
import type { Variable } from "@stoa/contract";
import { checkVariables, deriveVariables } from "./variables.ts";

const topic: Variable = { name: "topic", required: true };

/** The reasons by field; empty: no problems. */
function problemsOf(declared: Variable[], given: Record<string, unknown>): Record<string, string> {
  const checked = checkVariables(declared, given);
  if ("values" in checked) return {};
  return Object.fromEntries(checked.problems.map(({ field, reason }) => [field, reason]));
}

function valuesOf(declared: Variable[], given: Record<string, unknown>): Record<string, string> {
  const checked = checkVariables(declared, given);
  assert.ok("values" in checked, JSON.stringify(checked));
  return Object.fromEntries(checked.values);
}

test("checkVariables: uses given values and defaults; optional variables may be missing", () => {
  const declared = [
    topic,
    { name: "tone", required: false, default: "kind" },
    { name: "note", required: false },
  ];
  assert.deepEqual(valuesOf(declared, { topic: "cats" }), { topic: "cats", tone: "kind" });
  assert.deepEqual(valuesOf(declared, { topic: "", tone: "dry", note: "x" }), {
    topic: "",
    tone: "dry",
    note: "x",
  });
});

test("checkVariables, required variable with a default: may be missing", () => {
  assert.deepEqual(valuesOf([{ ...topic, default: "dogs" }], {}), { topic: "dogs" });
});

test("checkVariables, several problems: one for each field", () => {
  const declared: Variable[] = [
    topic,
    { name: "tone", required: false, enum: ["kind", "dry"] },
    { name: "count", required: true },
    { name: "title", required: true, maxLength: 3 },
  ];
  assert.deepEqual(problemsOf(declared, { tone: "rude", count: 3, title: "four", extra: "x" }), {
    "variables.extra": "is no variable of this prompt",
    "variables.topic": "is required",
    "variables.tone": "must be one of kind, dry",
    "variables.count": "must be a string",
    "variables.title": "must have at most 3 characters",
  });
});

for (const value of [null, undefined, 1, true, [], {}, ["x"]]) {
  test(`checkVariables, ${JSON.stringify(value)}: must be a string`, () => {
    assert.deepEqual(problemsOf([topic], { topic: value }), { "variables.topic": "must be a string" });
  });
}

test("maxLength: counts characters, not UTF-16 code units", () => {
  const declared = [{ ...topic, maxLength: 2 }];
  assert.deepEqual(problemsOf(declared, { topic: "😀😀" }), {});
  assert.deepEqual(problemsOf(declared, { topic: "😀😀x" }), {
    "variables.topic": "must have at most 2 characters",
  });
});

test("a value over 32 KiB in UTF-8: refused", () => {
  assert.deepEqual(problemsOf([topic], { topic: "ä".repeat(16_384) }), {});
  assert.deepEqual(problemsOf([topic], { topic: `${"ä".repeat(16_384)}x` }), {
    "variables.topic": "must have at most 32768 bytes in UTF-8",
  });
});

test("all values over 256 KiB in UTF-8: refused, naming the largest", () => {
  const declared = Array.from({ length: 9 }, (_, index) => ({ name: `v${index}`, required: true }));
  const given = Object.fromEntries(declared.map(({ name }) => [name, "x".repeat(32_768)]));
  assert.deepEqual(problemsOf(declared, { ...given, v8: "" }), {});
  const problems = problemsOf(declared, { ...given, v0: "x", v8: "x" });
  assert.deepEqual(problems, {});
  assert.match(problemsOf(declared, given)["variables.v0"] ?? "", /all variables together/);
});

test("NUL and lone surrogates: refused", () => {
  for (const value of ["a\0b", "\ud800", "x\udc00"]) {
    assert.match(problemsOf([topic], { topic: value })["variables.topic"] ?? "", /must be text/);
  }
});

test("names of Object.prototype: treated like other names", () => {
  const given = JSON.parse('{"__proto__":"x","constructor":"y"}');
  assert.deepEqual(problemsOf([], given), {
    "variables.__proto__": "is no variable of this prompt",
    "variables.constructor": "is no variable of this prompt",
  });
  const declared = [
    { name: "constructor", required: true },
    { name: "__proto__", required: false },
  ];
  assert.deepEqual(problemsOf(declared, {}), { "variables.constructor": "is required" });
  const checked = checkVariables(declared, given);
  assert.ok("values" in checked);
  assert.deepEqual(
    [...checked.values],
    [
      ["constructor", "y"],
      ["__proto__", "x"],
    ],
  );
});

test("problems: never quote a value", () => {
  const declared: Variable[] = [
    { ...topic, enum: ["a"] },
    { name: "b", required: true, maxLength: 3 },
  ];
  const problems = problemsOf(declared, { topic: "secret", b: "secret", c: "secret" });
  assert.equal(Object.keys(problems).length, 3);
  assert.ok(!JSON.stringify(problems).includes("secret"));
});

test("deriveVariables: required without a default", () => {
  const messages = [
    { role: "system", content: "Be {{tone=kind}}." },
    { role: "user", content: "On {{topic}}, {{tone}}" },
  ] as const;
  assert.deepEqual(deriveVariables(messages), [
    { name: "tone", default: "kind", required: false },
    { name: "topic", required: true },
  ]);
});
