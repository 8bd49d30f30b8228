import type { Context } from "../context.ts";
import {
  insertDeliveries,
  listUntoldEvents,
  lockLanes,
  numberEvents,
  takeFanOutLock,
} from "./delivery-queries.ts";

/** Events at once: a few milliseconds of work, so that nobody waits long for the lanes. */
const BATCH = 300;

/**
 * Writes a delivery of each event that nobody was told of yet for each endpoint that wants it, and gives the event its number, in one
 * transaction: killed at any point, it is done again or was done. One worker does it at a time. Answers how many events it saw.
 */
export async function fanOut(ctx: Context): Promise<number> {
  return ctx.db.transaction().execute(async (tx) => {
    if (!(await takeFanOutLock(tx))) return 0;
    const { eventIds, wanted } = await listUntoldEvents(tx, BATCH);
    if (eventIds.length === 0) return 0;
    // Whoever switches an endpoint off holds its lane: what is read of it from now on stays true until the commit.
    await lockLanes(tx, [...new Set(wanted.map(({ endpointId }) => endpointId))]);
    await insertDeliveries(
      tx,
      wanted.map((pair) => ({ id: ctx.newId(), ...pair })),
      ctx.now(),
    );
    await numberEvents(tx, eventIds);
    return eventIds.length;
  });
}
