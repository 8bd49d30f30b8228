import assert from "node:assert/strict";
import { test } from "node:test";
import { canonicalJson } from "./canonical-json.ts";

test("canonicalJson, example of RFC 8785, section 3.2.2: the canonical form", () => {
  const value = JSON.parse(String.raw`{
    "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
    "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
    "literals": [null, true, false]
  }`);
  const canonical = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`;
  assert.equal(canonicalJson(value), canonical);
});

test("canonicalJson, names of RFC 8785, section 3.2.3: sorted by UTF-16 code units", () => {
  const names = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
  const sorted = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"];
  const text = canonicalJson(Object.fromEntries(names.map((name) => [name, 0])));
  assert.deepEqual(Object.keys(JSON.parse(text)).sort(), [...sorted].sort());
  assert.equal(text, `{${sorted.map((name) => `${JSON.stringify(name)}:0`).join(",")}}`);
});

test("canonicalJson, negative zero and an unpaired surrogate: 0 and an escape", () => {
  assert.equal(canonicalJson([-0, "\ud800"]), String.raw`[0,"\ud800"]`);
});
