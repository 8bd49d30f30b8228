/** What a provider was paid for waits no longer to be written down. */
export const CHECKPOINT_DELAY_MS = 5;

/** Whether something comes within a time. */
export async function settlesWithin(ms: number, what: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, ms, false);
  try {
    return await Promise.race([what.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
