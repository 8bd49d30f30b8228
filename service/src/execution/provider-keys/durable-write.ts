import type { Context } from "../../core/context.ts";
import { isDatabaseUnavailable, retryWhileUnavailable } from "../../platform/db/database.ts";

/**
 * Writes down what has happened and cannot be taken back, such as a call that somebody is billed for. While the database is
 * away it is held and tried again: once more at once, since a pool may hold a connection that is gone, then behind whoever waits,
 * who gets the answer all the same. `write` may be done twice. Never rejects. `onHeld` gets the end of what is written later.
 */
export async function writeDurably(
  ctx: Context,
  what: Record<string, string>,
  write: () => Promise<unknown>,
  onHeld: (written: Promise<unknown>) => void = () => {},
): Promise<void> {
  const fails = (error: unknown) =>
    ctx.log.error({ ...what, err: error }, "how something ended could not be recorded");
  const tryLater = (error: unknown) => {
    if (!isDatabaseUnavailable(error)) return fails(error);
    ctx.log.warn(
      { ...what, err: error },
      "the database is away: how something ended is held and written later",
    );
    onHeld(retryWhileUnavailable(ctx.shutdown, write).catch(fails));
  };
  await write().catch((error) => (isDatabaseUnavailable(error) ? write().catch(tryLater) : fails(error)));
}
