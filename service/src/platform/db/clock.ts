import type pg from "pg";
import type { Logger } from "pino";
import { firstOf } from "../../core/required.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** By how much the machine's clock differs from the database's, which `now()` returns. */
    clock: SkewedClock;
  }
}

const SYNC_EVERY_MS = 5_000;
/** A machine whose clock is off by more is not trusted with work: receivers and providers would refuse what it stamps. */
export const MAX_SKEW_MS = 60_000;
/** A smaller step back is held until the time has passed, so that what follows never seems to come before. */
const LARGEST_HOLD_MS = 1_000;

interface Reading {
  /** Of the database, in milliseconds since 1970. */
  databaseMs: number;
  /** How long the question was under way: the reading is exact to half of it. */
  roundTripMs: number;
}

async function readDatabaseClock(pool: pg.Pool): Promise<Reading> {
  const askedAt = performance.now();
  const { rows } = await pool.query<{ ms: number }>(
    "select extract(epoch from clock_timestamp())::float8 * 1000 as ms",
  );
  const roundTripMs = performance.now() - askedAt;
  return { databaseMs: firstOf(rows).ms + roundTripMs / 2, roundTripMs };
}

/** By how many milliseconds this machine's clock is ahead of the database's. */
export async function measureSkew(pool: pg.Pool): Promise<number> {
  const { databaseMs } = await readDatabaseClock(pool);
  return Date.now() - databaseMs;
}

/**
 * The time of the database, which all processes share. It is read every five seconds and goes on by the monotonic clock in
 * between, so that neither a wrong clock of this machine nor a database that is away moves a lease.
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

  /** Reads the database's clock, and from then on every five seconds. */
  async start(log: Logger): Promise<void> {
    await this.sync();
    const sync = () =>
      this.sync().catch((error) => log.debug({ err: error }, "the database's clock could not be read"));
    this.#timer = setInterval(sync, SYNC_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** By how many milliseconds the machine's clock was ahead of the database's when that was last read. */
  get skewMs(): number {
    return this.#skewMs;
  }

  /** Calls back whenever the database's clock was read. */
  onSync(listener: () => void): void {
    this.#onSync = listener;
  }

  async sync(): Promise<void> {
    const { databaseMs, roundTripMs } = await readDatabaseClock(this.#pool);
    this.#skewMs = Date.now() - databaseMs;
    this.#onSync();
    // What lies within the error of the reading is no difference.
    if (Math.abs(databaseMs - this.#nowMs()) <= roundTripMs / 2) return;
    this.#databaseMs = databaseMs;
    this.#readAt = performance.now();
  }

  #nowMs = (): number => this.#databaseMs + (performance.now() - this.#readAt);
}

/** What a process asks of its clock. */
export type SkewedClock = Pick<DatabaseClock, "skewMs" | "onSync" | "sync">;

/** Of a process whose time is given. */
export const exactClock: SkewedClock = { skewMs: 0, onSync: () => {}, sync: async () => {} };

/** Why a process whose machine's clock is off does no work; null: it is not off by much. */
export function describeSkew(skewMs: number): string | null {
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return null;
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  return `the clock of this machine is ${seconds} s ${skewMs < 0 ? "behind" : "ahead of"} the database's, so its workers do not run: set both machines' clocks by NTP`;
}
