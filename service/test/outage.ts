import type { Market } from "./market.ts";

/**
 * Simulates an unavailable database: each update of the table fails like a shutdown, even without matching rows.
 * `comesBack` ends that, except for rows that match a condition on `new` and `old`; a second call without one ends it
 * for all.
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
    // One transaction, so that no write succeeds in between.
    const remaining = butNot ? create(`for each row when (${butNot})`) : "";
    await market.query(`drop trigger if exists outage on ${table}; ${remaining}`);
  };
}
