import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";

const count = z.int().min(0);
const admin = { who: "admin" } as const;

const progress = z
  .object({
    step: z.string(),
    done: count,
    total: count.describe("0: not known"),
  })
  .describe("`done` of `total` parts of the present step");

const task = {
  id: z.string(),
  status: z.enum(["running", "succeeded", "failed"]),
  progress,
  error: z.string().nullable().describe("Why it failed, and what to do"),
  startedAt: Timestamp,
  endedAt: Timestamp.nullable(),
};

export const LedgerVerification = z
  .object({
    ...task,
    result: z
      .object({
        ok: z.boolean(),
        transactions: count,
        entries: count,
        problemCount: count,
        problems: z.array(z.string()).describe("The first 1,000, one sentence each"),
      })
      .nullable()
      .describe("null until it has succeeded"),
  })
  .meta({ id: "LedgerVerification" });

export const verifications = endpoint({
  name: "admin.ledgerVerifications.list",
  method: "GET",
  path: "/admin/ledger-verifications",
  summary: "List verifications of the ledger that administrators started, newest first",
  access: admin,
  query: z.strictObject(paging),
  response: listOf(LedgerVerification),
});

export const verification = endpoint({
  name: "admin.ledgerVerifications.get",
  method: "GET",
  path: "/admin/ledger-verifications/:verificationId",
  summary: "Read the progress and report of a verification",
  access: admin,
  params: z.object({ verificationId: z.string() }),
  response: one(LedgerVerification),
  errors: ["LEDGER_VERIFICATION_NOT_FOUND"],
});

export const startVerification = endpoint({
  name: "admin.ledgerVerifications.create",
  method: "POST",
  path: "/admin/ledger-verifications",
  summary: "Verify the ledger in the background",
  description:
    "Runs `stoa-server ledger verify` and returns at once. One runs at a time: while one runs, this returns that one.",
  access: admin,
  response: created(LedgerVerification),
});

export const Backup = z
  .object({
    ...task,
    fileName: z.string(),
    size: count.nullable().describe("Bytes; null until it has succeeded"),
    isAvailable: z
      .boolean()
      .describe(
        "Whether its file can be downloaded from the process that answers: it is in the data folder of the one that wrote it",
      ),
    result: z
      .object({
        tables: count,
        rows: count,
        files: count,
        keys: z
          .enum(["wrapped", "none"])
          .describe("wrapped: contains the keys of the installation, encrypted with STOA_BACKUP_PASSPHRASE"),
        problems: z.array(z.string()).describe("What a restore of it cannot bring back"),
      })
      .nullable()
      .describe("null until it has succeeded"),
  })
  .meta({ id: "Backup" });

const backupParams = z.object({ backupId: z.string() });

export const backups = endpoint({
  name: "admin.backups.list",
  method: "GET",
  path: "/admin/backups",
  summary: "List backups that administrators started, newest first",
  access: admin,
  query: z.strictObject(paging),
  response: listOf(Backup),
});

export const backup = endpoint({
  name: "admin.backups.get",
  method: "GET",
  path: "/admin/backups/:backupId",
  summary: "Read the progress and result of a backup",
  access: admin,
  params: backupParams,
  response: one(Backup),
  errors: ["BACKUP_NOT_FOUND"],
});

export const startBackup = endpoint({
  name: "admin.backups.create",
  method: "POST",
  path: "/admin/backups",
  summary: "Write a backup of the whole installation in the background",
  description:
    "Returns at once; the service keeps running. The file is written to the folder `backups` of the data folder. One runs at a time: while one runs, this returns that one.",
  access: admin,
  response: created(Backup),
});

export const createDownloadLink = endpoint({
  name: "admin.backups.createDownloadLink",
  method: "POST",
  path: "/admin/backups/:backupId/download-link",
  summary: "Get a link to the file of a backup",
  description:
    "A backup contains all data of the marketplace. The link works for five minutes, in a session of an administrator only.",
  access: admin,
  params: backupParams,
  response: created(z.object({ url: z.string(), expiresAt: Timestamp }).meta({ id: "BackupDownloadLink" })),
  requiresFreshSignIn: true,
  errors: ["BACKUP_NOT_FOUND", "INVALID_STATE"],
});

export const downloadBackup = endpoint({
  name: "admin.backups.download",
  method: "GET",
  path: "/admin/backups/:backupId/file",
  summary: "Download a backup",
  description: "Needs the query of a download link. Each download is in the audit log.",
  access: admin,
  params: backupParams,
  query: z.strictObject({
    expires: z.string().max(20).optional(),
    signature: z.string().max(200).optional(),
  }),
  response: { kind: "file", types: ["application/gzip"] },
  errors: ["BACKUP_NOT_FOUND", "INVALID_STATE", "INVALID_TOKEN"],
});

