import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Restore } from "@stoa/contract";
import { hasAccounts } from "../../accounts/people/accounts.ts";
import { mustFindOneTimeToken } from "../../accounts/sign-in/one-time-tokens.ts";
import { type Config, readPassphrase } from "../../core/config/config.ts";
import type { Context, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { maskSecrets } from "../../core/mask.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { type RestoreStep, restore, TABLES_FILLED_BY_MIGRATIONS } from "../backup/restore.ts";
import {
  addPart,
  discardFile,
  mustBeReceiving,
  mustFindSession,
  openSession,
  type RestoreSession,
  toRestore,
} from "./restore-sessions.ts";

/** What a service writes while it has no account: at its start, by its jobs, and for visitors. A restore replaces it. */
export const TABLES_BEFORE_ACCOUNTS: readonly string[] = [
  ...TABLES_FILLED_BY_MIGRATIONS,
  "pgboss.job",
  "public.audit_log",
  "public.categories",
  "public.emails",
  "public.health_hours",
  "public.installation",
  "public.job_runs",
  "public.ledger_verifications",
  "public.one_time_tokens",
  "public.provider_cursors",
  "public.provider_reconciliations",
  "public.request_logs",
  "public.scheduled_runs",
  "public.service_versions",
  "public.sign_in_attempts",
];

const steps: Record<RestoreStep, string> = {
  check: "Checking the file",
  load: "Loading the data",
  verify: "Verifying the data",
};

/** Not with the uploads, which are deleted after an hour. */
const folderOf = ({ dataDir }: Config) => join(dataDir, "restore");

/** At the start: a killed process leaves a file that contains a whole marketplace. */
export const removeReceivedBackups = ({ config, log }: Context): Promise<void> =>
  rm(folderOf(config), { recursive: true, force: true }).catch((error) =>
    log.error({ err: error }, "the files of restores were not removed"),
  );

interface NewRestore {
  token: string;
  fileName: string;
  size: number;
}

/** The token proves that the person can read the service's output. It stays valid for another attempt. */
export async function createRestore(ctx: Context, { token, ...file }: NewRestore): Promise<Restore> {
  await mustFindOneTimeToken(ctx, token, "first-admin");
  mustBeOneProcess(ctx.config);
  await mustHaveNoAccount(ctx);
  return toRestore(await openSession(folderOf(ctx.config), file));
}

/** The session of a restore is in memory, and keys and caches of other processes would be those of the installation before. */
function mustBeOneProcess({ processes }: Config): void {
  if (processes > 1)
    throw new ApiError(
      "INVALID_STATE",
      "A restore in the browser needs a single process: start the service with STOA_PROCESSES=1, restore, and then set it again. Or stop the service and run `stoa-server restore`.",
    );
}

async function mustHaveNoAccount(ctx: Context): Promise<void> {
  if (await hasAccounts(ctx.db))
    throw new ApiError(
      "INVALID_STATE",
      "This installation has accounts. A backup can be restored only into one without any: use a new, empty database.",
    );
}

export const authorizeRestorePart = (id: string): void => mustBeReceiving(mustFindSession(id));

export async function addRestorePart(id: string, offset: number, file: UploadedFile): Promise<Restore> {
  const session = mustFindSession(id);
  await addPart(session, offset, file);
  return toRestore(session);
}

export const readRestore = (id: string): Restore => toRestore(mustFindSession(id));

export async function startRestore(
  ctx: Context,
  id: string,
  passphrase: string | null,
  source: RequestSource,
): Promise<Restore> {
  const session = mustFindSession(id);
  // A repeated click.
  if (session.status === "running" || session.status === "restarting") return toRestore(session);
  mustBeReceiving(session);
  if (session.received !== session.size)
    throw new ApiError("INVALID_STATE", "The file has not arrived whole: send the rest of it first.", {
      received: session.received,
    });
  session.status = "running";
  session.progress = { step: steps.check, done: 0, total: session.size };
  void runRestore(ctx, session, passphrase, source);
  return toRestore(session);
}

/** Never rejects. */
async function runRestore(
  ctx: Context,
  session: RestoreSession,
  passphrase: string | null,
  source: RequestSource,
): Promise<void> {
  let isPaused = false;
  const pauseWork = async () => {
    isPaused = true;
    await ctx.serviceControl.pauseWork();
  };
  try {
    await mustHaveNoAccount(ctx);
    session.result = await loadBackup(ctx, session, { passphrase, pauseWork });
    session.status = "restarting";
    await auditRestore(ctx, session, source);
  } catch (error) {
    ctx.log.error({ err: error }, "the restore failed");
    session.error = describeFailure(session, error as Error);
    session.status = "failed";
  }
  await discardFile(session);
  await restartService(ctx, session, isPaused);
}

async function loadBackup(
  ctx: Context,
  session: RestoreSession,
  { passphrase, pauseWork }: { passphrase: string | null; pauseWork: () => Promise<void> },
): Promise<NonNullable<Restore["result"]>> {
  const shop = { ...ctx.connection, config: ctx.config };
  const { keys: _, ...counts } = await restore(shop, session.path, passphrase ?? readPassphrase(), {
    replaced: TABLES_BEFORE_ACCOUNTS,
    beforeLoad: pauseWork,
    onProgress: (step, done, total) => {
      session.progress = { step: steps[step], done, total };
    },
  });
  return counts;
}

const auditRestore = (ctx: Context, { result, fileName }: RestoreSession, source: RequestSource) =>
  recordAudit(ctx, ctx.db, {
    ...{ actorId: null, action: "installation.restored", source },
    details: { ...result, fileName },
  }).catch((error) => ctx.log.error({ err: error }, "the restore is missing in the audit log"));

/** The file has a random name here. */
const describeFailure = ({ path, fileName }: RestoreSession, { message }: Error) =>
  maskSecrets(message.replaceAll(path, fileName));

/** Keys, caches and clocks of this process belong to the installation before. After a failure, the paused work begins again. */
async function restartService(ctx: Context, session: RestoreSession, isPaused: boolean): Promise<void> {
  const { restart } = ctx.serviceControl;
  if (restart && isPaused) {
    ctx.log.info("the service starts again after a restore");
    await restart();
  }
  if (session.status === "restarting") session.status = "succeeded";
}
