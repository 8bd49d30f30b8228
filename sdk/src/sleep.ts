import { AbortError } from "./errors.ts";

export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new AbortError("The call was aborted"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Milliseconds before the next try: they double with each, and half of them is random ("equal jitter": Brooker, "Exponential Backoff and Jitter", 2015). */
export function backoffMs(attempt: number, { firstMs, maxMs }: { firstMs: number; maxMs: number }): number {
  const ms = Math.min(firstMs * 2 ** attempt, maxMs);
  return ms / 2 + (Math.random() * ms) / 2;
}
