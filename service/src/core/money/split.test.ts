import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_MINOR } from "./amount.ts";
import { type SaleParts, type SaleSplit, type SaleTerms, shareOf, splitRefund, splitSale } from "./split.ts";

/** Small and usual amounts in all currencies, and the maximum. */
const anyPrice = fc.oneof(
  fc.bigInt({ min: 1n, max: 20n }),
  fc.bigInt({ min: 1n, max: 99_999n }),
  fc.bigInt({ min: 1n, max: MAX_MINOR }),
);
const anyRate = fc.oneof(fc.integer({ min: 0, max: 10_000 }), fc.constantFrom(0, 1, 1_000, 3_333, 10_000));

const anyTerms: fc.Arbitrary<SaleTerms> = fc
  .record({
    priceMinor: anyPrice,
    discountBasisPoints: anyRate,
    tax: fc.record({ basisPoints: anyRate, inclusive: fc.boolean() }),
    feeBasisPoints: anyRate,
    commissionBasisPoints: anyRate,
  })
  .map(({ discountBasisPoints, ...terms }) => ({
    ...terms,
    discountMinor: shareOf(terms.priceMinor, discountBasisPoints),
  }));

/** Sales with the amounts of their refunds. */
const anyRefunded = fc
  .tuple(anyTerms.map(splitSale), fc.array(fc.integer({ min: 1, max: 10_000 }), { maxLength: 12 }))
  .filter(([{ totalMinor }]) => totalMinor > 0n)
  .map(([sale, steps]) => ({ sale, amounts: amountsOf(sale.totalMinor, steps) }));

/** Sales small enough to refund unit by unit. */
const anySmall = anyTerms
  .map((terms) => splitSale({ ...terms, priceMinor: terms.priceMinor % 50n, discountMinor: 0n }))
  .filter(({ totalMinor }) => totalMinor > 0n);

const names = ["feeMinor", "commissionMinor", "taxMinor", "sellerMinor"] as const;
const sumOf = (parts: SaleParts) => names.reduce((sum, name) => sum + parts[name], 0n);
const NO_PARTS: SaleParts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 0n };

function amountsOf(totalMinor: bigint, steps: number[]): bigint[] {
  const amounts: bigint[] = [];
  let rest = totalMinor;
  for (const step of steps) {
    const amount = (rest * BigInt(step)) / 20_000n;
    if (amount === 0n) continue;
    amounts.push(amount);
    rest -= amount;
  }
  return [...amounts, rest];
}

function refundsOf(sale: SaleSplit, amounts: bigint[]): SaleParts[] {
  let before = 0n;
  return amounts.map((amount) => {
    const parts = splitRefund(sale, before, amount);
    before += amount;
    return parts;
  });
}

const add = (one: SaleParts, other: SaleParts): SaleParts => ({
  feeMinor: one.feeMinor + other.feeMinor,
  commissionMinor: one.commissionMinor + other.commissionMinor,
  taxMinor: one.taxMinor + other.taxMinor,
  sellerMinor: one.sellerMinor + other.sellerMinor,
});

test("shareOf: rounds half up once", () => {
  assert.equal(shareOf(1999n, 1_000), 200n);
  assert.equal(shareOf(1994n, 1_000), 199n);
  assert.equal(shareOf(1995n, 1_000), 200n);
  assert.equal(shareOf(MAX_MINOR, 10_000), MAX_MINOR);
});

test("splitSale in dollars: discount, tax on top, fee and commission", () => {
  const split = splitSale({
    ...{ priceMinor: 1999n, discountMinor: 1000n, tax: { basisPoints: 1_900, inclusive: false } },
    ...{ feeBasisPoints: 1_000, commissionBasisPoints: 2_000 },
  });
  assert.deepEqual(split, {
    ...{ subtotalMinor: 1999n, discountMinor: 1000n, taxMinor: 190n, totalMinor: 1189n },
    ...{ feeMinor: 100n, commissionMinor: 200n, sellerMinor: 699n },
  });
});

test("splitSale in yen: included tax", () => {
  const split = splitSale({
    ...{ priceMinor: 500n, discountMinor: 0n, tax: { basisPoints: 1_000, inclusive: true } },
    ...{ feeBasisPoints: 1_000, commissionBasisPoints: 0 },
  });
  assert.deepEqual(split, {
    ...{ subtotalMinor: 500n, discountMinor: 0n, taxMinor: 45n, totalMinor: 500n },
    ...{ feeMinor: 46n, commissionMinor: 0n, sellerMinor: 409n },
  });
});

