import { isDatabaseUnavailable } from "./database.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** How long the database has been available to this process. */
    databaseUptime: DatabaseUptime;
  }
}

/** Statements of a job run take milliseconds: a slower one waited for the database to come back. */
const SLOW_MS = 5_000;

/**
 * Tracks since when the database answers without interruption. After an outage all leases have expired, also those of
 * live processes. Lease holders get time to renew before other processes take over.
 */
export class DatabaseUptime {
  readonly #now: () => Date;
  #upSince: Date;

  constructor(now: () => Date) {
    this.#now = now;
    this.#upSince = now();
  }

  /** `round` must query the database, which shows whether it is available. */
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
