import type pg from "pg";
import type { Logger } from "pino";

const SYNC_EVERY_MS = 10_000;
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
  return { databaseMs: rows[0]!.ms + roundTripMs / 2, roundTripMs };
}

/** By how many milliseconds this machine's clock is ahead of the database's. */
export async function measureSkew(pool: pg.Pool): Promise<number> {
  const { databaseMs } = await readDatabaseClock(pool);
  return Date.now() - databaseMs;
}

/**
 * The time of the database, which all processes share. It is read every ten seconds and goes on by the monotonic clock in
 * between, so that neither a wrong clock of this machine nor a database that is away moves a lease.
 */
export class DatabaseClock {
  readonly #pool: pg.Pool;
  #databaseMs = Number.NaN;
  #readAt = 0;
  #lastMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  readonly now = (): Date => {
    const ms = this.#nowMs();
    if (ms > this.#lastMs || this.#lastMs - ms > LARGEST_HOLD_MS) this.#lastMs = ms;
    return new Date(this.#lastMs);
  };

  /** Reads the database's clock, and from then on every ten seconds. */
  async start(log: Logger): Promise<void> {
    await this.sync();
    const sync = () =>
      this.sync().catch((error) => log.debug({ err: error }, "the database's clock could not be read"));
    this.#timer = setInterval(sync, SYNC_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async sync(): Promise<void> {
    const { databaseMs, roundTripMs } = await readDatabaseClock(this.#pool);
    // What lies within the error of the reading is no difference.
    if (Math.abs(databaseMs - this.#nowMs()) <= roundTripMs / 2) return;
    this.#databaseMs = databaseMs;
    this.#readAt = performance.now();
  }

  #nowMs = (): number => this.#databaseMs + (performance.now() - this.#readAt);
}
