import { join } from "node:path";
import { type Connection, createClient } from "@stoa/service/platform/db/database.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { ROOT, start } from "./processes.ts";
import { LOADING, withBase } from "./shop.ts";

/**
 * Fills a market by SQL, with triggers off, in a database without durability. The caller must start it again afterwards.
 * Returns the duration in seconds.
 */
export async function fillDatabase(dataDir: string, statements: string[]): Promise<number> {
  const database = await startEmbedded(dataDir, { settings: LOADING });
  try {
    const connection: Connection = { target: database.connection };
    await withBase(dataDir, connection, async () => {});
    return (await secondsOf(1, () => run(connection, statements)))[0]!;
  } finally {
    await database.stop();
  }
}

/** The sums that triggers would have written. */
export const rebuildAnalytics = (dataDir: string): Promise<string> =>
  start(process.execPath, [join(ROOT, "service/bin/stoa-server.mjs"), "analytics", "rebuild"], {
    env: { STOA_DATA_DIR: dataDir, DATABASE_URL: "", STOA_ENVIRONMENT: "test" },
  }).output();

async function run(connection: Connection, statements: string[]): Promise<void> {
  const client = createClient(connection, { application_name: "stoa bench" });
  await client.connect();
  try {
    await client.query("set statement_timeout = 0");
    await client.query("set session_replication_role = replica");
    for (const statement of statements) await client.query(statement);
    await client.query("set session_replication_role = origin");
    await client.query("vacuum (freeze, analyze)");
  } finally {
    await client.end();
  }
}

/** The same id in each statement: a UUID of version 8, which clients can use too. */
export const idOf = (what: string, n: string) =>
  `overlay(overlay(md5('${what}' || ${n}) placing '8' from 13) placing '8' from 17)::uuid`;

/** One transaction per source, with an entry for each nonzero part. The source's id is its order's. */
export function insertTransactions(kind: string, sources: string, parts: string): string {
  return `
    with parts as (
      select s.source_id, s.happened_at, s.id as order_id, s.currency, part.*,
             row_number() over of_source as position, count(*) over (partition by s.source_id) as entry_count
        from (${sources}) as s
       cross join lateral (values ${parts}) as part (account, owner_id, amount_minor, matures_at)
       where part.amount_minor <> 0
      window of_source as (partition by s.source_id order by part.account)),
    transactions as (
      insert into ledger_transactions (id, kind, source_id, entry_count, occurred_at)
      select ${idOf(kind, "source_id::text")}, '${kind}', source_id, entry_count, happened_at from parts where position = 1)
    insert into ledger_entries (transaction_id, position, entry_count, account, owner_id, currency, amount_minor, order_id, matures_at)
    select ${idOf(kind, "source_id::text")}, position, entry_count, account, owner_id, currency, amount_minor, order_id, matures_at
      from parts`;
}

export async function secondsOf(times: number, work: () => Promise<unknown>): Promise<number[]> {
  const seconds: number[] = [];
  for (let time = 0; time < times; time++) {
    const begun = performance.now();
    await work();
    seconds.push((performance.now() - begun) / 1000);
  }
  return seconds;
}
