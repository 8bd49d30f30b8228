import type { QueuedEmail } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { maskAddresses } from "../../core/mask.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { readEmailSubject, sendEmailJob } from "../../platform/email/email-queue.ts";
import type { AdminActor } from "../admin/admin-action.ts";
import {
  type EmailStatus,
  hastenEmailJobs,
  listUnsentEmailIds,
  listUnsentEmailRows,
  lockUnsentEmail,
  type UnsentEmailRow,
} from "./job-queries.ts";
import { describeJobError } from "./jobs.ts";

const QUEUE = sendEmailJob.name;
/** Each without a job is requested by a statement of its own. */
const MAX_RETRIED = 1_000;
const ALL_STATUSES: EmailStatus[] = ["waiting", "failed", "refused"];

interface EmailsQuery extends Paging {
  status?: EmailStatus | undefined;
}

export async function listUnsentEmails(ctx: Context, query: EmailsQuery): Promise<Page<QueuedEmail>> {
  const { status, ...paging } = query;
  const statuses = status ? [status] : ALL_STATUSES;
  return mapPage(await listUnsentEmailRows(ctx.db, { queue: QUEUE, statuses, ...paging }), (row) =>
    toQueuedEmail(ctx, row),
  );
}

/** The subject of no email has a code or a link. */
const toQueuedEmail = (ctx: Context, row: UnsentEmailRow): QueuedEmail => ({
  id: toId("mail", row.id),
  recipient: maskAddresses(row.recipient),
  subject:
    row.sealedEmail === null ? null : readEmailSubject(ctx, { id: row.id, sealedLetter: row.sealedEmail }),
  ...{ status: row.status, attempts: row.attempts },
  error: describeJobError(row.error),
  createdAt: row.createdAt.toISOString(),
  nextAttemptAt: row.nextAttemptAt?.toISOString() ?? null,
  refusedAt: row.refusedAt?.toISOString() ?? null,
});

export async function retryEmail(ctx: Context, actor: AdminActor, emailId: string) {
  const id = toUuid("mail", emailId);
  await ctx.db.transaction().execute(async (tx) => {
    const email = id === null ? undefined : await lockUnsentEmail(tx, id);
    if (id === null || !email) throw new ApiError("EMAIL_NOT_FOUND");
    if (email.refusedAt)
      throw new ApiError(
        "INVALID_STATE",
        "The mail server refused this email for good, and its content is deleted.",
        {
          current: "refused",
        },
      );
    await requestAgain(ctx, tx, [id]);
    await audit(ctx, tx, actor, { target: { type: "email", id: emailId } });
    await ctx.idempotencyKey?.bind(tx, "1");
  });
  return { retried: 1 };
}

export async function retryEmails(ctx: Context, actor: AdminActor) {
  return ctx.db.transaction().execute(async (tx) => {
    const ids = await listUnsentEmailIds(tx, MAX_RETRIED);
    await requestAgain(ctx, tx, ids);
    if (ids.length > 0) await audit(ctx, tx, actor, { details: { retried: ids.length } });
    await ctx.idempotencyKey?.bind(tx, String(ids.length));
    return { retried: ids.length };
  });
}

async function requestAgain(ctx: Context, tx: Tx, mailIds: string[]): Promise<void> {
  for (const mailId of await hastenEmailJobs(tx, QUEUE, mailIds)) await ctx.jobs.send(tx, QUEUE, { mailId });
}

const audit = (
  ctx: Context,
  tx: Tx,
  { caller, source }: AdminActor,
  about: { target?: { type: string; id: string }; details?: Record<string, unknown> },
) => recordAudit(ctx, tx, { actorId: caller.userId, action: "email.retried", source, ...about });
