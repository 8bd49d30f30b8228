import type { Context } from "../../core/context.ts";
import { isDatabaseUnavailable, retryWhileUnavailable } from "../../platform/db/database.ts";

/**
 * Records a fact that must not be lost, such as a billed call. It retries once at once, because a pooled connection may be dead,
 * then in the background until the database answers. `write` may run twice. Never rejects. `onDelayed` gets the promise of a later
 * write.
 */
export async function writeDurably(
  ctx: Context,
  what: Record<string, string>,
  write: () => Promise<unknown>,
  onDelayed: (written: Promise<unknown>) => void = () => {},
): Promise<void> {
  const logFailure = (error: unknown) =>
    ctx.log.error({ ...what, err: error }, "a durable write failed and is lost");
  const tryLater = (error: unknown) => {
    if (!isDatabaseUnavailable(error)) return logFailure(error);
    ctx.log.warn({ ...what, err: error }, "the database is unavailable: a durable write is retried later");
    onDelayed(retryWhileUnavailable(ctx.shutdown, write).catch(logFailure));
  };
  await write().catch((error) =>
    isDatabaseUnavailable(error) ? write().catch(tryLater) : logFailure(error),
  );
}
