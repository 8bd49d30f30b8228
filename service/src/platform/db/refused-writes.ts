import type pg from "pg";

declare module "../../core/context.ts" {
  interface Context {
    /** Writes that the database refused lately, for `/readyz`. */
    refusedWrites: RefusedWrites;
  }
}

/** What PostgreSQL answers to writes while it takes none, and what that means. */
const REASONS: Record<string, string> = {
  "25006": "the database is read-only",
  "53100": "the disk of the database is full",
};
/** How long a refused write counts where no trial write can be made. */
const REMEMBERED_MS = 10_000;

// A megabyte of new pages beside the tables, wherever PostgreSQL has its other temporary files; in the one transaction of a message
// with several statements.
const TRIAL = `
  set local temp_tablespaces = '';
  create temporary table trial_of_disk_space on commit drop as select generate_series(1, 30000) as n`;

/**
 * Writes that the database lately refused: a full disk shows itself in nothing else. A single large statement can fill the disk for a
 * moment, so a trial write has to confirm it.
 */
export class RefusedWrites {
  readonly #pool: pg.Pool;
  readonly #now: () => Date;
  #last: { reason: string; at: number } | null = null;
  #trial: Promise<void> | null = null;

  constructor(pool: pg.Pool, now: () => Date) {
    this.#pool = pool;
    this.#now = now;
  }

  record(error: unknown): void {
    const reason = reasonOf(error);
    if (reason) this.#last = { reason, at: this.#now().getTime() };
  }

  /** Why writes are refused at this moment; null: they are not. */
  async findReason(): Promise<string | null> {
    if (!this.#last) return null;
    this.#trial ??= this.#tryToWrite().finally(() => {
      this.#trial = null;
    });
    await this.#trial;
    return this.#last?.reason ?? null;
  }

  async #tryToWrite(): Promise<void> {
    const before = this.#last;
    try {
      await this.#pool.query(TRIAL);
      if (this.#last === before) this.#last = null;
    } catch (error) {
      if (reasonOf(error)) this.record(error);
      else if (this.#last && this.#now().getTime() - this.#last.at >= REMEMBERED_MS) this.#last = null;
    }
  }
}

const reasonOf = (error: unknown): string | undefined => REASONS[(error as { code?: string }).code ?? ""];
