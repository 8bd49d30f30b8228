import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { digestOf, isSameDigest } from "../../core/digest.ts";
import { mintKey, parseKeyLookup } from "./api-key.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const environment = fc.constantFrom("test" as const, "production" as const);
const key = environment.map((name) => ({ environment: name, ...mintKey(name) }));

test("an API key: parses into environment, lookup, secret and checksum", () => {
  fc.assert(
    fc.property(key, ({ environment: name, value, lookup }) => {
      const label = name === "test" ? "test" : "live";
      assert.match(value, new RegExp(`^stoa_${label}_[0-9A-Za-z]{12}[0-9A-Za-z]{32}[0-9A-Za-z]{6}$`));
      assert.equal(value.slice(10, 22), lookup);
    }),
  );
});

test("a created key: its lookup is found, only in its own environment", () => {
  fc.assert(
    fc.property(key, ({ environment: name, value, lookup }) => {
      assert.equal(parseKeyLookup(value, name), lookup);
      assert.equal(parseKeyLookup(value, name === "test" ? "production" : "test"), null);
    }),
  );
});

test("parseKeyLookup, a key with one changed character: null", () => {
  const { value } = mintKey("test");
  for (let at = 0; at < value.length; at++) {
    for (const character of `${BASE62}_ é`) {
      if (character === value[at]) continue;
      const changed = value.slice(0, at) + character + value.slice(at + 1);
      assert.equal(parseKeyLookup(changed, "test"), null, changed);
    }
  }
});

test("parseKeyLookup, missing, doubled, swapped or added characters: null", () => {
  fc.assert(
    fc.property(key, fc.nat(60), ({ environment: name, value }, at) => {
      const [before, here, next, rest] = [
        value.slice(0, at),
        value[at] ?? "",
        value[at + 1] ?? "",
        value.slice(at + 2),
      ];
      const typos = [before + next + rest, before + here + here + next + rest, before + next + here + rest];
      for (const typo of [...typos, ` ${value}`, `${value}\n`, `${value}0`, value.toUpperCase()]) {
        if (typo !== value) assert.equal(parseKeyLookup(typo, name), null, typo);
      }
    }),
  );
});

test("parseKeyLookup, any other text: null", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 80 }), (text) => assert.equal(parseKeyLookup(text, "test"), null)),
  );
});

test("parseKeyLookup, a key of an earlier release: still parsed", () => {
  const value = "stoa_test_0123456789ABabcdefghijklmnopqrstuvwxyzABCDEF2x8VlX";
  assert.equal(parseKeyLookup(value, "test"), "0123456789AB");
});

test("two created keys: always different", () => {
  const values = new Set(Array.from({ length: 2_000 }, () => mintKey("test").value.slice(10, 22)));
  assert.equal(values.size, 2_000);
});

test("a key digest: matches its own key only, and no digest of another length", () => {
  fc.assert(
    fc.property(key, key, (a, b) => {
      assert.ok(isSameDigest(digestOf(a.value), a.digest));
      assert.ok(!isSameDigest(a.digest, b.digest));
      assert.ok(!isSameDigest(a.digest, a.digest.subarray(1)));
    }),
  );
});
