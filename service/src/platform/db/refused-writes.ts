import type pg from "pg";
import { DISK_FULL, READ_ONLY_SQL_TRANSACTION } from "./sql-state.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Writes that the database refused recently, for `/readyz`. */
    refusedWrites: RefusedWrites;
  }
}

/** PostgreSQL's errors for writes, and their meaning. */
const REASONS: Record<string, string> = {
  [READ_ONLY_SQL_TRANSACTION]: "the database is read-only",
  [DISK_FULL]: "the disk of the database is full",
};
/** How long a refused write counts when the trial write fails for another reason. */
const REMEMBERED_MS = 10_000;

// Writes a megabyte of new pages to the tables' disk, since temporary files may be elsewhere. One message with several
// statements is one transaction.
const TRIAL = `
  set local temp_tablespaces = '';
  create temporary table trial_of_disk_space on commit drop as select generate_series(1, 30000) as n`;

/**
 * Records refused writes, the only sign of a full disk. One large statement can fill the disk for a moment, so a trial
 * write must confirm it.
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

  /** null: writes succeed. */
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
