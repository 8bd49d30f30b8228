import { api } from "@stoa/contract";
import { describeConfig } from "../../core/config/config.ts";
import { toId } from "../../core/ids.ts";
import {
  repeatableRoute,
  resumableRoute,
  route,
  uploadRoute,
  withoutCacheChange,
} from "../../platform/http/route.ts";
import {
  createDownloadLink,
  deleteBackup,
  downloadBackup,
  listBackups,
  readBackup,
  startBackup,
} from "./backups.ts";
import { readDatabaseReport } from "./database-report.ts";
import { listUnsentEmails, retryEmail, retryEmails } from "./emails.ts";
import { readHealth } from "./health.ts";
import { listJobs, listQueues, retryFailedJobs, retryJob, runScheduledJob } from "./jobs.ts";
import {
  addRestorePart,
  authorizeRestorePart,
  createRestore,
  readRestore,
  startRestore,
} from "./restores.ts";
import { listVerifications, readVerification, startVerification } from "./verifications.ts";
import { readVersionReport } from "./version.ts";

/** The number is bound to the Idempotency-Key. */
const toRetried = (retried: string) => ({ retried: Number(retried) });

export const operationRoutes = [
  route(api.admin.health.get, (ctx) => readHealth(ctx)),
  route(api.admin.database.get, (ctx) => readDatabaseReport(ctx)),
  route(api.admin.configuration.get, async (ctx) => ({ settings: describeConfig(ctx.config) })),
  route(api.admin.version.get, (ctx) => readVersionReport(ctx)),
  route(api.admin.queues.list, (ctx, _caller, { query }) => listQueues(ctx, query)),
  resumableRoute(
    api.admin.queues.run,
    (ctx, caller, { params }, { source }) => runScheduledJob(ctx, { caller, source }, params.queue),
    async (_ctx, _caller, id) => ({ jobId: toId("job", id) }),
  ),
  route(api.admin.jobs.list, (ctx, _caller, { query }) => listJobs(ctx, query)),
  resumableRoute(
    api.admin.jobs.retry,
    (ctx, caller, { params }, { source }) => retryJob(ctx, { caller, source }, params.jobId),
    async (_ctx, _caller, retried) => toRetried(retried),
  ),
  resumableRoute(
    api.admin.jobs.retryAll,
    (ctx, caller, { query }, { source }) => retryFailedJobs(ctx, { caller, source }, query.queue),
    async (_ctx, _caller, retried) => toRetried(retried),
  ),
  route(api.admin.emails.list, (ctx, _caller, { query }) => listUnsentEmails(ctx, query)),
  resumableRoute(
    api.admin.emails.retry,
    (ctx, caller, { params }, { source }) => retryEmail(ctx, { caller, source }, params.emailId),
    async (_ctx, _caller, retried) => toRetried(retried),
  ),
  resumableRoute(
    api.admin.emails.retryAll,
    (ctx, caller, _input, { source }) => retryEmails(ctx, { caller, source }),
    async (_ctx, _caller, retried) => toRetried(retried),
  ),
  route(api.admin.ledgerVerifications.list, (ctx, _caller, { query }) => listVerifications(ctx, query)),
  route(api.admin.ledgerVerifications.get, (ctx, _caller, { params }) =>
    readVerification(ctx, params.verificationId),
  ),
  resumableRoute(
    api.admin.ledgerVerifications.create,
    (ctx, caller, _input, { source }) => startVerification(ctx, { caller, source }),
    (ctx, _caller, id) => readVerification(ctx, toId("lvf", id)),
  ),
  route(api.admin.backups.list, (ctx, _caller, { query }) => listBackups(ctx, query)),
  route(api.admin.backups.get, (ctx, _caller, { params }) => readBackup(ctx, params.backupId)),
  resumableRoute(
    api.admin.backups.create,
    (ctx, caller, _input, { source }) => startBackup(ctx, { caller, source }),
    (ctx, _caller, id) => readBackup(ctx, toId("bkp", id)),
  ),
  repeatableRoute(
    "A link changes nothing.",
    route(api.admin.backups.createDownloadLink, (ctx, _caller, { params }) =>
      createDownloadLink(ctx, params.backupId),
    ),
  ),
  route(api.admin.backups.download, (ctx, caller, { params, query }, { source }) =>
    downloadBackup(ctx, { caller, source }, params.backupId, query),
  ),
  route(api.admin.backups.delete, (ctx, caller, { params }, { source }) =>
    deleteBackup(ctx, { caller, source }, params.backupId),
  ),
  ...[
    route(api.restores.create, (ctx, _caller, { body }) => createRestore(ctx, body)),
    uploadRoute(
      api.restores.addPart,
      async (_ctx, _caller, { restoreId }) => authorizeRestorePart(restoreId),
      (_ctx, _caller, { params, body, file }) => addRestorePart(params.restoreId, Number(body.offset), file),
    ),
    route(api.restores.start, (ctx, _caller, { params, body }, { source }) =>
      startRestore(ctx, params.restoreId, body.passphrase ?? null, source),
    ),
    route(api.restores.get, async (_ctx, _caller, { params }) => readRestore(params.restoreId)),
    // A restore locks all tables, so that a round trip to the database would wait for it.
  ].map(withoutCacheChange),
];
