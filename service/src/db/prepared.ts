import { type RawBuilder, sql } from "kysely";
import pg from "pg";

const MARK = "-- prepared: ";

/**
 * Begins the text of a statement that is asked so often that each connection should plan it once. Under one name the text
 * is always the same, but for its values: pg refuses another.
 */
export const prepared = (name: string): RawBuilder<unknown> => sql.raw(`${MARK}${name}\n`);

/** Kysely has no word for it: a connection that takes such a text for a prepared statement of that name. */
export class PreparingClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: as many shapes as pg takes
  override query(config: any, values?: any, callback?: any): any {
    if (typeof config !== "string" || !config.startsWith(MARK)) return super.query(config, values, callback);
    const name = config.slice(MARK.length, config.indexOf("\n"));
    return super.query({ name, text: config, values }, callback);
  }
}
