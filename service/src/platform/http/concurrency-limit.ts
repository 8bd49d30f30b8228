import { ApiError } from "../../core/errors.ts";
import { required } from "../../core/required.ts";

/** How much of one kind an account has going on at this moment, in this process: what that takes of it has a bound. */
export class ConcurrencyLimit {
  readonly #most: number;
  readonly #why: (most: number) => string;
  readonly #taken = new Map<string, number>();

  constructor(most: number, why: string | ((most: number) => string)) {
    this.#most = most;
    this.#why = typeof why === "string" ? () => why : why;
  }

  /** Takes one, of as many as all may have unless it is said; what is answered gives it back. */
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
