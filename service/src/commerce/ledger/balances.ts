import type { Queries } from "../../platform/db/database.ts";
import { sumBalances } from "./queries.ts";

/**
 * What somebody has in one currency, by their entries and by what is open of their orders: nothing is stored that could differ from
 * them. Any may be below zero, but for what is reserved.
 */
export interface Balance {
  currency: string;
  /** Not matured yet. */
  pendingMinor: bigint;
  /** What they may be paid out: what has matured and is not reserved. */
  availableMinor: bigint;
  /** What open refunds and disputes may take of what has matured. */
  reservedMinor: bigint;
  /** On its way to their bank. */
  inTransitMinor: bigint;
  /** What of the first three is commission: a payout takes each from the account on which it is. */
  referrer: { pendingMinor: bigint; availableMinor: bigint; reservedMinor: bigint };
}

/** One for each currency with an entry, in alphabetical order. */
export async function balancesOf(db: Queries, ownerId: string, now: Date): Promise<Balance[]> {
  const sums = await sumBalances(db, ownerId, now);
  return sums.map(({ currency, ...sum }) => ({
    currency,
    pendingMinor: BigInt(sum.pending),
    availableMinor: BigInt(sum.matured) - BigInt(sum.reserved),
    reservedMinor: BigInt(sum.reserved),
    inTransitMinor: BigInt(sum.inTransit),
    referrer: {
      pendingMinor: BigInt(sum.referrerPending),
      availableMinor: BigInt(sum.referrerMatured) - BigInt(sum.referrerReserved),
      reservedMinor: BigInt(sum.referrerReserved),
    },
  }));
}
