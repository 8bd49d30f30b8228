import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { createFingerprint, estimateSimilarity } from "./minhash.ts";
import { createTextComparison } from "./text-similarity.ts";
import { isLookAlike, lookAlikeKeys, titleKeys } from "./title-keys.ts";

const prompts: { title: string; content: string }[] = JSON.parse(
  readFileSync(new URL("../../backoffice/demo/prompts.json", import.meta.url), "utf8"),
);

const sharesKey = (a: readonly number[], b: readonly number[]): boolean => {
  const keys = new Set(a);
  return b.some((key) => keys.has(key));
};

/** Replaces every `nth` word from `first` on. */
const withReplacedWords = (text: string, nth: number, first: number): string =>
  text
    .split(" ")
    .map((word, at) => (at % nth === first % nth ? "other" : word))
    .join(" ");

test("near-duplicates of real prompts, with Jaccard index 0.8 or more: at least 99 % share a band", () => {
  let near = 0;
  let found = 0;
  for (const [at, { content }] of prompts.entries()) {
    if (content.length > 20_000) continue;
    const own = createFingerprint(content);
    const compare = createTextComparison(content);
    // One of 28 words changes three of 28 runs: an index of about 0.8.
    for (const changed of [content.toUpperCase(), withReplacedWords(content, 28 + (at % 8), at)]) {
      const similarity = compare(changed);
      if (similarity < 0.8) continue;
      const other = createFingerprint(changed);
      near++;
      if (sharesKey(own.bands, other.bands)) found++;
      assert.ok(Math.abs(estimateSimilarity(own.signature, other.signature) - similarity) < 0.25);
    }
  }
  assert.ok(near > 500, `${near} near-duplicates`);
  assert.ok(found / near >= 0.99, `${found} of ${near}`);
});

test("different real prompts: less than 1 % of the pairs share a band", () => {
  const fingerprints = prompts.slice(0, 300).map(({ content }) => createFingerprint(content));
  let pairs = 0;
  let shared = 0;
  for (const [at, { bands }] of fingerprints.entries())
    for (const other of fingerprints.slice(at + 1)) {
      pairs++;
      if (sharesKey(bands, other.bands)) shared++;
    }
  assert.ok(shared / pairs < 0.01, `${shared} of ${pairs}`);
});

for (const [title, other, isAlike] of [
  ["Grammar Wizard", "grammar-wizzard", true],
  ["Grammar Wizard", "Grammar Wizards!!", true],
  ["Résumé Builder", "RESUME BUILDER", true],
  ["Grammar\u200b Wizard", "Grammar Wizard", true],
  ["Grammar Wizard", "Spelling Wizard", false],
  ["Haiku", "Haikus", true],
  ["Haiku", "Hakus 2", false],
  ["Cat", "Car", false],
  ["!!!", "???", false],
] as const) {
  test(`titles “${title}” and “${other}”: ${isAlike ? "look alike" : "differ"}`, () => {
    assert.equal(isLookAlike(title, other), isAlike);
    if (isAlike) assert.ok(sharesKey(lookAlikeKeys(title), titleKeys(other)));
  });
}

test("a title with up to two edits: has a key in common, both ways", () => {
  const letter = fc.constantFrom(..."abcdeé日9");
  const edit = fc.record({ at: fc.nat(), kind: fc.constantFrom("insert", "delete", "replace"), letter });
  fc.assert(
    fc.property(
      fc.string({ unit: letter, minLength: 1, maxLength: 40 }),
      fc.array(edit, { maxLength: 3 }),
      (title, edits) => {
        const letters = [...title];
        for (const { at, kind, letter } of edits)
          letters.splice(
            at % (letters.length + 1),
            kind === "insert" ? 0 : 1,
            ...(kind === "delete" ? [] : [letter]),
          );
        const other = letters.join("");
        if (!isLookAlike(title, other)) return;
        assert.ok(sharesKey(lookAlikeKeys(title), titleKeys(other)));
        assert.ok(sharesKey(lookAlikeKeys(other), titleKeys(title)));
      },
    ),
    { numRuns: 2_000 },
  );
});
