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

test("parseJsonText, valid JSON without duplicate keys: the value of JSON.parse()", () => {
  const anyJson = fc.json({ maxDepth: 3 });
  fc.assert(
    fc.property(anyJson, fc.constantFrom(undefined, 0, 1, "\t"), (json, indent) => {
      const text = JSON.stringify(JSON.parse(json), null, indent);
      fc.pre(!/__proto__|\\u0000|\\ud[89a-f]/.test(text));
      assert.deepEqual(parseJsonText(text), { value: JSON.parse(text) });
    }),
  );
});

test("parseJsonText: refuses exactly what JSON.parse() refuses", () => {
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
      const isRefused =
        "issues" in read && read.issues.some(({ reason }) => reason.startsWith("is not valid JSON"));
      assert.equal(isRefused, parsed(text) === undefined, text);
    }),
    { numRuns: runs(2_000) },
  );
});

test("a stray character: reported with line and column", () => {
  const text = JSON.stringify({ a: [1, { b: "x\ny" }], c: null, d: [] }, null, 2);
  fc.assert(
    fc.property(fc.nat(text.length - 1), (at) => {
      const before = text.slice(0, at);
      // Inside a string the character is text; after a number or word, the token ends first.
      fc.pre((before.match(/"/g)?.length ?? 0) % 2 === 0 && !/[\w"]$/.test(before));
      const lines = before.split("\n");
      const read = parseJsonText(`${before}?${text.slice(at)}`);
      const place = `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
      assert.deepEqual(read, { issues: [{ path: [], reason: `is not valid JSON: see ${place}` }] });
    }),
  );
});

const places: [says: string, text: string, reason: string][] = [
  [
    "an extra comma",
    '{\n  "format": "workflow/1",\n  "input": {},,\n}',
    "is not valid JSON: see line 3, column 15",
  ],
  ["a trailing comma", '["a",\n]', "is not valid JSON: see line 2, column 1"],
  ["a value without quotes", '{"a": b}', "is not valid JSON: see line 1, column 7"],
  ["text after the end", "{} {}", "is not valid JSON: see line 1, column 4"],
  ["a string with a line break", '{"a":"\n"}', "is not valid JSON: see line 1, column 6"],
  ["a wrong closing bracket", "[}", "is not valid JSON: see line 1, column 2"],
  ["an early end", '{"format":', "is not valid JSON: it ends too early"],
  ["an empty text", " ", "is not valid JSON: it ends too early"],
  ["a text that is not JSON", "Step one: …", "is not valid JSON: see line 1, column 1"],
  ["5,001 members", `[${"1,".repeat(5_000)}1]`, "has more than 5,000 members and elements together"],
  ["65 levels", "[".repeat(65) + "]".repeat(65), "is nested deeper than 64 levels"],
];
for (const [says, text, reason] of places) {
  test(`${says}: reported with its position`, () =>
    assert.deepEqual(parseJsonText(text), { issues: [{ path: [], reason }] }));
}

test("64 levels and brackets in strings: accepted", () => {
  assert.ok("value" in parseJsonText("[".repeat(64) + "]".repeat(64)));
  assert.ok("value" in parseJsonText(`["${"[{".repeat(100)}\\"[{"]`));
});

const names: [says: string, text: string, path: (string | number)[], reason: RegExp][] = [
  ["a duplicate key", '{"a":1,"b":[{"x":1,"x":2}]}', ["b", 0, "x"], /appears twice/],
  ["a duplicate key with an escape", '{"a":1,"\\u0061":2}', ["a"], /appears twice/],
  ["the key __proto__", '[0,{"__proto__":{}}]', [1, "__proto__"], /is not a name/],
  ["NUL", '{"steps":["\\u0000"]}', ["steps", 0], /must not contain NUL/],
  ["a lone surrogate", '{"a":"\\ud800"}', ["a"], /half of a surrogate pair/],
];
for (const [says, text, path, reason] of names) {
  test(`${says}: reported with its path`, () => {
    const read = parseJsonText(text);
    assert.ok("issues" in read);
    assert.deepEqual(read.issues[0]!.path, path);
    assert.match(read.issues[0]!.reason, reason);
  });
}

test("the same key in different objects: accepted", () => {
  assert.ok("value" in parseJsonText('[{"a":{"a":1}},{"a":2}]'));
});
