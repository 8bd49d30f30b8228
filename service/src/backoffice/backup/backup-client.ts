import type pg from "pg";
import { type Connection, createDirectClient } from "../../platform/db/database.ts";

// Every server reads this text format equally. No timeouts: a table may take long.
const SETTINGS = `
  set statement_timeout = 0;
  set lock_timeout = 0;
  set idle_in_transaction_session_timeout = 0;
  set datestyle = 'ISO, YMD';
  set intervalstyle = 'postgres';
  set bytea_output = 'hex';
  set extra_float_digits = 1`;

const NEEDS_SESSION =
  "A backup or restore needs a session of its own, and DATABASE_URL leads through a connection pooler: set DATABASE_DIRECT_URL to the address of PostgreSQL itself.";

/** A dedicated connection for long work. Its end aborts what it started. */
export async function withClient<T>(
  connection: Connection,
  name: "stoa backup" | "stoa restore",
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = createDirectClient(connection, { application_name: name, keepAlive: true });
  client.on("error", () => {}); // the running query reports it
  await client.connect();
  try {
    if (client.isPooled && connection.direct === undefined) throw new Error(NEEDS_SESSION);
    await client.query(SETTINGS);
    return await work(client);
  } finally {
    await client.end();
  }
}
