import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createDatabase } from "../../../test/market.ts";
import { readConfig } from "../../core/config/config.ts";
import { openPool } from "../../platform/db/database.ts";
import { openOperatorDatabase, toConnection } from "./operator-database.ts";

const database = await createDatabase();
after(() => database.drop());

const KEY = `1:${Buffer.alloc(32, 1).toString("base64")}`;
const CONNECTED =
  "select from pg_stat_activity where datname = current_database() and application_name = 'stoa'";

for (const [given, expected] of [
  ["3", 3],
  ["", 8],
] as const)
  test(`STOA_DATABASE_CONNECTIONS "${given}": PostgreSQL sees ${expected} connections of a busy process`, async () => {
    const config = readConfig({
      DATABASE_URL: database.url,
      STOA_DATABASE_CONNECTIONS: given,
      STOA_MASTER_KEYS: KEY,
      STOA_SESSION_KEYS: KEY,
    });
    const pool = openPool(toConnection(await openOperatorDatabase(config)));
    pool.on("error", () => {}); // the database is dropped while its last connections end
    try {
      const statements = Array.from({ length: 12 }, () => pool.query("select pg_sleep(0.05)"));
      await Promise.all(statements);
      assert.equal((await pool.query(CONNECTED)).rowCount, expected);
    } finally {
      await pool.end();
    }
  });
