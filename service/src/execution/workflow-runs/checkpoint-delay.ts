/** A result that was paid for waits no longer for its checkpoint. */
export const CHECKPOINT_DELAY_MS = 5;

export async function settlesWithin(ms: number, what: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, ms, false);
  try {
    return await Promise.race([what.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
