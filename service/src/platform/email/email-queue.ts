import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import type { Queries } from "../db/database.ts";
import { sealedColumn } from "../db/sealed-columns.ts";
import type { JobDefinition } from "../jobs/job-queue.ts";
import {
  deleteEmailsBefore,
  findStoredEmail,
  findUnsentEmail,
  insertEmail,
  listStoredEmails,
  updateEmail,
} from "./queries.ts";
import type { Email } from "./render-email.ts";

const RETENTION_DAYS = 7;
const MAX_LISTED = 200;

/** Retried for six to eight hours, which covers an outage of the mail server and greylisting. */
export const sendEmailJob: JobDefinition = {
  name: "send-mail",
  retries: 10,
  retryDelaySeconds: 30,
  maxRetryDelaySeconds: 7_200,
  attemptTimeoutSeconds: 120,
};

const sealContext = (id: string) => `mail|${id}`;

export const sealedEmails = sealedColumn({
  table: "emails",
  column: "sealed_email",
  key: { id: "uuid" },
  bound: { id: "t.id" },
  contextOf: ({ id }) => sealContext(id),
});

/** Writes an email in the caller's transaction. A job sends it after the commit, so that no request waits for a mail server. */
export async function queueEmail(
  ctx: Context,
  tx: Queries,
  recipient: string,
  message: Email,
): Promise<void> {
  if (ctx.config.mail === "off") return;
  const id = ctx.newId();
  await insertEmail(tx, {
    id,
    recipient,
    sealedEmail: ctx.vault.seal(JSON.stringify(message), sealContext(id)),
    createdAt: ctx.now(),
  });
  await ctx.jobs.send(tx, sendEmailJob.name, { mailId: id });
}

/**
 * Sends an email once. If the process is killed between the server's answer and our commit, the next attempt sends it
 * again with the same Message-ID. The content is deleted once sent; /dev/mail shows emails for a week.
 */
export async function sendQueuedEmail(ctx: Context, mailId: string, signal: AbortSignal): Promise<void> {
  const mail = await findUnsentEmail(ctx.db, mailId);
  if (!mail) return;
  const { recipient } = mail;
  const carried = await ctx.integrations.emailSender.send(
    { id: mailId, recipient, ...openEmail(ctx, mail) },
    signal,
  );
  if (carried.state === "taken") {
    const isShown = ctx.config.mail === "dev";
    await updateEmail(ctx.db, mailId, { sentAt: ctx.now(), ...(!isShown && { sealedEmail: null }) });
  } else {
    ctx.log.warn({ mail: mailId, why: carried.why }, "an email was refused");
    await updateEmail(ctx.db, mailId, { refusedAt: ctx.now(), sealedEmail: null });
  }
}

const openEmail = ({ vault }: Context, { id, sealedLetter }: { id: string; sealedLetter: string }): Email =>
  JSON.parse(vault.open(sealedLetter, sealContext(id)));

/** null: it cannot be decrypted. */
export function readEmailSubject(ctx: Context, mail: { id: string; sealedLetter: string }): string | null {
  try {
    return openEmail(ctx, mail).subject;
  } catch {
    return null;
  }
}

/** For /dev/mail. */
export interface StoredEmail extends Email {
  id: string;
  to: string;
  createdAt: Date;
}

interface EmailRow {
  id: string;
  recipient: string;
  sealedLetter: string;
  createdAt: Date;
}

const toStoredEmail = (ctx: Context, mail: EmailRow): StoredEmail => ({
  id: mail.id,
  to: mail.recipient,
  createdAt: mail.createdAt,
  ...openEmail(ctx, mail),
});

export async function listEmails(ctx: Context): Promise<StoredEmail[]> {
  return (await listStoredEmails(ctx.db, MAX_LISTED)).map((mail) => toStoredEmail(ctx, mail));
}

export async function findEmail(ctx: Context, id: string): Promise<StoredEmail | null> {
  const mail = await findStoredEmail(ctx.db, id);
  return mail ? toStoredEmail(ctx, mail) : null;
}

export async function deleteOldEmails(ctx: Context): Promise<void> {
  await deleteEmailsBefore(ctx.db, daysAfter(ctx.now(), -RETENTION_DAYS));
}
