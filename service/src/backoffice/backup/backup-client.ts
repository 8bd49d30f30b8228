import type pg from "pg";
import { type Connection, createDirectClient } from "../../platform/db/database.ts";

// Rows as text that every server reads in the same way, and no limit of time: a table takes what it takes.
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

/** One connection for work that takes long. Whatever it began ends with it. */
export async function withClient<T>(
  connection: Connection,
  name: "stoa backup" | "stoa restore",
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = createDirectClient(connection, { application_name: name, keepAlive: true });
  client.on("error", () => {}); // the query in hand hears of it
  await client.connect();
  try {
    if (client.isPooled && connection.direct === undefined) throw new Error(NEEDS_SESSION);
    await client.query(SETTINGS);
    return await work(client);
  } finally {
    await client.end();
  }
}
