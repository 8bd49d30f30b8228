import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";

/** Limits what an account runs at the same time in this process. */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #why: (most: number) => string;
  readonly #taken = new Map<string, number>();

  constructor(most: number, why: string | ((most: number) => string)) {
    this.#most = most;
    this.#why = typeof why === "string" ? () => why : why;
  }

  /** Acquires a permit. Returns the function that releases it. */
  acquire(who: string, most = this.#most): () => void {
    const taken = this.#taken.get(who) ?? 0;
    if (taken >= most) throw new ApiError("RATE_LIMIT_EXCEEDED", this.#why(most), undefined, 1);
    this.#taken.set(who, taken + 1);
    return () => {
      const left = required(this.#taken.get(who), "the count of a caller") - 1;
      if (left === 0) this.#taken.delete(who);
      else this.#taken.set(who, left);
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
