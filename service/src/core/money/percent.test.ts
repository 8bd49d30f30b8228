import assert from "node:assert/strict";
import { test } from "node:test";
import { toBasisPoints, toPercent } from "./percent.ts";

test("any percentage with two decimals: to basis points and back", () => {
  for (let basisPoints = 0; basisPoints <= 10_000; basisPoints++) {
    const percent = toPercent(basisPoints);
    assert.equal(toBasisPoints(String(percent)), basisPoints);
    assert.equal(
      percent.toFixed(2),
      `${Math.floor(basisPoints / 100)}.${String(basisPoints % 100).padStart(2, "0")}`,
    );
  }
});

test("toBasisPoints, more decimals or no number: null", () => {
  for (const text of ["", "19.999", "-1", "1e1", "19%", " 19", "1000", ".5", "5."])
    assert.equal(toBasisPoints(text), null, text);
});
