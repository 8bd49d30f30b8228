import type { Logger } from "pino";
import type { ConsumeResult, RateLimitCounters, RateLimitKey, RateLimitWindow } from "./counters.ts";

export const COUNT_TIMEOUT_MS = 500;
/** The pause after a failure, in which no request waits for the store. */
const RETRY_AFTER_MS = 2_000;

interface FallbackOptions {
  now: () => Date;
  log: Logger;
  /** The store rejects by itself after COUNT_TIMEOUT_MS: a timer for each request would cost as much as its count. */
  hasOwnTimeout?: boolean;
}

/** Counts in `shared`, and in `own` while `shared` does not answer. Logs each change once. */
export class FallbackCounters implements RateLimitCounters {
  readonly #shared: RateLimitCounters;
  readonly #own: RateLimitCounters;
  readonly #options: FallbackOptions;
  /** 0: the store answers. */
  #retryAt = 0;

  constructor(shared: RateLimitCounters, own: RateLimitCounters, options: FallbackOptions) {
    this.#shared = shared;
    this.#own = own;
    this.#options = options;
  }

  consume(allowance: RateLimitKey): Promise<ConsumeResult> {
    return this.#ask((counters) => counters.consume(allowance));
  }

  peek(allowance: RateLimitKey): Promise<RateLimitWindow[]> {
    return this.#ask((counters) => counters.peek(allowance));
  }

  close(): Promise<void> {
    return this.#shared.close();
  }

  async #ask<T>(question: (counters: RateLimitCounters) => Promise<T>): Promise<T> {
    const at = this.#options.now().getTime();
    if (at < this.#retryAt) return question(this.#own);
    // One request probes for all; the others do not wait.
    if (this.#retryAt !== 0) this.#retryAt = at + RETRY_AFTER_MS;
    try {
      const asked = question(this.#shared);
      const answer = await (this.#options.hasOwnTimeout ? asked : withTimeout(asked));
      this.#onAnswer();
      return answer;
    } catch (error) {
      this.#onFailure(error);
      return question(this.#own);
    }
  }

  #onAnswer(): void {
    if (this.#retryAt === 0) return;
    this.#retryAt = 0;
    this.#options.log.info("the store of the rate limits answers again");
  }

  #onFailure(error: unknown): void {
    const { log, now } = this.#options;
    if (this.#retryAt === 0)
      log.error(
        { err: error },
        "the store of the rate limits does not answer: this process counts for itself",
      );
    this.#retryAt = now().getTime() + RETRY_AFTER_MS;
  }
}

function withTimeout<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer within ${COUNT_TIMEOUT_MS} ms`));
    const timer = setTimeout(late, COUNT_TIMEOUT_MS);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
