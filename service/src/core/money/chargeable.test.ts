import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { stripeLimits, toStripe } from "../../integrations/payments/stripe-amounts.ts";
import { currencies } from "./amount.ts";
import { findChargeProblem } from "./chargeable.ts";

const anyMinor = fc.oneof(fc.bigInt({ min: 0n, max: 2_000n }), fc.bigInt({ min: 0n, max: 99_999_999n }));

test("findChargeProblem with Stripe's limits: refuses exactly what Stripe refuses", () => {
  fc.assert(
    fc.property(anyMinor, fc.constantFrom(...currencies), (minor, currency) => {
      const limits = stripeLimits(currency);
      const can = toStripe(minor, currency) !== null && (minor === 0n || minor >= limits.minimumMinor);
      assert.equal(findChargeProblem(limits, minor, currency) === null, can);
    }),
    { numRuns: runs(1_000) },
  );
});

test("limitsOfStripe: amounts rounded down to its step can be transferred", () => {
  fc.assert(
    fc.property(
      anyMinor,
      fc.constantFrom("KWD", "BHD", "JOD", "OMR", "TND", "USD", "JPY", "MGA"),
      (minor, currency) => {
        const { stepMinor } = stripeLimits(currency);
        assert.notEqual(toStripe(minor - (minor % stepMinor), currency), null);
      },
    ),
  );
});
