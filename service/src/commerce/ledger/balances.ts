import type { Queries } from "../../platform/db/database.ts";
import { sumBalances } from "./queries.ts";

/**
 * The amounts of one owner in one currency, computed from entries and open orders; no balance is stored. All but the reserved amount may
 * be negative.
 */
export interface Balance {
  currency: string;
  pendingMinor: bigint;
  availableMinor: bigint;
  /** Matured amounts that open refunds and disputes may reverse. */
  reservedMinor: bigint;
  /** In payouts that the bank has not confirmed. */
  inTransitMinor: bigint;
  /** The commissions in the first three amounts: a payout debits each account separately. */
  referrer: { pendingMinor: bigint; availableMinor: bigint; reservedMinor: bigint };
}

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
