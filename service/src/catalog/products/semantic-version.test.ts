import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isNewerVersion, nextMinorVersion } from "./semantic-version.ts";

const number = fc.integer({ min: 0, max: 999_999_999 });
const numbers = fc.tuple(number, number, number);
const fewNumbers = fc.tuple(fc.nat(2), fc.nat(11), fc.nat(2));

test("versions: ordered by number, not as text", () => {
  assert.ok(isNewerVersion("1.10.0", "1.9.9"));
  assert.ok(isNewerVersion("2.0.0", "1.99.99"));
  assert.ok(!isNewerVersion("1.0.0", "1.0.0"));
  fc.assert(
    fc.property(fewNumbers, fewNumbers, (a, b) => {
      const value = ([major, minor, patch]: number[]) => major! * 10_000 + minor! * 100 + patch!;
      assert.equal(isNewerVersion(a.join("."), b.join(".")), value(a) > value(b));
    }),
  );
});

test("the next minor version: starts at patch 0", () => {
  assert.equal(nextMinorVersion("1.2.3"), "1.3.0");
  fc.assert(
    fc.property(numbers, (version) => {
      assert.ok(isNewerVersion(nextMinorVersion(version.join(".")), version.join(".")));
    }),
  );
});
