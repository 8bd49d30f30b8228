/** What a provider was paid for waits no longer to be written down. */
export const SOON_MS = 5;

/** Whether something comes within a time. */
export async function comesWithin(ms: number, what: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, ms, false);
  try {
    return await Promise.race([what.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
