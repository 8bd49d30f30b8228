import { sql } from "kysely";
import type { Context } from "../context.ts";
import { LEASE_MS } from "./provider-calls.ts";

/** Several times within a lease, so that a slow round loses none. */
export const RENEW_EVERY_MS = 15_000;

/** Says of the runs and calls of this process that somebody still works on them. */
export async function renewLeases({ db, live, now }: Context): Promise<void> {
  const { ids, callIds } = live;
  if (ids.length === 0 && callIds.size === 0) return;
  const until = new Date(now().getTime() + LEASE_MS);
  await sql`
    with runs as (
      update executions set lease_until = ${until} where id = any (${ids}::uuid[]) and status = 'running')
    update provider_calls set lease_until = ${until} where id = any (${[...callIds]}::uuid[]) and ended_at is null`.execute(
    db,
  );
}
