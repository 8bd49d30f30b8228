import type pg from "pg";
import type { Logger } from "pino";
import { firstOf } from "../../core/required.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** The difference between this machine's clock and the database's. */
    clock: SkewedClock;
  }
}

const SYNC_EVERY_MS = 5_000;
/** Above this, a machine runs no work: receivers and providers would refuse its timestamps. */
export const MAX_SKEW_MS = 60_000;
/** On a smaller step back, the clock stands still until the time has passed, so that time never runs backwards. */
const LARGEST_HOLD_MS = 1_000;

interface Reading {
  /** The database's time in milliseconds since 1970. */
  databaseMs: number;
  /** The duration of the query: the reading is exact to half of it. */
  roundTripMs: number;
}

async function readDatabaseClock(pool: pg.Pool): Promise<Reading> {
  const sentAt = performance.now();
  const { rows } = await pool.query<{ ms: number }>(
    "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
  );
  const roundTripMs = performance.now() - sentAt;
  return { databaseMs: firstOf(rows).ms + roundTripMs / 2, roundTripMs };
}

/** The milliseconds by which this machine's clock is ahead of the database's. */
export async function measureSkew(pool: pg.Pool): Promise<number> {
  const { databaseMs } = await readDatabaseClock(pool);
  return Date.now() - databaseMs;
}

/**
 * The database's time, which all processes share. Read every five seconds, with the monotonic clock in between. So
 * neither a wrong clock of this machine nor a database outage changes leases.
 */
export class DatabaseClock {
  readonly #pool: pg.Pool;
  #databaseMs = Number.NaN;
  #readAt = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #skewMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #onSync: () => void = () => {};

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  readonly now = (): Date => {
    const ms = this.#nowMs();
    if (ms > this.#lastMs || this.#lastMs - ms > LARGEST_HOLD_MS) this.#lastMs = ms;
    return new Date(this.#lastMs);
  };

  async start(log: Logger): Promise<void> {
    await this.sync();
    const sync = () =>
      this.sync().catch((error) => log.debug({ err: error }, "the database's clock could not be read"));
    this.#timer = setInterval(sync, SYNC_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** At the last reading. */
  get skewMs(): number {
    return this.#skewMs;
  }

  /** Calls `listener` after each reading. */
  onSync(listener: () => void): void {
    this.#onSync = listener;
  }

  async sync(): Promise<void> {
    const { databaseMs, roundTripMs } = await readDatabaseClock(this.#pool);
    this.#skewMs = Date.now() - databaseMs;
    this.#onSync();
    // A difference within the reading's error is ignored.
    if (Math.abs(databaseMs - this.#nowMs()) <= roundTripMs / 2) return;
    this.#databaseMs = databaseMs;
    this.#readAt = performance.now();
  }

  #nowMs = (): number => this.#databaseMs + (performance.now() - this.#readAt);
}

export type SkewedClock = Pick<DatabaseClock, "skewMs" | "onSync" | "sync">;

/** For a process with a fixed clock. */
export const exactClock: SkewedClock = { skewMs: 0, onSync: () => {}, sync: async () => {} };

/** The reason why a process with a wrong clock does no work; null: the difference is small. */
export function describeSkew(skewMs: number): string | null {
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return null;
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  return `the clock of this machine is ${seconds} s ${skewMs < 0 ? "behind" : "ahead of"} the database's, so its workers do not run: set both machines' clocks by NTP`;
}
