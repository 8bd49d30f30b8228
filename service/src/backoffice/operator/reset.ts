import { openPool } from "../../platform/db/database.ts";
import type { OperatorDatabase } from "./operator-database.ts";

/** Empties a test database. Refuses any other, and one in use by a service. */
export async function reset({ config, target, direct }: OperatorDatabase): Promise<void> {
  if (config.environment !== "test") throw new Error("reset is for the test environment alone");
  const pool = openPool({ target: direct ?? target, maxConnections: 1 });
  try {
    await mustBeTestDatabase((text) => pool.query(text));
    await pool.query(
      `drop schema if exists public, fake_provider, pgboss cascade;
       create schema public`,
    );
  } finally {
    await pool.end();
  }
}

async function mustBeTestDatabase(query: (text: string) => Promise<{ rows: Record<string, unknown>[] }>) {
  const { rows: tables } = await query("select to_regclass('public.installation') is not null as exists");
  if (tables[0]?.["exists"]) {
    const { rows } = await query("select environment from installation");
    if (rows[0] && rows[0]["environment"] !== "test")
      throw new Error("this is a production database; nothing was changed");
  }
  const { rows: others } = await query(
    `select count(*) as count from pg_stat_activity
      where datname = current_database() and application_name = 'stoa' and pid <> pg_backend_pid()`,
  );
  if (Number(others[0]?.["count"]) > 0) throw new Error("a service is using this database; stop it first");
}
