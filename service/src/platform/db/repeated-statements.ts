/** As in the JDBC driver of PostgreSQL: a statement that is sent once or twice costs more prepared than not. */
const SENT_BEFORE = 5;
/** Each statement takes tens of kilobytes in each connection's server process. */
const MAX_NAMES = 256;
/** Forgets rare statements, such as those of lists with unusual filters. */
const MAX_COUNTED = 1_000;
const LONGEST_TEXT = 10_000;

const STATEMENT = /^\s*(?:select|insert|update|delete|with)\b/i;
/**
 * A plan for all values is as good as one for the values where rows are found by equality. With ranges, limits, arrays
 * and text search, it may be far worse.
 */
const VALUES_DECIDE_PLAN =
  /\b(?:order by|group by|limit|offset|any|like|ilike|between|starts_with)\b|@@|&&|[<>](?!>)(?<!<>)/i;
/** The index of a partial `on conflict` must be known without values. */
const PARTIAL_CONFLICT = /\bon conflict\s*\([^;]*?\)\s*where\b[^;]*?\$\d[^;]*?\bdo\b/i;
/** Its columns change with a migration, and PostgreSQL then refuses the plan of the older statement. */
const ALL_COLUMNS = /(?:\bselect|\breturning|,)\s+(?:"?\w+"?\.)?\*/i;

const isPreparable = (text: string): boolean =>
  STATEMENT.test(text) &&
  !VALUES_DECIDE_PLAN.test(text) &&
  !PARTIAL_CONFLICT.test(text) &&
  !ALL_COLUMNS.test(text);

/**
 * Names the statements that the connections of a pool repeat, so that each connection parses and plans them once. A name
 * stays with its text.
 */
export class RepeatedStatements {
  readonly #counts = new Map<string, number>();
  readonly #names = new Map<string, string>();

  /** null: sent too rarely, or not to be prepared. */
  nameOf(text: string): string | null {
    const name = this.#names.get(text);
    if (name !== undefined) return name;
    if (this.#names.size === MAX_NAMES || text.length > LONGEST_TEXT) return null;
    const count = (this.#counts.get(text) ?? 0) + 1;
    if (count > SENT_BEFORE) return this.#giveName(text);
    if (this.#counts.size === MAX_COUNTED) this.#counts.clear();
    this.#counts.set(text, count);
    return null;
  }

  #giveName(text: string): string | null {
    if (!isPreparable(text)) {
      this.#counts.set(text, Number.NEGATIVE_INFINITY);
      return null;
    }
    this.#counts.delete(text);
    const name = `repeated_${this.#names.size + 1}`;
    this.#names.set(text, name);
    return name;
  }
}
