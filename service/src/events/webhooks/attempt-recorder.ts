import pg from "pg";
import type { Context } from "../../core/context.ts";
import { type RecordedAttempt, recordAttempts } from "./delivery-queries.ts";
import { disableGoneEndpoint } from "./endpoint-health.ts";

/** One transaction for each result would be most of the work. */
const BATCH_SIZE = 50;
const FLUSH_AFTER_MS = 5;

/** PostgreSQL refused a value, a reference is broken or a deadlock occurred: a fault of a row, not of the connection. */
const isRowError = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && /^(22|23|40)/.test(error.code ?? "");

/** Records attempts in batches, one batch after another. */
export class AttemptRecorder {
  readonly #ctx: Context;
  #waiting: { recorded: RecordedAttempt; resolve: () => void }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Resolves when the attempt is recorded or dropped. A dropped attempt is repeated when its lease has expired. */
  add(recorded: RecordedAttempt): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ recorded, resolve });
    if (this.#waiting.length >= BATCH_SIZE) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
    return promise;
  }

  /** Resolves when all added attempts are recorded or dropped. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const batch = this.#waiting.splice(0);
    if (batch.length === 0) return;
    await this.#record(batch.map(({ recorded }) => recorded));
    for (const { resolve } of batch) resolve();
  }

  async #record(batch: RecordedAttempt[]): Promise<void> {
    try {
      if (batch.some(({ result }) => result.isGone)) await this.#recordAndDisable(batch);
      else await recordAttempts(this.#ctx.db, batch);
    } catch (error) {
      // One row that PostgreSQL refuses must not lose the others.
      if (batch.length > 1 && isRowError(error)) {
        for (const one of batch) await this.#record([one]);
        return;
      }
      this.#ctx.log.warn(
        { attempts: batch.length, err: error },
        "attempts could not be recorded; they will be repeated",
      );
    }
  }

  #recordAndDisable(batch: RecordedAttempt[]): Promise<void> {
    return this.#ctx.db.transaction().execute(async (tx) => {
      const accepted = await recordAttempts(tx, batch);
      const goneResults = batch.filter(({ attempt, result }) => result.isGone && accepted.has(attempt.id));
      for (const { delivery } of goneResults)
        await disableGoneEndpoint(this.#ctx, tx, delivery.endpointId, delivery.url);
    });
  }
}
