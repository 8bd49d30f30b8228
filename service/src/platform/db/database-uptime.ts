import { isDatabaseUnavailable } from "./database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Since when the database has been there, as far as this process knows. */
    databaseUptime: DatabaseUptime;
  }
}

/** A statement of a round takes milliseconds: one that took so long waited until the database was back. */
const SLOW_MS = 5_000;

/**
 * Since when the database has answered this process without a break. After an outage all leases are over, also those of processes that live
 * and hold what is to be recorded: nobody judges by a lease until all had the time to renew theirs.
 */
export class DatabaseUptime {
  readonly #now: () => Date;
  #upSince: Date;

  constructor(now: () => Date) {
    this.#now = now;
    this.#upSince = now();
  }

  /** A round that asks the database in any case, and shows whether it is there. */
  async track<T>(round: () => Promise<T>): Promise<T> {
    const begunAt = performance.now();
    try {
      const result = await round();
      if (performance.now() - begunAt > SLOW_MS) this.#upSince = this.#now();
      return result;
    } catch (error) {
      if (isDatabaseUnavailable(error)) this.#upSince = this.#now();
      throw error;
    }
  }

  hasBeenUpFor(ms: number): boolean {
    return this.#now().getTime() - this.#upSince.getTime() >= ms;
  }
}
