import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../context.ts";
import { isDatabaseDown } from "../db/database.ts";

/** Each pause is twice the one before: a minute and a half in all, well within the lease of what ends. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSES = 11;

/**
 * Writes down what has happened and cannot be taken back, such as a call that somebody is billed for. While the database is
 * away it is tried again: once more at once, since a pool may hold a connection that is gone, then behind whoever waits,
 * who gets the answer all the same. `write` may be done twice. Never rejects.
 */
export async function record(
  ctx: Context,
  what: Record<string, string>,
  write: () => Promise<unknown>,
): Promise<void> {
  const tries = () => isWritten(ctx, what, write);
  if (!((await tries()) || (await tries()))) void tryLater(ctx, what, tries);
}

async function tryLater(
  ctx: Context,
  what: Record<string, string>,
  tries: () => Promise<boolean>,
): Promise<void> {
  for (let pauses = 0; pauses < MAX_PAUSES && !ctx.shutdown.aborted; pauses++) {
    const pauseMs = FIRST_PAUSE_MS * 2 ** pauses;
    await sleep(pauseMs, null, { signal: ctx.shutdown, ref: false }).catch(() => {});
    if (await tries()) return;
  }
  ctx.log.error(what, "what the database was away for was never recorded");
}

/** False: the database is away, and it may be tried again. */
async function isWritten(
  ctx: Context,
  what: Record<string, string>,
  write: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    const isAway = isDatabaseDown(error);
    ctx.log[isAway ? "warn" : "error"]({ ...what, err: error }, "how something ended could not be recorded");
    return !isAway;
  }
}
