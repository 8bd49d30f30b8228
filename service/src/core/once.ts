/**
 * Caches the result of the first call and retries after a failure. Lazy creation saves the cost of a library that is never used, and the
 * listening address is known by then.
 */
export function once<T>(create: () => Promise<T>): () => Promise<T> {
  let cached: Promise<T> | undefined;
  return () => {
    cached ??= create().catch((error) => {
      cached = undefined;
      throw error;
    });
    return cached;
  };
}
