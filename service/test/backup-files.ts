import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import type { TestContext } from "node:test";
import { createGunzip, createGzip } from "node:zlib";
import pg from "pg";
import { extract, pack } from "tar-stream";
import { type BackupResult, backUp, type Installation } from "../src/backoffice/backup/backup.ts";
import { createDatabase, type Market, type TestDatabase } from "./market.ts";

export const PASSPHRASE = "a passphrase for tests";

export const shopOf = ({ service, target }: Market): Installation => ({ config: service.ctx.config, target });

/** A folder that is deleted after the test. */
export async function createTempFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-backup-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** An empty database that is dropped after the test. */
export async function createEmptyDatabase(t: TestContext): Promise<TestDatabase> {
  const database = await createDatabase();
  t.after(() => database.drop());
  return database;
}

export interface BackupOptions {
  passphrase?: string | null;
  /** Wraps the file's stream. */
  sink?: (file: Writable) => Writable;
}

export function backUpTo(
  path: string,
  shop: Installation,
  { passphrase = null, sink = (file) => file }: BackupOptions = {},
): Promise<BackupResult> {
  const stream = sink(createWriteStream(path));
  return backUp(shop, { stream, end: true }, { passphrase, now: new Date("2026-06-15T12:00:00.000Z") });
}

export type Members = [name: string, bytes: Buffer][];

export async function membersOf(path: string): Promise<Members> {
  const entries = extract();
  const read = pipeline(createReadStream(path), createGunzip(), entries as unknown as NodeJS.WritableStream);
  const members: Members = [];
  for await (const entry of entries) members.push([entry.header.name, await buffer(entry)]);
  await read;
  return members;
}

/** An archive with other members, as an attacker without the key could make it. */
export async function writeMembers(path: string, members: Members): Promise<void> {
  const packed = pack();
  for (const [name, bytes] of members) packed.entry({ name }, bytes);
  packed.finalize();
  await pipeline(packed as unknown as NodeJS.ReadableStream, createGzip(), createWriteStream(path));
}

export async function queryAt({ url }: { url: string }, text: string, values?: unknown[]) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
