import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type pg from "pg";
import { BLOBS_LOCK, iterateBlobs } from "../../catalog/files/blob-list.ts";
import { verifyLedgerIn } from "../../commerce/ledger/verification.ts";
import type { Config } from "../../core/config/config.ts";
import { firstOf, required } from "../../core/required.ts";
import { fingerprintOf } from "../../core/vault.ts";
import { digestIn, type Storage } from "../../integrations/storage/storage.ts";
import { openStorage } from "../../integrations.ts";
import { asTransaction, type Connection } from "../../platform/db/database.ts";
import { installationOf, mustBelongTo } from "../../platform/db/installation.ts";
import { withLock } from "../../platform/db/locks.ts";
import { mustBeMigrated } from "../../platform/db/migrate.ts";
import { ArchiveWriter, MEMBER } from "./archive.ts";
import { withClient } from "./backup-client.ts";
import { hmacOf, type Manifest, sha256Of } from "./manifest.ts";
import {
  copyToSql,
  listSequences,
  listTables,
  lockTables,
  pgCopyStreams,
  readQueueVersion,
  type Table,
} from "./queries.ts";
import { wrapKeys } from "./wrapped-keys.ts";

/** With a slow reader, three parts are in memory: one being written, one being joined, and its chunks. */
const PART_BYTES = 2 * 1024 * 1024;
const LINE_FEED = 0x0a;
/** A sweep holds this lock for one statement only. */
const FILES_LOCK_TIMEOUT_MS = 60_000;

export interface Installation extends Connection {
  config: Config;
}

export interface ArchiveSink {
  stream: Writable;
  /** false for stdout, which must stay open. */
  end: boolean;
}

export interface BackupOptions {
  passphrase: string | null;
  now: Date;
  /** Called after each table and file; what it throws ends the backup. */
  onProgress?: (step: BackupStep, done: number, total: number) => void;
}

export type BackupStep = "tables" | "files" | "ledger";

export interface BackupResult {
  tables: number;
  rows: number;
  files: number;
  keys: "wrapped" | "none";
  /** One sentence for each problem that the archive cannot solve. */
  problems: string[];
}

/** Writes one archive with a consistent snapshot, while the shop continues. Backpressure: a slow reader makes PostgreSQL wait. */
export async function backUp(
  shop: Installation,
  sink: ArchiveSink,
  { passphrase, now, onProgress = () => {} }: BackupOptions,
): Promise<BackupResult> {
  const { config } = shop;
  const storage = await openStorage(config);
  const archive = new ArchiveWriter(sink.stream, { madeAt: now, end: sink.end });
  const writeUnderLock = (client: pg.Client) =>
    withLock(shop, BLOBS_LOCK, { maxMs: FILES_LOCK_TIMEOUT_MS }, async () => {
      await takeSnapshot(client);
      await mustBelongTo(asTransaction(client), installationOf(config));
      return writeArchive(archive, { client, storage, config, passphrase, now, onProgress });
    });
  try {
    return await withClient(shop, "stoa backup", writeUnderLock);
  } catch (error) {
    await archive.abort();
    throw error;
  } finally {
    await storage.close();
  }
}

/** One snapshot of all tables, whose schemas cannot change meanwhile. */
async function takeSnapshot(client: pg.Client): Promise<void> {
  const tables = await listTables(client);
  await client.query("begin isolation level repeatable read read only");
  // Locks come first: the first statement that reads takes the snapshot.
  await lockTables(client, tables, "access share");
  await mustBeMigrated(client);
}

interface BackupWork extends Required<BackupOptions> {
  client: pg.Client;
  storage: Storage;
  config: Config;
}

async function writeArchive(archive: ArchiveWriter, work: BackupWork): Promise<BackupResult> {
  const { client, config, now, onProgress } = work;
  await archive.begin();
  const keys = await addKeys(archive, work);
  const { tables, sequences } = await addTables(archive, work);
  const lost = await addFiles(archive, work);
  const ledger = await verifyLedgerIn(asTransaction(client), (done, total) =>
    onProgress("ledger", done, total),
  );
  const digests = archive.digests.end();
  const manifest: Manifest = {
    madeAt: now.toISOString(),
    environment: config.environment,
    masterKeys: config.masterKeys.map(fingerprintOf),
    migrations: await mustBeMigrated(client),
    queue: await readQueueVersion(client),
    tables: tables.map((table) => ({
      ...table,
      sha256: required(digests.tables.get(table.name), `the digest of ${table.name}`),
    })),
    ...{ sequences, files: digests.files, keys, ledger },
  };
  await addManifest(archive, manifest, config);
  return {
    tables: tables.length,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    files: digests.files.count,
    keys: keys === null ? "none" : "wrapped",
    problems: [
      ...lost.map((name) => `the file ${name} is missing or damaged in the storage`),
      ...ledger.problems,
    ],
  };
}

