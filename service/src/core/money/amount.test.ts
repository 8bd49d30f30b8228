import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { currencies, formatMoney, isCurrency, MAX_MINOR, roundHalfUp, toDecimal, toMinor } from "./amount.ts";

const anyMinor = fc.bigInt({ min: -MAX_MINOR, max: MAX_MINOR });
const anyCurrency = fc.constantFrom(...currencies);

test("toMinor: returns the minor units of the currency", () => {
  assert.equal(toMinor(19.99, "USD"), 1999n);
  assert.equal(toMinor(19.9, "EUR"), 1990n);
  assert.equal(toMinor(500, "JPY"), 500n);
  assert.equal(toMinor(1.234, "KWD"), 1234n);
  assert.equal(toMinor(-0.05, "USD"), -5n);
});

test("toMinor, more decimals than the currency has: null", () => {
  assert.equal(toMinor(1.5, "JPY"), null);
  assert.equal(toMinor(19.999, "USD"), null);
  assert.equal(toMinor(1.2345, "KWD"), null);
  assert.equal(toMinor(0.1 + 0.2, "USD"), null);
});

test("toMinor, not finite or more than 15 digits: null", () => {
  for (const amount of [Number.NaN, Number.POSITIVE_INFINITY, 1e-7, 1e21, 1e13, Number.MAX_VALUE]) {
    assert.equal(toMinor(amount, "USD"), null, String(amount));
  }
  assert.equal(toMinor(9_999_999_999_999.99, "USD"), MAX_MINOR);
  assert.throws(() => toDecimal(MAX_MINOR + 1n, "USD"), RangeError);
  assert.throws(() => formatMoney(0.5, "USD"), RangeError);
});

test("zero: has no sign", () => {
  assert.equal(toMinor(-0, "USD"), 0n);
  assert.equal(formatMoney(-0, "USD"), "0.00 USD");
});

test("formatMoney: all decimals of the currency", () => {
  assert.equal(formatMoney(1999n, "USD"), "19.99 USD");
  assert.equal(formatMoney(5n, "USD"), "0.05 USD");
  assert.equal(formatMoney(-5n, "USD"), "-0.05 USD");
  assert.equal(formatMoney(500n, "JPY"), "500 JPY");
  assert.equal(formatMoney(1n, "KWD"), "0.001 KWD");
});

test("an unknown currency: every function throws", () => {
  for (const code of ["XXX", "usd", "", "BGN", "toString"]) {
    assert.equal(isCurrency(code), false, code);
    assert.throws(() => toMinor(1, code), /Unknown currency/);
    assert.throws(() => toDecimal(1, code), /Unknown currency/);
    assert.throws(() => formatMoney(1, code), /Unknown currency/);
  }
});

test("the currency table: each currency once", () => {
  assert.equal(new Set(currencies).size, currencies.length);
  assert.ok(currencies.every((code) => /^[A-Z]{3}$/.test(code)));
});

test("any amount in any currency: unchanged through JSON", () => {
  fc.assert(
    fc.property(anyMinor, anyCurrency, (minor, currency) => {
      const amount: number = JSON.parse(JSON.stringify(toDecimal(minor, currency)));
      assert.equal(toMinor(amount, currency), minor);
    }),
  );
});

test("toDecimal and formatMoney: the same number", () => {
  fc.assert(
    fc.property(anyMinor, anyCurrency, (minor, currency) => {
      assert.equal(Number(formatMoney(minor, currency).slice(0, -4)), toDecimal(minor, currency));
    }),
  );
});

test("toMinor, any accepted double: the amount as written", () => {
  fc.assert(
    fc.property(fc.double(), anyCurrency, (amount, currency) => {
      const minor = toMinor(amount, currency);
      if (minor !== null) assert.equal(toDecimal(minor, currency), amount === 0 ? 0 : amount);
    }),
  );
});

test("roundHalfUp: a half rounds up, less rounds down", () => {
  assert.equal(roundHalfUp(1999n, 2n), 1000n);
  assert.equal(roundHalfUp(1n, 3n), 0n);
  assert.equal(roundHalfUp(2n, 3n), 1n);
  assert.equal(roundHalfUp(-1n, 2n), 0n);
  assert.equal(roundHalfUp(-3n, 2n), -1n);
  assert.throws(() => roundHalfUp(1n, 0n), RangeError);
});

test("roundHalfUp, any fraction: the nearest integer, a half up", () => {
  fc.assert(
    fc.property(fc.bigInt(), fc.bigInt({ min: 1n }), (numerator, denominator) => {
      const twiceError = 2n * (roundHalfUp(numerator, denominator) * denominator - numerator);
      assert.ok(twiceError > -denominator && twiceError <= denominator);
    }),
  );
});
