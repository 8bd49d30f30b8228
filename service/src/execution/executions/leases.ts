import { sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { LEASE_MS } from "../provider-keys/provider-calls.ts";

/** Several times within a lease, so that one slow renewal loses none. */
export const RENEW_INTERVAL_MS = 15_000;

/** Renews the leases of the runs and calls of this process. Queries the database even without any, to detect an outage. */
export async function renewLeases({ db, liveRuns: runs, now, databaseUptime }: Context): Promise<void> {
  const { ids, callIds } = runs;
  const until = new Date(now().getTime() + LEASE_MS);
  const renewal = sql`
    with runs as (
      update executions set lease_until = ${until} where id = any (${ids}::uuid[]) and status = 'running')
    update provider_calls set lease_until = ${until} where id = any (${[...callIds]}::uuid[]) and ended_at is null`;
  await databaseUptime.track(() => renewal.execute(db));
}

/**
 * Whether an expired lease proves that its process died. It does not after an outage of the database: a living process then renews
 * the lease, or records the end of the run, within the time of one lease.
 */
export const areExpiredLeasesConclusive = ({ databaseUptime }: Context): boolean =>
  databaseUptime.hasBeenUpFor(LEASE_MS);