async function addManifest(
  archive: ArchiveWriter,
  manifest: Manifest,
  { masterKeys }: Config,
): Promise<void> {
  const text = JSON.stringify(manifest, null, 1);
  await archive.addWhole(MEMBER.manifest, text);
  await archive.addWhole(MEMBER.hmac, hmacOf(text, firstOf(masterKeys)));
  await archive.finish();
}

/** Without a passphrase the archive has no keys, since they would open the archive itself. */
async function addKeys(archive: ArchiveWriter, { config, passphrase }: BackupWork): Promise<string | null> {
  if (passphrase === null) return null;
  const wrapped = await wrapKeys(
    {
      masterKeys: config.masterKeys.map(({ id, bytes }) => ({ id, key: bytes.toString("base64") })),
      sessionKeys: config.sessionKeys.map((bytes, at) => ({
        id: `${at + 1}`,
        key: bytes.toString("base64"),
      })),
    },
    passphrase,
  );
  await archive.addWhole(MEMBER.keys, wrapped);
  return sha256Of(wrapped);
}

async function addTables(archive: ArchiveWriter, { client, onProgress }: BackupWork) {
  const tables: (Pick<Table, "name" | "columns"> & { rows: number })[] = [];
  const all = await listTables(client);
  for (const table of all) {
    const { name, columns } = table;
    tables.push({ name, columns, rows: await addTable(archive, client, table) });
    onProgress("tables", tables.length, all.length);
  }
  return { tables, sequences: await listSequences(client) };
}

async function addTable(archive: ArchiveWriter, client: pg.Client, table: Table): Promise<number> {
  // Registered here, since a table without rows has no part.
  archive.digests.table(table.name);
  let [parts, rows] = [0, 0];
  for await (const part of splitIntoParts(client.query(pgCopyStreams().to(copyToSql(table))))) {
    await archive.addPart(table.name, ++parts, part);
    rows += countRows(part);
  }
  return rows;
}

/** Splits the stream at row ends into parts of about PART_BYTES. */
async function* splitIntoParts(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < PART_BYTES) continue;
    const bytes = Buffer.concat(chunks);
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) yield bytes.subarray(0, end);
    chunks = [bytes.subarray(end)];
    size -= end;
  }
  if (size > 0) yield Buffer.concat(chunks);
}

/** COPY escapes line ends inside values. */
function countRows(part: Buffer): number {
  let rows = 0;
  for (let at = part.indexOf(LINE_FEED); at >= 0; at = part.indexOf(LINE_FEED, at + 1)) rows++;
  return rows;
}

/** Returns the names of referenced files that are missing or damaged. */
async function addFiles(
  archive: ArchiveWriter,
  { client, storage, onProgress }: BackupWork,
): Promise<string[]> {
  const lost: string[] = [];
  const path = join(await storage.incoming(), randomUUID());
  let files = 0;
  try {
    for await (const { name, isReferredTo } of iterateBlobs(asTransaction(client))) {
      onProgress("files", files++, 0);
      const size = await downloadFile(path, storage, name);
      if (size !== null) await archive.addFile(name, { path, size });
      // An upload writes its row first: an unreferenced file is being uploaded, or its upload failed.
      else if (isReferredTo) lost.push(name);
    }
  } finally {
    await rm(path, { force: true });
  }
  return lost;
}

/** The size; null when the bytes are missing or do not match the digest in the name. Such an archive could not be restored. */
async function downloadFile(path: string, storage: Storage, name: string): Promise<number | null> {
  const bytes = await storage.get(name);
  if (!bytes) return null;
  const hash = createHash("sha256");
  let size = 0;
  const measured = async function* (chunks: Readable) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      size += chunk.length;
      yield chunk;
    }
  };
  await pipeline(bytes, measured, createWriteStream(path, { mode: 0o600 }));
  return hash.digest("hex") === digestIn(name) ? size : null;
}
