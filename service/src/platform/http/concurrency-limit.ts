import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";

/** Limits what an account runs at the same time in this process. */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #why: (most: number) => string;
  readonly #counts = new Map<string, number>();

  constructor(most: number, why: string | ((most: number) => string)) {
    this.#most = most;
    this.#why = typeof why === "string" ? () => why : why;
  }

  /** Acquires a permit. Returns the function that releases it. */
  acquire(who: string, most = this.#most): () => void {
    const count = this.#counts.get(who) ?? 0;
    if (count >= most) throw new ApiError("RATE_LIMIT_EXCEEDED", this.#why(most), undefined, 1);
    this.#counts.set(who, count + 1);
    return () => {
      const remaining = required(this.#counts.get(who), "the count of a caller") - 1;
      if (remaining === 0) this.#counts.delete(who);
      else this.#counts.set(who, remaining);
    };
  }

  async run<T>(who: string, work: () => Promise<T>): Promise<T> {
    const leave = this.acquire(who);
    try {
      return await work();
    } finally {
      leave();
    }
  }
}
