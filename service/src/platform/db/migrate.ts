import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type pg from "pg";
import type { Logger } from "pino";
import { applyFunctions, listOutdatedFunctions } from "./functions.ts";
import { type Lock, type LockWait, lockInTransaction } from "./locks.ts";
import { MigrationMismatch } from "./migration-mismatch.ts";

/** Any number, equal in all processes: parallel migrations run one after the other. */
const MIGRATION_LOCK: Lock = { key: 5_701_840_113, name: "the migration lock" };
/** Enough for a migration of a large database. */
const MIGRATION_WAIT_MS = 5 * 60_000;
const folder = new URL("./migrations/", import.meta.url);

interface Migration {
  name: string;
  sql: string;
  checksum: string;
}

let known: Promise<Migration[]> | undefined;
/** Cached, since `/readyz` calls it regularly. */
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

function mustMatchDisk(migrations: Migration[], applied: { name: string; checksum: string }[]): void {
  const byName = new Map(migrations.map((migration) => [migration.name, migration]));
  for (const { name, checksum } of applied) {
    const onDisk = byName.get(name);
    if (!onDisk) throw new MigrationMismatch(`The database has migration ${name}, which is not on disk`);
    if (onDisk.checksum !== checksum)
      throw new MigrationMismatch(`Migration ${name} was changed after it ran`);
  }
}

/**
 * Migrates the database and its functions and returns the names of what ran. Each migration has its own transaction with
 * the lock: a pooler cannot hold it for longer, and a killed process releases it. In an empty database they share one, which
 * takes half as long.
 */
export async function migrate(
  pool: pg.Pool,
  now: Date,
  log?: Logger,
  maxMs = MIGRATION_WAIT_MS,
): Promise<string[]> {
  const wait: LockWait = { maxMs, log };
  const migrations = await migrationsOnDisk();
  const applied: string[] = [];
  const client = await pool.connect();
  try {
    // Shared: processes with a complete database start in parallel.
    const isComplete = await inTransaction(client, async () => {
      await lockInTransaction(client, { ...MIGRATION_LOCK, isShared: true }, wait);
      if ((await findPending(client, migrations)).length > 0) return false;
      return (await listOutdatedFunctions(client)).length === 0;
    });
    for (let isDone = isComplete; !isDone; ) {
      const { names, isLast } = await inTransaction(client, async () => {
        await lockInTransaction(client, MIGRATION_LOCK, wait);
        const names = await applyNext(client, migrations, now);
        if (names.length > 0) return { names, isLast: false };
        return { names: await applyFunctions(client, now), isLast: true };
      });
      applied.push(...names);
      isDone = isLast;
    }
    return applied;
  } finally {
    client.release();
  }
}

async function inTransaction<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => {}); // the first error says why
    throw error;
  }
}

async function findPending(client: pg.ClientBase, migrations: Migration[]): Promise<Migration[]> {
  const applied = await listApplied(client);
  mustMatchDisk(migrations, applied);
  const names = new Set(applied.map(({ name }) => name));
  return migrations.filter(({ name }) => !names.has(name));
}

async function listApplied(client: pg.ClientBase): Promise<AppliedMigration[]> {
  // Not to_regclass: it answers from the session's cache, which misses a table that was created while this transaction
  // waited for the lock.
  const { rowCount } = await client.query(
    "select from pg_tables where tablename = 'schema_migrations' and schemaname = any (current_schemas(false))",
  );
  if (!rowCount) return [];
  return (await client.query<AppliedMigration>("select name, checksum from schema_migrations order by name"))
    .rows;
}

/** Returns the names of the migrations that ran; none: none was pending. */
async function applyNext(client: pg.ClientBase, migrations: Migration[], now: Date): Promise<string[]> {
  const pending = await findPending(client, migrations);
  const isEmpty = pending.length === migrations.length;
  const next = isEmpty ? pending : pending.slice(0, 1);
  if (isEmpty)
    await client.query(
      "create table if not exists schema_migrations (name text primary key, checksum text not null, applied_at timestamptz not null)",
    );
  for (const migration of next) await applyMigration(client, migration, now);
  return next.map(({ name }) => name);
}

async function applyMigration(client: pg.ClientBase, { name, sql, checksum }: Migration, now: Date) {
  try {
    await client.query(sql);
    await client.query("insert into schema_migrations values ($1, $2, $3)", [name, checksum, now]);
  } catch (error) {
    throw new Error(`Migration ${name} failed: ${(error as Error).message}`, { cause: error });
  }
}

/** Waits for a running migration, and blocks migrations and starts until the client's transaction ends. */
export const lockMigrations = (client: pg.ClientBase) =>
  lockInTransaction(client, MIGRATION_LOCK, { maxMs: MIGRATION_WAIT_MS });

export type AppliedMigration = Pick<Migration, "name" | "checksum">;

/** The migrations of this version, in order. */
export const listMigrations = async (): Promise<AppliedMigration[]> =>
  (await migrationsOnDisk()).map(({ name, checksum }) => ({ name, checksum }));

/** Returns the applied migrations. Throws when one differs from the disk. */
export async function appliedMigrations(client: pg.ClientBase): Promise<AppliedMigration[]> {
  const applied = await listApplied(client);
  mustMatchDisk(await migrationsOnDisk(), applied);
  return applied;
}

/** Like appliedMigrations, and throws when one is missing. */
export async function mustBeMigrated(client: pg.ClientBase): Promise<AppliedMigration[]> {
  const migrations = await migrationsOnDisk();
  const applied = await appliedMigrations(client);
  if (applied.length < migrations.length)
    throw new MigrationMismatch(`The database has ${applied.length} of ${migrations.length} migrations`);
  return applied;
}

export interface SchemaState {
  /** unknown: a newer version has applied it. changed: the database has another text of it. */
  migrations: {
    name: string;
    state: "applied" | "pending" | "changed" | "unknown";
    appliedAt: Date | null;
  }[];
  outdatedFunctions: string[];
}

/** Of a database that a newer process may have migrated since this one started. */
export async function readSchemaState(pool: pg.Pool): Promise<SchemaState> {
  const onDisk = new Map((await migrationsOnDisk()).map(({ name, checksum }) => [name, checksum]));
  const { rows } = await pool.query<AppliedMigration & { appliedAt: Date }>(
    `select name, checksum, applied_at as "appliedAt" from schema_migrations`,
  );
  const applied = new Map(rows.map((row) => [row.name, row]));
  const stateOf = (name: string) => {
    const row = applied.get(name);
    if (!row) return "pending";
    const checksum = onDisk.get(name);
    if (checksum === undefined) return "unknown";
    return checksum === row.checksum ? "applied" : "changed";
  };
  const names = [...new Set([...onDisk.keys(), ...applied.keys()])].sort();
  return {
    migrations: names.map((name) => ({
      name,
      state: stateOf(name),
      appliedAt: applied.get(name)?.appliedAt ?? null,
    })),
    outdatedFunctions: (await listOutdatedFunctions(pool)).map(({ name }) => name),
  };
}

/** For `/readyz`: every migration has run and every function is current. */
export async function isMigrated(pool: pg.Pool): Promise<boolean> {
  const migrations = await migrationsOnDisk();
  const { rows } = await pool.query("select count(*)::int as count from schema_migrations");
  return rows[0]?.count === migrations.length && (await listOutdatedFunctions(pool)).length === 0;
}

/** A standby, or a primary that is being replaced, accepts no writes. */
export async function acceptsWrites(pool: pg.Pool): Promise<boolean> {
  const { rows } = await pool.query("show transaction_read_only");
  return rows[0].transaction_read_only === "off";
}
