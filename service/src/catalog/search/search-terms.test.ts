import assert from "node:assert/strict";
import { test } from "node:test";
import { matchTerm } from "./search-terms.ts";

test("matchTerm: nests to the right, so that PostgreSQL tests the first lexeme first", () => {
  assert.equal(matchTerm({ word: "a", lexemes: ["a", "b", "c"], mayMatch: true }), "('a' | ('b' | ('c')))");
});
