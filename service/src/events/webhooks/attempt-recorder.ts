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

/** The statement that recorded the attempt committed, but its response was lost with the connection. */
const isRecordedAlready = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.constraint === "webhook_attempts_pkey";

interface WaitingAttempt {
  recorded: RecordedAttempt;
  resolve: () => void;
}

/** Records attempts in batches: with the polls of a running worker, or by statements of its own, one after another. */
export class AttemptRecorder {
  readonly #ctx: Context;
  #waiting: WaitingAttempt[] = [];
  #isPolled = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Attempts that wait for the next batch. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** From now on polls record the attempts: a statement beside them would wait for their locks of the queues. */
  startPolls(): void {
    this.#isPolled = true;
  }

  endPolls(): Promise<void> {
    this.#isPolled = false;
    return this.flush();
  }

  /** Resolves when the attempt is recorded or dropped. A dropped attempt is repeated when its lease has expired. */
  add(recorded: RecordedAttempt): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ recorded, resolve });
    if (this.#isPolled) return promise;
    if (this.#waiting.length >= BATCH_SIZE) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
    return promise;
  }

  /**
   * Passes the waiting attempts to `poll`, which records them by its own statement. A statement of the recorder, for which no poll waits,
   * records those that the poll left unrecorded, those that disable an endpoint, and those of a poll that failed.
   */
  async recordBy<Work extends { unrecorded: RecordedAttempt[] }>(
    poll: (attempts: RecordedAttempt[]) => Promise<Work>,
  ): Promise<Work> {
    const batch = this.#removeWaiting();
    const simple = batch.filter(({ recorded }) => !recorded.result.isGone);
    let unrecorded = batch;
    try {
      const work = await poll(simple.map(({ recorded }) => recorded));
      const refused = new Set(work.unrecorded);
      unrecorded = batch.filter(({ recorded }) => recorded.result.isGone || refused.has(recorded));
      return work;
    } finally {
      const remaining = new Set(unrecorded);
      for (const waiting of batch) if (!remaining.has(waiting)) waiting.resolve();
      if (unrecorded.length > 0) void this.#write(unrecorded);
    }
  }

  /** Resolves when all added attempts are recorded or dropped. */
  flush(): Promise<void> {
    return this.#write(this.#removeWaiting());
  }

  #removeWaiting(): WaitingAttempt[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#waiting.splice(0);
  }

  #write(batch: WaitingAttempt[]): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      if (batch.length > 0) await this.#record(batch.map(({ recorded }) => recorded));
      for (const { resolve } of batch) resolve();
    });
    return this.#writing;
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
      if (isRecordedAlready(error)) return;
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