test("splitSale, commission above the rest: limited to what the fee leaves", () => {
  const split = splitSale({
    ...{ priceMinor: 100n, discountMinor: 0n, tax: { basisPoints: 0, inclusive: false } },
    ...{ feeBasisPoints: 6_000, commissionBasisPoints: 5_000 },
  });
  assert.deepEqual([split.feeMinor, split.commissionMinor, split.sellerMinor], [60n, 40n, 0n]);
});

test("splitSale, discount below 0 or above the price: throws", () => {
  const terms = {
    ...{ priceMinor: 100n, tax: { basisPoints: 0, inclusive: false } },
    ...{ feeBasisPoints: 0, commissionBasisPoints: 0 },
  };
  assert.throws(() => splitSale({ ...terms, discountMinor: 101n }), RangeError);
  assert.throws(() => splitSale({ ...terms, discountMinor: -1n }), RangeError);
});

test("splitSale, any terms: the parts are not negative and sum to the total", () => {
  fc.assert(
    fc.property(anyTerms, (terms) => {
      const split = splitSale(terms);
      assert.equal(sumOf(split), split.totalMinor);
      const onTop = terms.tax.inclusive ? 0n : split.taxMinor;
      assert.equal(split.totalMinor, terms.priceMinor - terms.discountMinor + onTop);
      for (const name of names) assert.ok(split[name] >= 0n, `${name} is ${split[name]}`);
    }),
  );
});

test("splitSale, included tax: the same share of the net as a tax on top, within half a unit", () => {
  fc.assert(
    fc.property(anyTerms, ({ tax, ...terms }) => {
      const { taxMinor, totalMinor } = splitSale({ ...terms, tax: { ...tax, inclusive: true } });
      const rate = BigInt(tax.basisPoints);
      const twiceError = 2n * (taxMinor * (10_000n + rate) - totalMinor * rate);
      assert.ok(twiceError > -(10_000n + rate) && twiceError <= 10_000n + rate);
    }),
  );
});

test("splitRefund, any refunds of the whole: return every part exactly", () => {
  fc.assert(
    fc.property(anyRefunded, ({ sale, amounts }) => {
      const back = refundsOf(sale, amounts).reduce(add, NO_PARTS);
      for (const name of names) assert.equal(back[name], sale[name], name);
    }),
  );
});

test("splitRefund, any refunds: the parts of each are not negative and sum to its amount", () => {
  fc.assert(
    fc.property(anyRefunded, ({ sale, amounts }) => {
      for (const [at, parts] of refundsOf(sale, amounts).entries()) {
        assert.equal(sumOf(parts), amounts[at]);
        for (const name of names) assert.ok(parts[name] >= 0n, `${name} is ${parts[name]}`);
      }
    }),
  );
});

test("splitRefund, unit by unit: each part stays within two units of its share", () => {
  fc.assert(
    fc.property(anySmall, (sale) => {
      const units = Array.from({ length: Number(sale.totalMinor) }, () => 1n);
      let back = NO_PARTS;
      for (const [at, parts] of refundsOf(sale, units).entries()) {
        for (const name of names) assert.ok(parts[name] >= 0n, `${name} is ${parts[name]}`);
        back = add(back, parts);
        for (const name of names) {
          const error = back[name] * sale.totalMinor - sale[name] * BigInt(at + 1);
          assert.ok(error < 2n * sale.totalMinor && error > -2n * sale.totalMinor, name);
        }
      }
    }),
  );
});

test("splitRefund: one refund equals two of the same sum", () => {
  fc.assert(
    fc.property(anyRefunded, fc.integer({ min: 1, max: 9_999 }), ({ sale }, cut) => {
      const first = (sale.totalMinor * BigInt(cut)) / 10_000n;
      if (first === 0n) return;
      const rest = sale.totalMinor - first;
      const both = add(splitRefund(sale, 0n, first), splitRefund(sale, first, rest));
      assert.deepEqual(both, splitRefund(sale, 0n, sale.totalMinor));
    }),
  );
});

test("splitRefund, zero or more than the rest: throws", () => {
  const sale = { ...NO_PARTS, sellerMinor: 90n, feeMinor: 10n, totalMinor: 100n };
  assert.throws(() => splitRefund(sale, 0n, 101n), RangeError);
  assert.throws(() => splitRefund(sale, 60n, 41n), RangeError);
  assert.throws(() => splitRefund(sale, 60n, 0n), RangeError);
  assert.throws(() => splitRefund(sale, -1n, 1n), RangeError);
  assert.deepEqual(splitRefund(sale, 60n, 40n), { ...NO_PARTS, sellerMinor: 36n, feeMinor: 4n });
});
