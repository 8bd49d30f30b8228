import type { Context } from "../../core/context.ts";
import {
  type ClaimedDelivery,
  type ClaimLimits,
  type Lease,
  pollDeliveries,
  type RecordedAttempt,
} from "./delivery-queries.ts";

/** A few milliseconds of work, so that no transaction waits long for the queues. */
const BATCH_LIMITS = {
  /**
   * The oldest events come first whatever account they belong to, so that events without a recipient are handled, too.
   */
  oldest: 100,
  byAccount: 200,
};

/** The accounts after this one are next; null: start with the first. */
export interface FanOutCursor {
  after: string | null;
}

interface NewWork {
  /** Attempts that a lock or a refused row kept from being recorded. */
  unrecorded: RecordedAttempt[];
  /** The number of events whose deliveries were created. */
  handled: number;
  claimed: ClaimedDelivery[];
  /** A queue of a slow endpoint is due. */
  hasSlow: boolean;
}

/**
 * Records attempts, numbers the new events and creates their deliveries, which one worker at a time does, and claims due deliveries of
 * endpoints that are not slow.
 */
export async function recordCreateAndClaim(
  ctx: Context,
  cursor: FanOutCursor,
  lease: Lease,
  limits: Omit<ClaimLimits, "isSlow">,
  attempts: RecordedAttempt[] = [],
): Promise<NewWork> {
  const batch = { ...BATCH_LIMITS, ...cursor };
  const { lastAccount, ...work } = await pollDeliveries(ctx.pool, ctx, batch, lease, limits, attempts);
  cursor.after = lastAccount;
  return work;
}

/** Only creates deliveries. Returns how many events it handled. */
export async function createDeliveries(
  ctx: Context,
  cursor: FanOutCursor = { after: null },
): Promise<number> {
  const lease = { now: ctx.now(), token: ctx.newId(), until: ctx.now(), worker: null };
  const { handled } = await recordCreateAndClaim(ctx, cursor, lease, { limit: 0, perAccount: 0 });
  return handled;
}
