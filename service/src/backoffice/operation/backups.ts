import { createReadStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Backup } from "@stoa/contract";
import { readPassphrase } from "../../core/config/config.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Page, Paging } from "../../platform/db/paging.ts";
import { FileResponse } from "../../platform/http/route.ts";
import type { AdminActor } from "../admin/admin-action.ts";
import type { BackupStep } from "../backup/backup.ts";
import { backupFileName, partOf, writeBackupFile } from "../operator/backup-file.ts";
import { readDisk } from "./health.ts";
import { deleteTask, findLastBackupSize, listTasks, type TaskRow } from "./task-queries.ts";
import { failAbandoned, type ReportProgress, readTask, toTaskState } from "./tasks.ts";

const LINK_LIFETIME_MS = 5 * 60_000;
/** Distinguishes backups of one second. */
const SUFFIX_LENGTH = 6;
/** Of an unfinished backup of this page, not of one at the command line. */
const OWN_PART = /^stoa-[\dTZ-]+-[0-9a-f]{6}\.tar\.gz\.part$/;
/** Stays free for the database, which may be on the same disk. */
const RESERVED_BYTES = 256 * 2 ** 20;
const GB = 2 ** 30;

const steps: Record<BackupStep, string> = {
  tables: "Writing tables",
  files: "Writing files",
  ledger: "Verifying the ledger",
};

const folderOf = ({ config }: Context) => join(config.dataDir, "backups");

const fileNameOf = ({ id, startedAt }: Pick<TaskRow, "id" | "startedAt">) =>
  backupFileName(startedAt, id.slice(-SUFFIX_LENGTH));

export async function startBackup(ctx: Context, actor: AdminActor): Promise<Backup> {
  const row = await ctx.operatorTasks.start(ctx, actor, {
    kind: "backup",
    action: "backup.started",
    firstStep: steps.tables,
    run: (task, report) => writeBackup(ctx, task, report),
  });
  return toBackup(ctx, row);
}

async function writeBackup(
  ctx: Context,
  task: Pick<TaskRow, "id" | "startedAt">,
  report: ReportProgress,
): Promise<object> {
  await mkdir(folderOf(ctx), { recursive: true, mode: 0o700 });
  await removeAbandonedParts(folderOf(ctx));
  await mustHaveRoom(ctx);
  const file = join(folderOf(ctx), fileNameOf(task));
  const result = await writeBackupFile({ ...ctx.connection, config: ctx.config }, file, {
    passphrase: readPassphrase(),
    now: task.startedAt,
    onProgress: (step, done, total) => report({ step: steps[step], done, total }),
  });
  return { ...result, size: (await stat(file)).size };
}

/** One backup runs at a time, so that none writes these. */
async function removeAbandonedParts(folder: string): Promise<void> {
  for (const name of (await readdir(folder)).filter((one) => OWN_PART.test(one)))
    await rm(join(folder, name), { force: true });
}

async function mustHaveRoom(ctx: Context): Promise<void> {
  const disk = await readDisk(ctx);
  const needed = ((await findLastBackupSize(ctx.db)) ?? 0) + RESERVED_BYTES;
  if (!disk || disk.free >= needed) return;
  const [free, wanted] = [disk.free, needed].map((bytes) => `${(bytes / GB).toFixed(1)} GB`);
  throw new Error(
    `The disk of the data folder has ${free} free, and a backup needs ${wanted}: the size of the last one and a reserve. Delete old backups, or make room.`,
  );
}

async function toBackup(ctx: Context, row: TaskRow): Promise<Backup> {
  const state = toTaskState(ctx, row);
  const fileName = fileNameOf(row);
  const isDone = state.status === "succeeded";
  const { size, ...result } = row.result as NonNullable<Backup["result"]> & { size: number };
  return {
    ...{ id: toId("bkp", row.id), ...state, fileName },
    size: isDone ? size : null,
    isAvailable: isDone && (await hasFile(ctx, fileName)),
    result: isDone ? result : null,
  };
}

const hasFile = (ctx: Context, fileName: string): Promise<boolean> =>
  stat(join(folderOf(ctx), fileName)).then(
    (found) => found.isFile(),
    () => false,
  );

async function mustFindBackup(ctx: Context, id: string): Promise<TaskRow> {
  const row = await readTask(ctx, "backup", toUuid("bkp", id));
  if (!row) throw new ApiError("BACKUP_NOT_FOUND");
  return row;
}

export const readBackup = async (ctx: Context, id: string): Promise<Backup> =>
  toBackup(ctx, await mustFindBackup(ctx, id));

export async function listBackups(ctx: Context, paging: Paging): Promise<Page<Backup>> {
  const { items, ...page } = await listTasks(ctx.db, "backup", paging);
  return { ...page, items: await Promise.all(items.map((row) => toBackup(ctx, row))) };
}

const pathOf = (id: string) => `/v1/admin/backups/${id}/file`;

export async function createDownloadLink(ctx: Context, id: string) {
  await mustBeAvailable(ctx, await mustFindBackup(ctx, id));
  const expires = new Date(ctx.now().getTime() + LINK_LIFETIME_MS);
  return { url: ctx.links.sign(pathOf(id), expires), expiresAt: expires.toISOString() };
}

/** The path of the file. */
async function mustBeAvailable(ctx: Context, row: TaskRow): Promise<string> {
  const { status, isAvailable, fileName } = await toBackup(ctx, row);
  if (status !== "succeeded")
    throw new ApiError("INVALID_STATE", "Only a backup that has succeeded has a file.", { current: status });
  if (!isAvailable)
    throw new ApiError(
      "INVALID_STATE",
      "The file is not in the data folder of this process: it was moved or deleted, or another process wrote it.",
    );
  return join(folderOf(ctx), fileName);
}

export async function downloadBackup(
  ctx: Context,
  actor: AdminActor,
  id: string,
  query: { expires?: string | undefined; signature?: string | undefined },
): Promise<FileResponse> {
  if (!ctx.links.isValid(pathOf(id), query, ctx.now()))
    throw new ApiError("INVALID_TOKEN", "This link has expired: download the backup from the list again.");
  const path = await mustBeAvailable(ctx, await mustFindBackup(ctx, id));
  await audit(ctx, actor, "backup.downloaded", id);
  return new FileResponse({
    name: basename(path),
    type: "application/gzip",
    bytes: createReadStream(path),
  });
}

const audit = (ctx: Context, { caller, source }: AdminActor, action: string, id: string) =>
  recordAudit(ctx, ctx.db, { actorId: caller.userId, action, target: { type: "backup", id }, source });

export async function deleteBackup(ctx: Context, { caller, source }: AdminActor, id: string) {
  const row = await mustFindBackup(ctx, id);
  await ctx.db.transaction().execute(async (tx) => {
    await failAbandoned(tx, ctx.now());
    const { numDeletedRows } = await deleteTask(tx, row.id);
    if (numDeletedRows === 0n) throw new ApiError("INVALID_STATE", "A backup that runs cannot be deleted.");
    await recordAudit(ctx, tx, {
      ...{ actorId: caller.userId, action: "backup.deleted", source },
      target: { type: "backup", id },
    });
  });
  const file = join(folderOf(ctx), fileNameOf(row));
  for (const path of [file, partOf(file)]) await rm(path, { force: true });
  return { id };
}
