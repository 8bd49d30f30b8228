import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs, sampleOf } from "../../../../test/full-size.ts";
import { readHarmlessPrompts, readPatterns } from "../corpus/read-corpus.ts";
import { patternRules } from "../scan.ts";
import { PatternMatcher } from "./pattern-matcher.ts";

const matcher = new PatternMatcher(patternRules);
const find = (text: string) => matcher.find(text, text.toLowerCase());

const patterns = readPatterns().map(({ text }) => text);
// Long texts, because in a short one each rule is searched in the whole text.
const prompts = readHarmlessPrompts().filter(({ length }) => length > 4_000 && length < 8_000);

const part = fc.oneof(
  fc.tuple(fc.constantFrom(...patterns), fc.nat(20)).map(([text, from]) => text.slice(from)),
  fc.constantFrom(...patterns).map((text) => text.toUpperCase()),
  fc.constantFrom("\n", "_", "é", "用", "\u{1f511}", "\ud83d", "/", "-", "x", " "),
);

test("PatternMatcher: finds by starts what it finds by searches of the whole text", () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), fc.constantFrom(...prompts), (parts, prompt) => {
      const text = `${parts.join("")}${prompt}\n`;
      // The sign of the unit kelvin is a `k` without case, so that no rule is searched by its starts.
      assert.deepEqual(find(`${text}—`), find(`${text}\u212a`));
    }),
    { numRuns: runs(2_000, 20) },
  );
});

test("PatternMatcher: finds each pattern of the corpus by starts, behind a long text", () => {
  const [prompt = ""] = prompts;
  for (const pattern of sampleOf(patterns)) {
    const text = `${prompt}\n${pattern}\n`;
    assert.deepEqual(find(`${text}—`), find(`${text}\u212a`), pattern);
  }
});
