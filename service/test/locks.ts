import type { Market } from "./market.ts";
import { until } from "./until.ts";

const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;

/** Until so many statements of the service wait for a lock: one that the test holds. */
export async function waitForBlockedStatements({ service }: Market, statements = 1): Promise<void> {
  await until(
    `${statements} statements wait for a lock`,
    async () => (await service.ctx.pool.query(WAITING)).rowCount! >= statements,
  );
}
