import type { Logger } from "pino";
import type { Counters } from "./counters.ts";

const ANSWER_MS = 500;
/** How long a store that failed is left alone: requests shall not wait for it one by one. */
const ASK_AGAIN_MS = 2_000;

/** Counts in `shared`; while that does not answer in `own`, this process for itself, and says so in the log once. */
export function insuredCounters(
  shared: Counters,
  own: Counters,
  { now, log }: { now: () => Date; log: Logger },
): Counters {
  let askAgainAt = 0;

  function lost(error: unknown): void {
    if (askAgainAt === 0) {
      log.error(
        { err: error },
        "the store of the rate limits does not answer: this process counts for itself",
      );
    }
    askAgainAt = now().getTime() + ASK_AGAIN_MS;
  }

  function found(): void {
    if (askAgainAt === 0) return;
    askAgainAt = 0;
    log.info("the store of the rate limits answers again");
  }

  async function ask<T>(question: (counters: Counters) => Promise<T>): Promise<T> {
    const at = now().getTime();
    if (at < askAgainAt) return question(own);
    // One asks for all: the others shall not wait for a store that may still be away.
    if (askAgainAt !== 0) askAgainAt = at + ASK_AGAIN_MS;
    try {
      const answer = await soon(question(shared));
      found();
      return answer;
    } catch (error) {
      lost(error);
      return question(own);
    }
  }

  return {
    take: (allowance) => ask((counters) => counters.take(allowance)),
    peek: (allowance) => ask((counters) => counters.peek(allowance)),
    close: () => shared.close(),
  };
}

function soon<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer within ${ANSWER_MS} ms`));
    const timer = setTimeout(late, ANSWER_MS);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
