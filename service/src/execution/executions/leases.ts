import { sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { LEASE_MS } from "../provider-keys/provider-calls.ts";

/** Several times within a lease, so that a slow round loses none. */
export const RENEW_INTERVAL_MS = 15_000;

/** Says of the runs and calls of this process that somebody still works on them. Asks the database although there are none. */
export async function renewLeases({ db, liveRuns: live, now, databaseUptime }: Context): Promise<void> {
  const { ids, callIds } = live;
  const until = new Date(now().getTime() + LEASE_MS);
  const renewal = sql`
    with runs as (
      update executions set lease_until = ${until} where id = any (${ids}::uuid[]) and status = 'running')
    update provider_calls set lease_until = ${until} where id = any (${[...callIds]}::uuid[]) and ended_at is null`;
  await databaseUptime.track(() => renewal.execute(db));
}

/**
 * Whether a lease that is over tells that its process died. After an outage of the database it does not: whoever holds the end of a
 * run renews the lease or records the end within the time of a lease.
 */
export const areExpiredLeasesConclusive = ({ databaseUptime }: Context): boolean =>
  databaseUptime.hasBeenUpFor(LEASE_MS);
