import type { Context } from "../../core/context.ts";
import { fanOutEvents } from "./delivery-queries.ts";

/** Events at once: a few milliseconds of work, so that nobody waits long for the lanes. */
const BATCH_LIMITS = {
  /** However many accounts there are, the oldest events come first; those that no account sees are among them. */
  oldest: 100,
  byAccount: 200,
};

/** Whose turn it is: the accounts after this one; null: from the first. */
export interface FanOutCursor {
  after: string | null;
}

/**
 * Creates the deliveries of events that have none yet, and gives each event its number. One worker does so at a time. Returns how many
 * events it handled.
 */
export async function createDeliveries(ctx: Context, turn: FanOutCursor = { after: null }): Promise<number> {
  const { handled, lastAccount } = await fanOutEvents(ctx.pool, ctx, { ...BATCH_LIMITS, ...turn });
  turn.after = lastAccount;
  return handled;
}
