import pg from "pg";
import { databaseHosts, errorMessageOf } from "../../core/config/database-hosts.ts";
import { READ_ONLY_SQL_TRANSACTION } from "./sql-state.ts";

const PROBE_MS = 3_000;

/**
 * Finds the server that accepts writes, in the given order, like libpq's `target_session_attrs=read-write`. pg itself connects to one
 * server only.
 */
export class PrimaryFinder {
  readonly urls: string[];
  #found: Promise<string> | null = null;

  constructor(urls: string[]) {
    this.urls = urls;
  }

  find(): Promise<string> {
    this.#found ??= this.#search().catch((error) => {
      this.#found = null;
      throw error;
    });
    return this.#found;
  }

  /** Call it if the server was lost or became read-only: the next connection checks all servers again. */
  reset(): void {
    this.#found = null;
  }

  async #search(): Promise<string> {
    const refusals: string[] = [];
    for (const url of this.urls) {
      const refusal = await findWriteProblem(url);
      if (refusal === null) return url;
      refusals.push(`${databaseHosts(url)}: ${refusal}`);
    }
    const error = new Error(`No server accepts writes (${refusals.join("; ")})`);
    // The code of a write to a standby, so that callers treat both alike.
    throw Object.assign(error, { code: READ_ONLY_SQL_TRANSACTION });
  }
}

async function findWriteProblem(url: string): Promise<string | null> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
    application_name: "stoa primary search",
  });
  client.on("error", () => {}); // The current query reports it.
  try {
    await client.connect();
    const { rows } = await client.query("show transaction_read_only");
    return rows[0].transaction_read_only === "on" ? "is read-only" : null;
  } catch (error) {
    return errorMessageOf(error);
  } finally {
    await client.end().catch(() => {});
  }
}
