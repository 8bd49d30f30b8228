import { type RawBuilder, sql } from "kysely";

/** Starts the text of a prepared statement; name and line break follow. */
export const PREPARED_MARK = "-- prepared: ";

/**
 * Starts the text of a frequent statement, so that each connection plans it once. One name always has the same text,
 * apart from values: pg refuses another. Kysely has no API for it, so db/client.ts reads the name from the text.
 */
export const prepared = (name: string): RawBuilder<unknown> => sql.raw(`${PREPARED_MARK}${name}\n`);

/** null: not a prepared statement. */
export const nameOfPrepared = (text: unknown): string | null =>
  typeof text === "string" && text.startsWith(PREPARED_MARK)
    ? text.slice(PREPARED_MARK.length, text.indexOf("\n"))
    : null;
