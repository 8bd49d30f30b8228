import type { Logger } from "pino";
import type { RateLimitCounters } from "./counters.ts";

const TIMEOUT_MS = 500;
/** How long a store that failed is left alone: requests shall not wait for it one by one. */
const RETRY_AFTER_MS = 2_000;

/** Counts in `shared`; while that does not answer in `own`, this process for itself, and says so in the log once. */
export function createFallbackCounters(
  shared: RateLimitCounters,
  own: RateLimitCounters,
  { now, log }: { now: () => Date; log: Logger },
): RateLimitCounters {
  let askAgainAt = 0;

  function lost(error: unknown): void {
    if (askAgainAt === 0) {
      log.error(
        { err: error },
        "the store of the rate limits does not answer: this process counts for itself",
      );
    }
    askAgainAt = now().getTime() + RETRY_AFTER_MS;
  }

  function found(): void {
    if (askAgainAt === 0) return;
    askAgainAt = 0;
    log.info("the store of the rate limits answers again");
  }

  async function ask<T>(question: (counters: RateLimitCounters) => Promise<T>): Promise<T> {
    const at = now().getTime();
    if (at < askAgainAt) return question(own);
    // One asks for all: the others shall not wait for a store that may still be away.
    if (askAgainAt !== 0) askAgainAt = at + RETRY_AFTER_MS;
    try {
      const answer = await withTimeout(question(shared));
      found();
      return answer;
    } catch (error) {
      lost(error);
      return question(own);
    }
  }

  return {
    consume: (allowance) => ask((counters) => counters.consume(allowance)),
    peek: (allowance) => ask((counters) => counters.peek(allowance)),
    close: () => shared.close(),
  };
}

function withTimeout<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer within ${TIMEOUT_MS} ms`));
    const timer = setTimeout(late, TIMEOUT_MS);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
