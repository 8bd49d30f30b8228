import { roundHalfUp } from "./amount.ts";

const WHOLE = 10_000n;

/** Rounds half up, once, on the exact fraction. */
export const shareOf = (amountMinor: bigint, basisPoints: number): bigint =>
  roundHalfUp(amountMinor * BigInt(basisPoints), WHOLE);

export interface SaleTerms {
  priceMinor: bigint;
  discountMinor: bigint;
  tax: { basisPoints: number; inclusive: boolean };
  feeBasisPoints: number;
  commissionBasisPoints: number;
}

/** The parts sum to the total by construction: the seller's part is the rest. */
export interface SaleParts {
  feeMinor: bigint;
  commissionMinor: bigint;
  taxMinor: bigint;
  sellerMinor: bigint;
}

export interface SaleSplit extends SaleParts {
  subtotalMinor: bigint;
  discountMinor: bigint;
  totalMinor: bigint;
}

/**
 * The fee is a share of the net price, without discount and tax. The commission is a share of the net price too, at most what the fee
 * leaves. The seller receives the rest.
 */
export function splitSale({ priceMinor, discountMinor, tax, ...rates }: SaleTerms): SaleSplit {
  const discounted = priceMinor - discountMinor;
  if (discountMinor < 0n || discounted < 0n)
    throw new RangeError("A discount is between nothing and the price");
  const taxMinor = tax.inclusive
    ? roundHalfUp(discounted * BigInt(tax.basisPoints), WHOLE + BigInt(tax.basisPoints))
    : shareOf(discounted, tax.basisPoints);
  const net = tax.inclusive ? discounted - taxMinor : discounted;
  const feeMinor = shareOf(net, rates.feeBasisPoints);
  const commissionMinor = min(shareOf(net, rates.commissionBasisPoints), net - feeMinor);
  return {
    subtotalMinor: priceMinor,
    discountMinor,
    totalMinor: net + taxMinor,
    taxMinor,
    feeMinor,
    commissionMinor,
    sellerMinor: net - feeMinor - commissionMinor,
  };
}

/**
 * Each part is its share of all refunds so far less its share of the earlier ones. Many small refunds therefore sum to one large one; no
 * part is negative.
 */
export function splitRefund(
  sale: SaleParts & { totalMinor: bigint },
  before: bigint,
  amount: bigint,
): SaleParts {
  const after = before + amount;
  if (before < 0n || amount <= 0n || after > sale.totalMinor) {
    throw new RangeError(`${amount} after ${before} cannot be refunded of ${sale.totalMinor}`);
  }
  const [due, was] = [partsAfterRefund(sale, after), partsAfterRefund(sale, before)];
  return {
    feeMinor: due.feeMinor - was.feeMinor,
    commissionMinor: due.commissionMinor - was.commissionMinor,
    taxMinor: due.taxMinor - was.taxMinor,
    sellerMinor: due.sellerMinor - was.sellerMinor,
  };
}

/**
 * Splits in two at each step, rounding one side: tax and net, fee and rest, commission and seller. Each part then only grows. Rounding
 * three parts at once could exceed the total.
 */
function partsAfterRefund(sale: SaleParts & { totalMinor: bigint }, refunded: bigint): SaleParts {
  const taxMinor = proportion(sale.taxMinor, refunded, sale.totalMinor);
  const net = refunded - taxMinor;
  const wholeNet = sale.totalMinor - sale.taxMinor;
  const feeMinor = proportion(sale.feeMinor, net, wholeNet);
  const commissionMinor = proportion(sale.commissionMinor, net - feeMinor, wholeNet - sale.feeMinor);
  return { feeMinor, commissionMinor, taxMinor, sellerMinor: net - feeMinor - commissionMinor };
}

const proportion = (part: bigint, some: bigint, whole: bigint): bigint =>
  part === 0n ? 0n : roundHalfUp(part * some, whole);

const min = (one: bigint, other: bigint) => (one < other ? one : other);
