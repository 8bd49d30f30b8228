import { createHash } from "node:crypto";
import { glob, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import type pg from "pg";
import { MigrationMismatch } from "./migration-mismatch.ts";

const SOURCE = join(import.meta.dirname, "../..");
/** Each function is in the folder of the room that calls it. */
const PATTERN = "*/*/sql/functions/*.sql";
const VERSION_LINE = /^-- Version (\d+)\n/;

/** As its file defines it. */
interface DatabaseFunction {
  name: string;
  version: number;
  checksum: string;
  sql: string;
}

let cached: Promise<DatabaseFunction[]> | undefined;
/** Cached, since `/readyz` calls it regularly. */
export const listFunctions = () => (cached ??= readFunctions());

async function readFunctions(): Promise<DatabaseFunction[]> {
  const functions: DatabaseFunction[] = [];
  for await (const path of glob(PATTERN, { cwd: SOURCE }))
    functions.push(await readFunction(join(SOURCE, path)));
  return functions.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function readFunction(path: string): Promise<DatabaseFunction> {
  const sql = await readFile(path, "utf8");
  const version = VERSION_LINE.exec(sql)?.[1];
  if (version === undefined) throw new Error(`${path} must begin with a line like "-- Version 1"`);
  const checksum = createHash("sha256").update(sql).digest("hex");
  return { name: basename(path, ".sql"), version: Number(version), checksum, sql };
}

type AppliedFunction = Pick<DatabaseFunction, "name" | "version" | "checksum">;

async function listApplied(client: pg.ClientBase | pg.Pool): Promise<AppliedFunction[]> {
  // As for `schema_migrations`: to_regclass would answer from the session's cache.
  const { rowCount } = await client.query(
    "select from pg_tables where tablename = 'schema_functions' and schemaname = any (current_schemas(false))",
  );
  if (!rowCount) return [];
  return (await client.query<AppliedFunction>("select name, version, checksum from schema_functions")).rows;
}

/**
 * Functions that are missing or older in the database. A newer version stays: during a rolling update, a restarting
 * process of the old release must not replace the new release's functions.
 */
export async function listOutdatedFunctions(client: pg.ClientBase | pg.Pool): Promise<DatabaseFunction[]> {
  const applied = new Map((await listApplied(client)).map((row) => [row.name, row]));
  return (await listFunctions()).filter(({ name, version, checksum }) => {
    const current = applied.get(name);
    if (current?.version === version && current.checksum !== checksum)
      throw new MigrationMismatch(
        `Function ${name} was changed after the database had created version ${version}`,
        `Raise the number in the first line of its file: "-- Version ${version + 1}".`,
      );
    return current === undefined || current.version < version;
  });
}

/** Creates or replaces outdated functions and returns their names. Runs in the client's transaction, under the migration lock. */
export async function applyFunctions(client: pg.ClientBase, now: Date): Promise<string[]> {
  const outdated = await listOutdatedFunctions(client);
  if (outdated.length > 0)
    await client.query(
      "create table if not exists schema_functions (name text primary key, version integer not null, checksum text not null, applied_at timestamptz not null)",
    );
  for (const { name, version, checksum, sql } of outdated) {
    try {
      await client.query(sql);
    } catch (error) {
      throw new Error(`Function ${name} cannot be created: ${(error as Error).message}`, { cause: error });
    }
    await client.query(
      `insert into schema_functions (name, version, checksum, applied_at) values ($1, $2, $3, $4)
           on conflict (name) do update set version = excluded.version, checksum = excluded.checksum, applied_at = excluded.applied_at`,
      [name, version, checksum, now],
    );
  }
  return outdated.map(({ name }) => name);
}
