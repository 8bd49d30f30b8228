import type { Context } from "../../core/context.ts";
import {
  type ClaimedDelivery,
  type ClaimLimits,
  createAndClaimDeliveries,
  type Lease,
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
  /** The number of events whose deliveries were created. */
  handled: number;
  claimed: ClaimedDelivery[];
  /** A queue of a slow endpoint is due. */
  hasSlow: boolean;
}

/**
 * Numbers the new events and creates their deliveries, which one worker at a time does, and claims due deliveries of endpoints that
 * are not slow.
 */
export async function createAndClaim(
  ctx: Context,
  cursor: FanOutCursor,
  lease: Lease,
  limits: Omit<ClaimLimits, "isSlow">,
): Promise<NewWork> {
  const batch = { ...BATCH_LIMITS, ...cursor };
  const { lastAccount, ...work } = await createAndClaimDeliveries(ctx.pool, ctx, batch, lease, limits);
  cursor.after = lastAccount;
  return work;
}

/** The same without claims. Returns how many events it handled. */
export async function createDeliveries(
  ctx: Context,
  cursor: FanOutCursor = { after: null },
): Promise<number> {
  const lease = { now: ctx.now(), token: ctx.newId(), until: ctx.now(), worker: null };
  const { handled } = await createAndClaim(ctx, cursor, lease, { limit: 0, perAccount: 0 });
  return handled;
}
