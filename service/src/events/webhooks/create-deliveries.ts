import type { Context } from "../../core/context.ts";
import { fanOutEvents } from "./delivery-queries.ts";

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

/**
 * Numbers the new events and creates their deliveries. One worker at a time does this. Returns how many events it
 * handled.
 */
export async function createDeliveries(
  ctx: Context,
  cursor: FanOutCursor = { after: null },
): Promise<number> {
  const { handled, lastAccount } = await fanOutEvents(ctx.pool, ctx, { ...BATCH_LIMITS, ...cursor });
  cursor.after = lastAccount;
  return handled;
}
