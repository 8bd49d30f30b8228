import { roundHalfUp } from "./amount.ts";

/** A rate in basis points: 10,000 are the whole. */
const WHOLE = 10_000n;

/** The share of an amount, rounded half-up once on the exact fraction. */
export const shareOf = (amountMinor: bigint, basisPoints: number): bigint =>
  roundHalfUp(amountMinor * BigInt(basisPoints), WHOLE);

/** The input of a split: minor units of one currency, and basis points. */
export interface SaleTerms {
  priceMinor: bigint;
  discountMinor: bigint;
  tax: { basisPoints: number; inclusive: boolean };
  feeBasisPoints: number;
  commissionBasisPoints: number;
}

/** The parts of a total: they sum to it by construction, because the seller's is what remains. */
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
 * Parts what a buyer pays. The fee is the platform's share of the net price, which is without discount and tax; the commission is the
 * same of the seller's part, at most all of it; the seller has the rest.
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
 * The parts of a refund that comes after `before` were refunded: what is due of each by now less what was due before, so that many
 * small refunds end where one large one does, and the last leaves nothing behind. No part is ever below zero.
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
 * What of each part is due once so much of the total is refunded. It is parted in two each time, the one side rounded and the other
 * what remains: tax and net, fee and the rest, commission and seller. So each only grows from refund to refund; three parts that
 * are rounded at once may take more than there is, and the fourth would have to give.
 */
function partsAfterRefund(sale: SaleParts & { totalMinor: bigint }, refunded: bigint): SaleParts {
  const taxMinor = proportion(sale.taxMinor, refunded, sale.totalMinor);
  const net = refunded - taxMinor;
  const wholeNet = sale.totalMinor - sale.taxMinor;
  const feeMinor = proportion(sale.feeMinor, net, wholeNet);
  const commissionMinor = proportion(sale.commissionMinor, net - feeMinor, wholeNet - sale.feeMinor);
  return { feeMinor, commissionMinor, taxMinor, sellerMinor: net - feeMinor - commissionMinor };
}

/** The same share of `part` as `some` is of `whole`. */
const proportion = (part: bigint, some: bigint, whole: bigint): bigint =>
  part === 0n ? 0n : roundHalfUp(part * some, whole);

const min = (one: bigint, other: bigint) => (one < other ? one : other);
