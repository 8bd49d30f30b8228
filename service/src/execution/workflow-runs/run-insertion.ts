import type { FirstSteps } from "./run-queries.ts";

/** The insertion of a run by its driver, for which a request waits. */
export class RunInsertion {
  readonly #write: (first: FirstSteps | null) => Promise<boolean>;
  readonly #inserted = Promise.withResolvers<boolean>();

  constructor(write: (first: FirstSteps | null) => Promise<boolean>) {
    this.#write = write;
  }

  /** False: nothing is inserted, because the target of the run has changed or its worker has stopped. */
  get inserted(): Promise<boolean> {
    return this.#inserted.promise;
  }

  /** Inserts the run. False: the driver must leave it. An error is that of the request. */
  write(first: FirstSteps | null): Promise<boolean> {
    const written = this.#write(first);
    this.#inserted.resolve(written);
    return written.catch(() => false);
  }

  /** The driver has left the run. */
  close(): void {
    this.#inserted.resolve(false);
  }
}