export const deleteBackup = endpoint({
  name: "admin.backups.delete",
  method: "DELETE",
  path: "/admin/backups/:backupId",
  summary: "Delete a backup and its file",
  access: admin,
  params: backupParams,
  response: one(z.object({ id: z.string() })),
  errors: ["BACKUP_NOT_FOUND", "INVALID_STATE"],
});

/** Small enough for the usual limits of proxies. */
export const MAX_RESTORE_PART_BYTES = 16 * 1024 * 1024;

export const Restore = z
  .object({
    id: z.string().describe("A secret: it authorizes the other requests of this restore"),
    status: z
      .enum(["receiving", "running", "restarting", "succeeded", "failed"])
      .describe("restarting: the data is restored, and the service starts again with it"),
    fileName: z.string(),
    size: count.describe("Bytes of the file"),
    received: count.describe("Bytes that have arrived: the offset of the next part"),
    progress,
    error: z.string().nullable().describe("Why it failed, and what to do. Nothing was changed then."),
    result: z
      .object({ madeAt: z.string(), tables: count, rows: count, files: count })
      .nullable()
      .describe("null until the data is restored"),
  })
  .meta({ id: "Restore" });

const restoreParams = z.object({ restoreId: z.string() });
const restoreEndpoint = { base: "/api/auth", tag: "admin", access: { who: "public" } } as const;

export const createRestore = endpoint({
  ...restoreEndpoint,
  name: "restores.create",
  method: "POST",
  path: "/restores",
  summary: "Begin to restore a backup into an empty installation",
  description:
    "Only while the installation has no account. Needs the token of the link that the start prints, which stays valid. Then send the file in parts and start the restore. A new restore replaces one that does not run.",
  request: json(
    z
      .strictObject({
        token: z.string(),
        fileName: z.string().min(1).max(200),
        size: z
          .int()
          .min(1)
          .max(2 ** 50)
          .describe("Bytes of the file"),
      })
      .meta({ id: "CreateRestore" }),
    {
      token: "dGhpcyBpcyBub3QgYSByZWFsIHRva2VuLCBvZiBjb3Vyc2U",
      fileName: "stoa-2026-11-21T16-35-03Z.tar.gz",
      size: 48_234_496,
    },
  ),
  response: created(Restore),
  errors: ["INVALID_TOKEN", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const addRestorePart = endpoint({
  ...restoreEndpoint,
  name: "restores.addPart",
  method: "POST",
  path: "/restores/:restoreId/parts",
  hasSecretPath: true,
  summary: "Send the next part of the backup's file",
  description:
    "At most 16 MiB. `offset` must be `received` of the restore; a part that has arrived before is ignored.",
  params: restoreParams,
  request: {
    kind: "upload",
    maxBytes: MAX_RESTORE_PART_BYTES,
    fields: z.strictObject({ offset: z.string().regex(/^\d{1,16}$/) }),
    example: { offset: "0" },
  },
  response: one(Restore),
  errors: ["RESTORE_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
});

export const startRestore = endpoint({
  ...restoreEndpoint,
  name: "restores.start",
  method: "POST",
  path: "/restores/:restoreId/start",
  hasSecretPath: true,
  summary: "Restore the backup that was sent",
  description:
    "Checks the whole file, then loads it in one transaction: a restore that fails changes nothing. Returns at once.",
  params: restoreParams,
  request: json(
    z
      .strictObject({
        passphrase: z
          .string()
          .max(1_000)
          .optional()
          .describe(
            "STOA_BACKUP_PASSPHRASE of the backup, if its keys differ from those of this installation",
          ),
      })
      .meta({ id: "StartRestore" }),
    {},
  ),
  response: one(Restore),
  errors: ["RESTORE_NOT_FOUND", "INVALID_STATE"],
});

export const getRestore = endpoint({
  ...restoreEndpoint,
  name: "restores.get",
  method: "GET",
  path: "/restores/:restoreId",
  hasSecretPath: true,
  summary: "Read the progress of a restore",
  params: restoreParams,
  response: one(Restore),
  errors: ["RESTORE_NOT_FOUND"],
});

export type LedgerVerification = z.input<typeof LedgerVerification>;
export type Backup = z.input<typeof Backup>;
export type Restore = z.input<typeof Restore>;
