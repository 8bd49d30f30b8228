import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_MINOR } from "./amount.ts";
import { type SaleParts, type SaleSplit, type SaleTerms, shareOf, splitRefund, splitSale } from "./split.ts";

/** As prices are: some yen, some cents, some fils, and the most that there can be. */
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

/** Sales of something, with the amounts in which all of it is given back. */
const anyRefunded = fc
  .tuple(anyTerms.map(splitSale), fc.array(fc.integer({ min: 1, max: 10_000 }), { maxLength: 12 }))
  .filter(([{ totalMinor }]) => totalMinor > 0n)
  .map(([sale, steps]) => ({ sale, amounts: amountsOf(sale.totalMinor, steps) }));

/** A sale so small that each of its units can be given back alone. */
const anySmall = anyTerms
  .map((terms) => splitSale({ ...terms, priceMinor: terms.priceMinor % 50n, discountMinor: 0n }))
  .filter(({ totalMinor }) => totalMinor > 0n);

const names = ["feeMinor", "commissionMinor", "taxMinor", "sellerMinor"] as const;
const sumOf = (parts: SaleParts) => names.reduce((sum, name) => sum + parts[name], 0n);
const nothing: SaleParts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 0n };

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

/** The parts of each refund, one after the other. */
function refundsOf(sale: SaleSplit, amounts: bigint[]): SaleParts[] {
  let before = 0n;
  return amounts.map((amount) => {
    const parts = splitRefund(sale, before, amount);
    before += amount;
    return parts;
  });
}

const added = (one: SaleParts, other: SaleParts): SaleParts => ({
  feeMinor: one.feeMinor + other.feeMinor,
  commissionMinor: one.commissionMinor + other.commissionMinor,
  taxMinor: one.taxMinor + other.taxMinor,
  sellerMinor: one.sellerMinor + other.sellerMinor,
});

test("a share is rounded half-up once", () => {
  assert.equal(shareOf(1999n, 1_000), 200n);
  assert.equal(shareOf(1994n, 1_000), 199n);
  assert.equal(shareOf(1995n, 1_000), 200n);
  assert.equal(shareOf(MAX_MINOR, 10_000), MAX_MINOR);
});

test("a sale in dollars, with a discount, a tax on top, a fee and a commission", () => {
  const split = splitSale({
    ...{ priceMinor: 1999n, discountMinor: 1000n, tax: { basisPoints: 1_900, inclusive: false } },
    ...{ feeBasisPoints: 1_000, commissionBasisPoints: 2_000 },
  });
  assert.deepEqual(split, {
    ...{ subtotalMinor: 1999n, discountMinor: 1000n, taxMinor: 190n, totalMinor: 1189n },
    ...{ feeMinor: 100n, commissionMinor: 200n, sellerMinor: 699n },
  });
});

test("a sale in yen whose price holds the tax", () => {
  const split = splitSale({
    ...{ priceMinor: 500n, discountMinor: 0n, tax: { basisPoints: 1_000, inclusive: true } },
    ...{ feeBasisPoints: 1_000, commissionBasisPoints: 0 },
  });
  assert.deepEqual(split, {
    ...{ subtotalMinor: 500n, discountMinor: 0n, taxMinor: 45n, totalMinor: 500n },
    ...{ feeMinor: 46n, commissionMinor: 0n, sellerMinor: 409n },
  });
});

test("a commission takes no more than the fee leaves", () => {
  const split = splitSale({
    ...{ priceMinor: 100n, discountMinor: 0n, tax: { basisPoints: 0, inclusive: false } },
    ...{ feeBasisPoints: 6_000, commissionBasisPoints: 5_000 },
  });
  assert.deepEqual([split.feeMinor, split.commissionMinor, split.sellerMinor], [60n, 40n, 0n]);
});

test("a discount is never below nothing or above the price", () => {
  const terms = {
    ...{ priceMinor: 100n, tax: { basisPoints: 0, inclusive: false } },
    ...{ feeBasisPoints: 0, commissionBasisPoints: 0 },
  };
  assert.throws(() => splitSale({ ...terms, discountMinor: 101n }), RangeError);
  assert.throws(() => splitSale({ ...terms, discountMinor: -1n }), RangeError);
});

test("the parts of a sale sum to its total, which is the price less the discount and with the tax, and none is below zero", () => {
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

test("a tax inside the price is the same share of the net as one on top of it, to half a unit", () => {
  fc.assert(
    fc.property(anyTerms, ({ tax, ...terms }) => {
      const { taxMinor, totalMinor } = splitSale({ ...terms, tax: { ...tax, inclusive: true } });
      const rate = BigInt(tax.basisPoints);
      const twiceError = 2n * (taxMinor * (10_000n + rate) - totalMinor * rate);
      assert.ok(twiceError > -(10_000n + rate) && twiceError <= 10_000n + rate);
    }),
  );
});

test("refunds that end whole give every part back exactly, however they are cut", () => {
  fc.assert(
    fc.property(anyRefunded, ({ sale, amounts }) => {
      const back = refundsOf(sale, amounts).reduce(added, nothing);
      for (const name of names) assert.equal(back[name], sale[name], name);
    }),
  );
});

test("the parts of each refund sum to its amount, and nobody gains by one", () => {
  fc.assert(
    fc.property(anyRefunded, ({ sale, amounts }) => {
      for (const [at, parts] of refundsOf(sale, amounts).entries()) {
        assert.equal(sumOf(parts), amounts[at]);
        for (const name of names) assert.ok(parts[name] >= 0n, `${name} is ${parts[name]}`);
      }
    }),
  );
});

test("unit by unit nobody gains either, and everybody stays within two units of their share", () => {
  fc.assert(
    fc.property(anySmall, (sale) => {
      const units = Array.from({ length: Number(sale.totalMinor) }, () => 1n);
      let back = nothing;
      for (const [at, parts] of refundsOf(sale, units).entries()) {
        for (const name of names) assert.ok(parts[name] >= 0n, `${name} is ${parts[name]}`);
        back = added(back, parts);
        for (const name of names) {
          const error = back[name] * sale.totalMinor - sale[name] * BigInt(at + 1);
          assert.ok(error < 2n * sale.totalMinor && error > -2n * sale.totalMinor, name);
        }
      }
    }),
  );
});

test("one refund is worth as much as the same amount in two", () => {
  fc.assert(
    fc.property(anyRefunded, fc.integer({ min: 1, max: 9_999 }), ({ sale }, cut) => {
      const first = (sale.totalMinor * BigInt(cut)) / 10_000n;
      if (first === 0n) return;
      const rest = sale.totalMinor - first;
      const both = added(splitRefund(sale, 0n, first), splitRefund(sale, first, rest));
      assert.deepEqual(both, splitRefund(sale, 0n, sale.totalMinor));
    }),
  );
});

test("more than was paid, or nothing, cannot be refunded", () => {
  const sale = { ...nothing, sellerMinor: 90n, feeMinor: 10n, totalMinor: 100n };
  assert.throws(() => splitRefund(sale, 0n, 101n), RangeError);
  assert.throws(() => splitRefund(sale, 60n, 41n), RangeError);
  assert.throws(() => splitRefund(sale, 60n, 0n), RangeError);
  assert.throws(() => splitRefund(sale, -1n, 1n), RangeError);
  assert.deepEqual(splitRefund(sale, 60n, 40n), { ...nothing, sellerMinor: 36n, feeMinor: 4n });
});
