import type { Market } from "./market.ts";

/**
 * Stands for a database that is away: every update of the table fails as if the server shut down, whatever rows it finds. `comesBack`
 * ends that, but for rows of which a condition on `new` and `old` holds: these can be updated when it is called without one.
 */
export async function startOutage(market: Market, table: string) {
  const create = (condition: string) =>
    `create trigger outage before update on ${table} ${condition} execute function refuse_write()`;
  await market.query(
    `create or replace function refuse_write() returns trigger language plpgsql as $$
       begin raise 'away' using errcode = '57P01'; end $$;
     ${create("for each statement")}`,
  );
  return async function comesBack({ butNot }: { butNot?: string } = {}): Promise<void> {
    // One transaction: nothing is written in between.
    const remaining = butNot ? create(`for each row when (${butNot})`) : "";
    await market.query(`drop trigger if exists outage on ${table}; ${remaining}`);
  };
}
