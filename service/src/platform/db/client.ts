import pg from "pg";
import { nameOfPrepared } from "./prepared.ts";
import type { PrimaryFinder } from "./primary-finder.ts";
import { RepeatedStatements } from "./repeated-statements.ts";
import { READ_ONLY_SQL_TRANSACTION } from "./sql-state.ts";

export interface TransactionTimeouts {
  /** PostgreSQL ends a transaction that sends no statement for this long: its process is frozen or cut off, and its locks block others. */
  idleMs: number;
  /** The lock timeout of statements. Longer than `idleMs`, so that a frozen holder ends first. */
  lockMs: number;
}

export const transactionTimeouts: TransactionTimeouts = { idleMs: 8_000, lockMs: 10_000 };

const BEGIN = /^(?:begin|start transaction)\b[^;]*$/i;

export interface ServiceClientConfig extends pg.ClientConfig {
  /** For a URL with several servers: finds the primary. */
  primary?: PrimaryFinder | null;
  /** undefined: transactions have no timeouts, such as those of a backup. */
  transactionTimeouts?: TransactionTimeouts;
  /** Shared by the connections of a pool. */
  repeatedStatements?: RepeatedStatements;
}

/** The function of PostgreSQL that refuses a prepared statement whose columns changed. Its code, 0A000, has many reasons. */
const REVALIDATE_PLAN = "RevalidateCachedQuery";

/** Fields that pg's types omit. */
interface Internals {
  host: string;
  port: number;
  processID: number | null;
  connection: NodeJS.EventEmitter;
  getStartupConf(): Record<string, string>;
}

/**
 * A connection of the service. Unlike pg.Client it finds the primary among several servers. It prepares the statements
 * that its pool repeats, but none behind a connection pooler, whose next transaction may use another server
 * connection. It detects a read-only server and plans that a migration made invalid, so that the pool drops the
 * connection. It sends transaction timeouts with `begin` in one message, since a pooler loses session settings.
 */
export class ServiceClient extends pg.Client {
  readonly #primary: PrimaryFinder | null;
  readonly #timeouts: TransactionTimeouts | undefined;
  readonly #repeated: RepeatedStatements;
  /** Behind a pooler, no session state survives a transaction. */
  isPooled = false;
  /** The server is read-only, or a migration changed the columns of a prepared statement: the pool drops the connection. */
  isUnusable = false;

  constructor(config: ServiceClientConfig = {}) {
    super(config);
    this.#primary = config.primary ?? null;
    this.#timeouts = config.transactionTimeouts;
    this.#repeated = config.repeatedStatements ?? new RepeatedStatements();
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg takes a callback or answers a promise
  override connect(callback?: any): any {
    const connected = this.#open();
    if (!callback) return connected;
    connected.then(() => callback(null, this), callback);
    return undefined;
  }

  async #open(): Promise<this> {
    await this.#chooseServer();
    const { connection } = this.#internals;
    connection.on("errorMessage", ({ code, routine }: { code?: string; routine?: string }) => {
      if (code === READ_ONLY_SQL_TRANSACTION) this.#leaveServer();
      if (routine === REVALIDATE_PLAN) this.isUnusable = true;
    });
    try {
      await super.connect();
    } catch (error) {
      this.#primary?.reset();
      throw error;
    }
    await this.#inspect();
    return this;
  }

  get #internals(): Internals {
    return this as unknown as Internals;
  }

  async #chooseServer(): Promise<void> {
    if (!this.#primary) return;
    const { host, port } = new pg.Client({ connectionString: await this.#primary.find() });
    Object.assign(this.#internals, { host, port });
  }

  /** A pooler reports a process id of its own, which is none of PostgreSQL's. */
  async #inspect(): Promise<void> {
    const { rows } = await super.query("select pg_backend_pid() as pid");
    this.isPooled = rows[0].pid !== this.#internals.processID;
  }

  #leaveServer(): void {
    this.isUnusable = true;
    this.#primary?.reset();
  }

  /** Poolers ignore `options` and respect the time zone, which reports depend on. */
  getStartupConf(): Record<string, string> {
    const { getStartupConf } = pg.Client.prototype as unknown as Internals;
    return { ...getStartupConf.call(this), TimeZone: "UTC" };
  }

  // biome-ignore lint/suspicious/noExplicitAny: as many shapes as pg takes
  override query(config: any, values?: any, callback?: any): any {
    if (this.#timeouts && typeof config === "string" && BEGIN.test(config))
      return super.query(config + settingsOf(this.#timeouts), values, callback);
    if (this.isPooled) return super.query(withoutName(config), values, callback);
    const name = this.#nameOf(config, values);
    if (name === null) return super.query(config, values, callback);
    return super.query({ name, text: config, values }, callback);
  }

  /** A text without values may consist of several statements, which cannot be prepared. */
  #nameOf(text: unknown, values: unknown): string | null {
    const isRepeatable = typeof text === "string" && Array.isArray(values) && values.length > 0;
    return nameOfPrepared(text) ?? (isRepeatable ? this.#repeated.nameOf(text) : null);
  }
}

const settingsOf = ({ idleMs, lockMs }: TransactionTimeouts): string =>
  `; set local idle_in_transaction_session_timeout = ${idleMs}; set local lock_timeout = ${lockMs}`;

/** COPY streams submit themselves. */
function withoutName<T>(config: T): T {
  const { name, submit } = Object(config) as { name?: string; submit?: unknown };
  return name === undefined || submit !== undefined ? config : { ...config, name: undefined };
}
