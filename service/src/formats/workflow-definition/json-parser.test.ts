import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { parseJsonText } from "./json-parser.ts";

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

test("of JSON without doubled keys the value is that of JSON.parse()", () => {
  const anyJson = fc.json({ maxDepth: 3 });
  fc.assert(
    fc.property(anyJson, fc.constantFrom(undefined, 0, 1, "\t"), (json, indent) => {
      const text = JSON.stringify(JSON.parse(json), null, indent);
      fc.pre(!/__proto__|\\u0000|\\ud[89a-f]/.test(text));
      assert.deepEqual(parseJsonText(text), { value: JSON.parse(text) });
    }),
  );
});

test("exactly what JSON.parse() refuses is no JSON", () => {
  const pieces = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"b"',
    "0",
    "-1.5e3",
    "01",
    "tru",
    "true",
    "null",
    " ",
    "\n",
  ];
  const more = ["\t", "\v", '"\n"', '"\\x"', '"\\u00e4"', "'", "-", ".", "\u00a0", '"', "//"];
  const anyText = fc
    .array(fc.constantFrom(...pieces, ...pieces, ...more), { maxLength: 12 })
    .map((all) => all.join(""));
  fc.assert(
    fc.property(anyText, (text) => {
      const read = parseJsonText(text);
      const isRefused = "issues" in read && read.issues.some(({ reason }) => reason.startsWith("is no JSON"));
      assert.equal(isRefused, parsed(text) === undefined, text);
    }),
    { numRuns: runs(2_000) },
  );
});

test("a stray character is found at its line and column", () => {
  const text = JSON.stringify({ a: [1, { b: "x\ny" }], c: null, d: [] }, null, 2);
  fc.assert(
    fc.property(fc.nat(text.length - 1), (at) => {
      const before = text.slice(0, at);
      // Inside a string a character is text, and a number or word that it ends is complete.
      fc.pre((before.match(/"/g)?.length ?? 0) % 2 === 0 && !/[\w"]$/.test(before));
      const lines = before.split("\n");
      const read = parseJsonText(`${before}?${text.slice(at)}`);
      const place = `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
      assert.deepEqual(read, { issues: [{ path: [], reason: `is no JSON: see ${place}` }] });
    }),
  );
});

const places: [says: string, text: string, reason: string][] = [
  [
    "a comma too many",
    '{\n  "format": "workflow/1",\n  "input": {},,\n}',
    "is no JSON: see line 3, column 15",
  ],
  ["a comma before an end", '["a",\n]', "is no JSON: see line 2, column 1"],
  ["a value without quotes", '{"a": b}', "is no JSON: see line 1, column 7"],
  ["something after the end", "{} {}", "is no JSON: see line 1, column 4"],
  ["a string with a line break", '{"a":"\n"}', "is no JSON: see line 1, column 6"],
  ["the wrong end", "[}", "is no JSON: see line 1, column 2"],
  ["too early an end", '{"format":', "is no JSON: it ends too early"],
  ["nothing", " ", "is no JSON: it ends too early"],
  ["no JSON", "Step one: …", "is no JSON: see line 1, column 1"],
  ["5,001 members", `[${"1,".repeat(5_000)}1]`, "has more than 5,000 members and elements together"],
  ["65 levels", "[".repeat(65) + "]".repeat(65), "is nested deeper than 64 levels"],
];
for (const [says, text, reason] of places) {
  test(`${says} is told at its place`, () =>
    assert.deepEqual(parseJsonText(text), { issues: [{ path: [], reason }] }));
}

test("64 levels are read, and brackets in strings are text", () => {
  assert.ok("value" in parseJsonText("[".repeat(64) + "]".repeat(64)));
  assert.ok("value" in parseJsonText(`["${"[{".repeat(100)}\\"[{"]`));
});

const names: [says: string, text: string, path: (string | number)[], reason: RegExp][] = [
  ["a key that appears twice", '{"a":1,"b":[{"x":1,"x":2}]}', ["b", 0, "x"], /appears twice/],
  ["a key that is written in two ways", '{"a":1,"\\u0061":2}', ["a"], /appears twice/],
  ["a key of a prototype", '[0,{"__proto__":{}}]', [1, "__proto__"], /is not a name/],
  ["NUL", '{"steps":["\\u0000"]}', ["steps", 0], /must not contain NUL/],
  ["half of a pair", '{"a":"\\ud800"}', ["a"], /half of a surrogate pair/],
];
for (const [says, text, path, reason] of names) {
  test(`${says} is told by its path`, () => {
    const read = parseJsonText(text);
    assert.ok("issues" in read);
    assert.deepEqual(read.issues[0]!.path, path);
    assert.match(read.issues[0]!.reason, reason);
  });
}

test("the same key in different objects is none that appears twice", () => {
  assert.ok("value" in parseJsonText('[{"a":{"a":1}},{"a":2}]'));
});
