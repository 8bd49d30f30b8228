import { ApiError } from "../errors.ts";

/** So many come in at the same time from one account, in one process: what lies on the disk unfinished has a bound. */
const MAX_AT_ONCE = 20;

/** Who sends how many uploads at this moment. */
export class UploadSlots {
  readonly #taken = new Map<string, number>();

  async take<T>(who: string, work: () => Promise<T>): Promise<T> {
    const taken = this.#taken.get(who) ?? 0;
    if (taken >= MAX_AT_ONCE) {
      const why = `${MAX_AT_ONCE} uploads of yours are coming in already.`;
      throw new ApiError("RATE_LIMIT_EXCEEDED", why, undefined, 1);
    }
    this.#taken.set(who, taken + 1);
    try {
      return await work();
    } finally {
      const left = this.#taken.get(who)! - 1;
      if (left === 0) this.#taken.delete(who);
      else this.#taken.set(who, left);
    }
  }
}
