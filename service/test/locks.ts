import { openPool } from "../src/platform/db/database.ts";
import type { Market } from "./market.ts";
import { until } from "./until.ts";

const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/**
 * Waits until this many of the service's statements wait for a lock of the test. Looks by a connection of its own: the waiting
 * statements may hold all those of the service.
 */
export async function waitForBlockedStatements({ target }: Market, statements = 1): Promise<void> {
  const pool = openPool({ target, maxConnections: 1 });
  try {
    await until(
      `${statements} statements wait for a lock`,
      async () => (await pool.query(WAITING)).rowCount! >= statements,
    );
  } finally {
    await pool.end();
  }
}
