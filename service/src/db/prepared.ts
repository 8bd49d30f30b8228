import { type RawBuilder, sql } from "kysely";
import pg from "pg";

const MARK = "-- prepared: ";

/**
 * Begins the text of a statement that is asked so often that each connection should plan it once. Under one name the text
 * is always the same, but for its values: pg refuses another.
 */
export const prepared = (name: string): RawBuilder<unknown> => sql.raw(`${MARK}${name}\n`);

export interface TransactionTimeouts {
  /** A transaction without a statement for so long is ended by the server: its process is frozen or cut off, and its locks stop others. */
  idleMs: number;
  /** A statement of a transaction waits for a lock no longer than that. Longer than `idleMs`, so that a frozen holder ends first. */
  lockMs: number;
}

export const transactionTimeouts: TransactionTimeouts = { idleMs: 8_000, lockMs: 10_000 };

const BEGIN = /^(?:begin|start transaction)\b[^;]*$/i;

/**
 * A connection of the pool. Kysely has no word for prepared statements: a text that `prepared` marks becomes one. Each transaction gets
 * its timeouts with its `begin`, in the same message: settings of the session are lost behind a pooler in transaction mode.
 */
export class PreparingClient extends pg.Client {
  /** undefined: its transactions may last, such as those of a backup. */
  readonly #timeouts: TransactionTimeouts | undefined;

  constructor(config?: pg.ClientConfig & { transactionTimeouts?: TransactionTimeouts }) {
    super(config);
    this.#timeouts = config?.transactionTimeouts;
  }

  // biome-ignore lint/suspicious/noExplicitAny: as many shapes as pg takes
  override query(config: any, values?: any, callback?: any): any {
    if (typeof config !== "string") return super.query(config, values, callback);
    if (this.#timeouts && BEGIN.test(config))
      return super.query(config + settingsOf(this.#timeouts), values, callback);
    if (!config.startsWith(MARK)) return super.query(config, values, callback);
    const name = config.slice(MARK.length, config.indexOf("\n"));
    return super.query({ name, text: config, values }, callback);
  }
}

const settingsOf = ({ idleMs, lockMs }: TransactionTimeouts): string =>
  `; set local idle_in_transaction_session_timeout = ${idleMs}; set local lock_timeout = ${lockMs}`;
