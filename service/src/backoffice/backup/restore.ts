import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import { verifyLedgerIn } from "../../commerce/ledger/verification.ts";
import { replaceSecrets, type StoredSecrets } from "../../core/config/secrets.ts";
import { createLog } from "../../core/log.ts";
import { firstOf, required } from "../../core/required.ts";
import type { Storage } from "../../integrations/storage/storage.ts";
import { openStorage } from "../../integrations.ts";
import { jobKinds } from "../../job-kinds.ts";
import { asTransaction, openPool } from "../../platform/db/database.ts";
import { lockMigrations, migrate } from "../../platform/db/migrate.ts";
import { openJobQueue } from "../../platform/jobs/job-queue.ts";
import { type ArchiveVisitor, discard, readArchive } from "./archive.ts";
import type { Installation } from "./backup.ts";
import { withClient } from "./backup-client.ts";
import { type InspectedArchive, inspectArchive } from "./inspect.ts";
import { type Manifest, verifyManifest } from "./manifest.ts";
import {
  addForeignKey,
  copyFromSql,
  countRows,
  deleteRows,
  dropForeignKey,
  hasRows,
  listForeignKeys,
  listTables,
  lockTables,
  pgCopyStreams,
  readQueueVersion,
  restartSequence,
  switchTriggers,
  type Table,
} from "./queries.ts";

/** In the error message. */
const MAX_NAMED_TABLES = 5;

export interface RestoreResult {
  madeAt: string;
  tables: number;
  rows: number;
  files: number;
  /** Whether the archive's keys replaced those of the data folder. */
  keys: "here already" | "put into the data folder";
}

export type RestoreStep = "check" | "load" | "verify";

export interface RestoreOptions {
  /** Tables whose rows the archive replaces; all others must be empty. */
  replaced?: readonly string[];
  /** Called when the archive is proven, before the tables are locked. */
  beforeLoad?: () => Promise<void>;
  /** In bytes of the archive. */
  onProgress?: (step: RestoreStep, done: number, total: number) => void;
}

/** Their rows come from migrations, so they are in an empty database too; the archive's replace them. */
export const TABLES_FILLED_BY_MIGRATIONS: readonly string[] = ["public.run_folds"];

/**
 * Restores an archive into a database without rows. One transaction has all rows and commits after all checks. A killed
 * restore leaves no rows and can be repeated.
 */
export async function restore(
  shop: Installation,
  path: string,
  passphrase: string | null,
  { replaced: more = [], beforeLoad = async () => {}, onProgress = () => {} }: RestoreOptions = {},
): Promise<RestoreResult> {
  const replaced = [...TABLES_FILLED_BY_MIGRATIONS, ...more];
  const { size } = await stat(path);
  await withClient(shop, "stoa restore", async (client) =>
    mustBeEmpty(client, without(await listTables(client), replaced)),
  );
  const archive = await inspectArchive(path, shop.config, passphrase, (read) =>
    onProgress("check", read, size),
  );
  await createTables(shop, archive.manifest);
  await beforeLoad();
  const storage = await openStorage(shop.config);
  try {
    await withClient(shop, "stoa restore", (client) =>
      loadArchive({ ...archive, client, storage, path, shop, replaced, onProgress, size }),
    );
  } finally {
    await storage.close();
  }
  return toRestoreResult(archive);
}

function toRestoreResult({ manifest: { madeAt, tables, files }, secrets }: InspectedArchive): RestoreResult {
  return {
    madeAt,
    tables: tables.length,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    files: files.count,
    keys: secrets ? "put into the data folder" : "here already",
  };
}

const without = (tables: Table[], names: readonly string[]) =>
  tables.filter(({ name }) => !names.includes(name));

async function mustBeEmpty(client: pg.Client, tables: Table[]): Promise<void> {
  const full: string[] = [];
  for (const table of tables) if (await hasRows(client, table)) full.push(table.name);
  if (full.length === 0) return;
  const more = full.length > MAX_NAMED_TABLES ? ` and ${full.length - MAX_NAMED_TABLES} more` : "";
  throw new Error(
    `This database is not empty: there are rows in ${full.slice(0, MAX_NAMED_TABLES).join(", ")}${more}. Restore into a new one; \`stoa-server reset\` empties a test database. Nothing was changed.`,
  );
}

/** Creates our tables, those of the job queue, and those of the test payment provider if the archive has them. */
async function createTables({ target, direct }: Installation, { tables }: Manifest): Promise<void> {
  const pool = openPool({ target: direct ?? target, maxConnections: 2 });
  try {
    await migrate(pool, new Date());
    await (await openJobQueue(pool, createLog("warn"), jobKinds)).close();
    if (tables.some(({ name }) => name.startsWith("fake_provider."))) {
      const { createSchema } = await import("../../integrations/payments/fake-payments.ts");
      await createSchema(pool);
    }
  } finally {
    await pool.end();
  }
}

interface RestoreWork extends InspectedArchive {
  client: pg.Client;
  storage: Storage;
  path: string;
  /** Bytes of the archive. */
  size: number;
  shop: Installation;
  replaced: readonly string[];
  onProgress: NonNullable<RestoreOptions["onProgress"]>;
}

