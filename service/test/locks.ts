import assert from "node:assert/strict";
import type { Market } from "./market.ts";

const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Until so many statements of the service wait for a lock: one that the test holds. */
export async function somebodyWaits({ service }: Market, statements = 1): Promise<void> {
  for (let tries = 0; tries < 4_000; tries++) {
    if ((await service.ctx.pool.query(WAITING)).rowCount! >= statements) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail(`${statements} statements do not come to wait for a lock`);
}
