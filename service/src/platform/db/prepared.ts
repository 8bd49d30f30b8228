import { type RawBuilder, sql } from "kysely";

/** Begins the text of a prepared statement; its name and a line break follow. */
export const PREPARED_MARK = "-- prepared: ";

/**
 * Begins the text of a statement that is asked so often that each connection should plan it once. Under one name the text
 * is always the same, but for its values: pg refuses another. Kysely has no word for it: db/client.ts takes such a text for
 * a prepared statement of that name.
 */
export const prepared = (name: string): RawBuilder<unknown> => sql.raw(`${PREPARED_MARK}${name}\n`);

/** null: the statement is not to be prepared. */
export const nameOfPrepared = (text: unknown): string | null =>
  typeof text === "string" && text.startsWith(PREPARED_MARK)
    ? text.slice(PREPARED_MARK.length, text.indexOf("\n"))
    : null;