async function loadArchive(work: RestoreWork): Promise<void> {
  const { client, manifest, secrets, shop, replaced, size, onProgress } = work;
  await client.query("begin");
  // A service that starts meanwhile waits for this lock and finds all rows or none.
  await lockMigrations(client);
  const tables = await listTables(client);
  await lockTables(client, tables, "access exclusive");
  await mustBeEmpty(client, without(tables, replaced));
  await mustMatchTables(client, manifest, tables);
  await withoutConstraints(client, tables, async () => {
    for (const table of tables) if (replaced.includes(table.name)) await deleteRows(client, table);
    await copyRows(work, tables);
    onProgress("verify", size, size);
  });
  for (const sequence of manifest.sequences) await restartSequence(client, sequence);
  await mustBeComplete(client, manifest, tables);
  if (secrets) await commitWith(client, shop, secrets);
  else await client.query("commit");
  // Row counts for the planner. The rows are there without them, and autovacuum counts them later.
  await client
    .query("analyze")
    .catch((error) => createLog("warn").warn({ err: error }, "the restored tables were not analyzed"));
}

/** The keys come before the rows, which would be lost without them. */
async function commitWith(client: pg.Client, shop: Installation, secrets: StoredSecrets): Promise<void> {
  const { dataDir } = shop.config;
  const { rows } = await client.query<{ id: string }>("select pg_current_xact_id()::text as id");
  const old = replaceSecrets(dataDir, secrets);
  try {
    await client.query("commit");
  } catch (error) {
    // A lost answer does not say whether the rows are there.
    if (await isCommitted(shop, firstOf(rows).id).catch(() => false)) return;
    replaceSecrets(dataDir, old);
    throw error;
  }
}

const isCommitted = (shop: Installation, transactionId: string): Promise<boolean> =>
  withClient(shop, "stoa restore", async (client) => {
    const { rows } = await client.query("select pg_xact_status($1::xid8) as status", [transactionId]);
    return rows[0]?.status === "committed";
  });

/** The migrations are equal, so only the queue's tables can differ. */
async function mustMatchTables(client: pg.Client, manifest: Manifest, tables: Table[]): Promise<void> {
  const queue = await readQueueVersion(client);
  const columnsOf = (those: Pick<Table, "name" | "columns">[]) =>
    new Map(those.map(({ name, columns }) => [name, columns]));
  if (queue !== manifest.queue || !isDeepStrictEqual(columnsOf(tables), columnsOf(manifest.tables)))
    throw new Error(
      `The archive's job queue has tables of version ${manifest.queue}, this one of ${queue}: restore it with the version of Stoa that made it.`,
    );
}

/**
 * Rows arrive in any order and unchanged, so triggers must neither check nor count them. Creating the foreign keys again
 * checks all rows, and needs only the owner's rights.
 */
async function withoutConstraints(
  client: pg.Client,
  tables: Table[],
  work: () => Promise<void>,
): Promise<void> {
  const foreignKeys = await listForeignKeys(client);
  const ours = tables.filter(({ where }) => where === undefined);
  for (const foreignKey of foreignKeys) await dropForeignKey(client, foreignKey);
  for (const table of ours) await switchTriggers(client, table, "disable");
  await work();
  for (const table of ours) await switchTriggers(client, table, "enable");
  for (const foreignKey of foreignKeys) await addForeignKey(client, foreignKey);
}

/** Reads the archive a second time and compares it with the digests of the first pass. */
async function copyRows(work: RestoreWork, tables: Table[]): Promise<void> {
  const { client, storage, path, contents, size, onProgress } = work;
  const byName = new Map(tables.map((table) => [table.name, table]));
  const waiting = join(await storage.incoming(), randomUUID());
  const visitor: ArchiveVisitor = {
    part: (table, rows) =>
      pipeline(
        rows,
        client.query(pgCopyStreams().from(copyFromSql(required(byName.get(table), `the table ${table}`)))),
      ),
    async file(name, bytes) {
      if (await storage.has(name)) return discard(name, bytes);
      await pipeline(bytes, createWriteStream(waiting, { mode: 0o600 }));
      await storage.put(name, { path: waiting });
    },
  };
  try {
    const again = await readArchive(path, visitor, (read) => onProgress("load", read, size));
    verifyManifest(again);
    if (!again.manifest.equals(contents.manifest)) throw new Error(`${path} was changed while it was read.`);
  } finally {
    await rm(waiting, { force: true });
  }
}

async function mustBeComplete(client: pg.Client, manifest: Manifest, tables: Table[]): Promise<void> {
  const expected = new Map(manifest.tables.map(({ name, rows }) => [name, rows]));
  for (const table of tables) {
    const rows = await countRows(client, table);
    if (rows !== expected.get(table.name))
      throw new Error(
        `${table.name} has ${rows} rows, and the archive says ${expected.get(table.name)}. Nothing was changed.`,
      );
  }
  // An imbalance of the shop is in its archive too; the restore must not add one.
  const ledger = await verifyLedgerIn(asTransaction(client));
  if (!isDeepStrictEqual(ledger, manifest.ledger))
    throw new Error(
      `The ledger is not what it was: ${ledger.problems.join(" ") || "transactions or entries are missing"} Nothing was changed.`,
    );
}
