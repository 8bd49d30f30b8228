/** What PostgreSQL answers to writes while it takes none, and what that means. */
const REASONS: Record<string, string> = {
  "25006": "the database is read-only",
  "53100": "the disk of the database is full",
};
const REMEMBERED_MS = 10_000;

/** Writes that the database lately refused: a full disk shows itself in nothing else. */
export class RefusedWrites {
  readonly #now: () => Date;
  #last: { reason: string; at: number } | null = null;

  constructor(now: () => Date) {
    this.#now = now;
  }

  note(error: unknown): void {
    const reason = REASONS[(error as { code?: string }).code ?? ""];
    if (reason) this.#last = { reason, at: this.#now().getTime() };
  }

  /** The reason of the last one; null: none in the last seconds. */
  get recent(): string | null {
    return this.#last && this.#now().getTime() - this.#last.at < REMEMBERED_MS ? this.#last.reason : null;
  }
}
