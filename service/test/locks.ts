import type { Market } from "./market.ts";
import { until } from "./until.ts";

const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Waits until this many of the service's statements wait for a lock of the test. */
export async function waitForBlockedStatements({ service }: Market, statements = 1): Promise<void> {
  await until(
    `${statements} statements wait for a lock`,
    async () => (await service.ctx.pool.query(WAITING)).rowCount! >= statements,
  );
}
