import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type pg from "pg";

/** Any number, but the same in every process: two that start at once migrate one after the other. */
const MIGRATION_LOCK = 5_701_840_113;
const folder = new URL("./migrations/", import.meta.url);

interface Migration {
  name: string;
  sql: string;
  checksum: string;
}

/** The database was migrated by files that differ from those on disk. */
export class MigrationMismatch extends Error {
  constructor(why: string) {
    super(
      `${why}. The migrations on disk differ from those that made this database: run the version that made it, or \`stoa-server reset\` (test environment only) to begin anew.`,
    );
    this.name = "MigrationMismatch";
  }
}

let known: Promise<Migration[]> | undefined;
/** Read once: `/readyz` asks again and again. */
const migrationsOnDisk = () => (known ??= readMigrations());

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, folder), "utf8");
      return { name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
    }),
  );
}

function mustAgree(migrations: Migration[], applied: { name: string; checksum: string }[]): void {
  const byName = new Map(migrations.map((migration) => [migration.name, migration]));
  for (const { name, checksum } of applied) {
    const onDisk = byName.get(name);
    if (!onDisk) throw new MigrationMismatch(`The database has migration ${name}, which is not on disk`);
    if (onDisk.checksum !== checksum)
      throw new MigrationMismatch(`Migration ${name} was changed after it ran`);
  }
}

async function apply(client: pg.PoolClient, migration: Migration, now: Date): Promise<void> {
  await client.query("begin");
  try {
    await client.query(migration.sql);
    await client.query("insert into schema_migrations values ($1, $2, $3)", [
      migration.name,
      migration.checksum,
      now,
    ]);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw new Error(`Migration ${migration.name} failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Brings the database to the newest migration; answers the names of those that it ran. */
export async function migrate(pool: pg.Pool, now: Date): Promise<string[]> {
  const migrations = await migrationsOnDisk();
  const client = await pool.connect();
  try {
    // Under the lock of the session, not of a transaction: each migration has a transaction of its own.
    // Neither the wait for another process nor a migration itself is bounded like a request's statement.
    await client.query("set statement_timeout = 0");
    await client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await client.query(
      "create table if not exists schema_migrations (name text primary key, checksum text not null, applied_at timestamptz not null)",
    );
    const { rows: applied } = await client.query("select name, checksum from schema_migrations");
    mustAgree(migrations, applied);
    const names = new Set(applied.map((row) => row.name));
    const pending = migrations.filter((migration) => !names.has(migration.name));
    for (const migration of pending) await apply(client, migration, now);
    return pending.map((migration) => migration.name);
  } finally {
    // Not back to the pool: the connection holds a lock and a setting that no request should get.
    client.release(true);
  }
}

/** Waits until nobody migrates, and lets nobody begin until this connection ends: whoever starts meanwhile waits. */
export const holdMigrations = (client: pg.ClientBase) =>
  client.query("select pg_advisory_lock($1)", [MIGRATION_LOCK]);

export type Applied = Pick<Migration, "name" | "checksum">;

/** Those that this version has, in their order. */
export const knownMigrations = async (): Promise<Applied[]> =>
  (await migrationsOnDisk()).map(({ name, checksum }) => ({ name, checksum }));

/** Answers what made this database, which must be all that is on disk. */
export async function mustBeMigrated(client: pg.ClientBase): Promise<Applied[]> {
  const { rows: tables } = await client.query("select to_regclass('schema_migrations') as found");
  const migrations = await knownMigrations();
  const { rows: applied } = tables[0].found
    ? await client.query<Applied>("select name, checksum from schema_migrations order by name")
    : { rows: [] };
  mustAgree(await migrationsOnDisk(), applied);
  if (applied.length < migrations.length)
    throw new MigrationMismatch(`The database has ${applied.length} of ${migrations.length} migrations`);
  return applied;
}

/** Whether every migration on disk has run, as `/readyz` asks. */
export async function isMigrated(pool: pg.Pool): Promise<boolean> {
  const migrations = await migrationsOnDisk();
  const { rows } = await pool.query("select count(*)::int as count from schema_migrations");
  return rows[0]?.count === migrations.length;
}
