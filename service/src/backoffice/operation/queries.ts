import { sql } from "kysely";
import type pg from "pg";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

/** In milliseconds. */
export async function measureAnswer(pool: pg.Pool): Promise<number> {
  // The first query may open a connection.
  await pool.query("select");
  const begunAt = performance.now();
  await pool.query("select");
  return Math.round((performance.now() - begunAt) * 10) / 10;
}

export async function countUnsentEmails(db: Queries): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from emails where sent_at is null and refused_at is null`.execute(db);
  return firstOf(rows).count;
}

export async function countStoredFiles(db: Queries): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from blobs`.execute(db);
  return firstOf(rows).count;
}

/** The age of the oldest event without deliveries. */
export async function readSecondsBehind(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ age: number | null }>(
    `select extract(epoch from clock_timestamp() - created_at)::float8 as age
       from events where seq is null order by id limit 1`,
  );
  return Math.max(0, Math.round(rows[0]?.age ?? 0));
}

interface ServerRow {
  version: string;
  size: number;
  used: number;
  own: number;
  active: number;
  max: number;
}

/** Other users' rows of pg_stat_activity have no state, and count all the same. */
export async function readServer(pool: pg.Pool): Promise<ServerRow> {
  const { rows } = await pool.query<ServerRow>(
    `select current_setting('server_version') as version, pg_database_size(current_database()) as size,
            current_setting('max_connections')::int as max, count(*) as used,
            count(*) filter (where datname = current_database()) as own,
            count(*) filter (where datname = current_database() and state = 'active' and pid <> pg_backend_pid()) as active
       from pg_stat_activity where backend_type = 'client backend'`,
  );
  return firstOf(rows);
}

interface TransactionRow {
  startedAt: Date;
  seconds: number;
  state: string;
  application: string;
}

/** Without its statement, which may contain personal data. */
export async function findOldestTransaction(pool: pg.Pool): Promise<TransactionRow | null> {
  const { rows } = await pool.query<TransactionRow>(
    `select xact_start as "startedAt", extract(epoch from clock_timestamp() - xact_start)::float8 as seconds,
            coalesce(state, 'unknown') as state, application_name as application
       from pg_stat_activity
      where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
        and backend_type = 'client backend'
      order by xact_start limit 1`,
  );
  const [row] = rows;
  return row ? { ...row, seconds: Math.max(0, row.seconds) } : null;
}

export async function listLargestTables(
  pool: pg.Pool,
): Promise<{ name: string; size: number; rows: number }[]> {
  const { rows } = await pool.query(
    `select n.nspname || '.' || c.relname as name, pg_total_relation_size(c.oid) as size,
            greatest(c.reltuples, 0)::bigint as rows
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname in ('public', 'pgboss', 'fake_provider')
      order by 2 desc, 1 limit 20`,
  );
  return rows;
}
