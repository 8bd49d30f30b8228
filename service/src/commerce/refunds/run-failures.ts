import type { RefundRuns } from "@stoa/contract";
import { wilsonInterval } from "@stoa/evaluation/statistics";
import type { Queries } from "../../platform/db/database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Registered in base.ts: commerce does not import executions. */
    countRunFailures: CountRunFailures;
  }
}

/** Counts ended runs of a product on providers that the buyer does not operate, without failures that the buyer or their key caused. */
export type CountRunFailures = (
  db: Queries,
  sale: { productId: string; buyerId: string; sellerId: string; boughtAt: Date; since: Date },
) => Promise<RunFailures>;

interface RunCount {
  runs: number;
  failed: number;
}

/** As in `refunds.runs`. */
export interface RunFailures {
  /** Since the purchase, `boughtAt`. */
  buyer: RunCount;
  /** Of all other buyers, after `since`. */
  others: RunCount;
}

/** A share of fewer runs says nothing. */
const LEAST_RUNS = 5;

/**
 * Whether the 95 % Wilson interval of the buyer's failed share lies above that of the other buyers. Without runs of others, their interval is
 * 0 to 1, so that nothing lies above it.
 */
export function failsMoreOften({ buyer, others }: RunFailures): boolean {
  if (buyer.runs < LEAST_RUNS) return false;
  return intervalOf(buyer).low > intervalOf(others).high;
}

const intervalOf = ({ runs, failed }: RunCount) =>
  runs === 0 ? { low: 0, high: 1 } : wilsonInterval(failed, runs);

export const toRefundRuns = (failures: RunFailures): RefundRuns => ({
  buyer: { ...failures.buyer, interval: shownInterval(failures.buyer) },
  others: { ...failures.others, interval: shownInterval(failures.others) },
  failsMoreOften: failsMoreOften(failures),
});

const shownInterval = (count: RunCount) => (count.runs === 0 ? null : intervalOf(count));
