import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import type { Queries } from "../db/database.ts";
import { sealedColumn } from "../db/sealed.ts";
import type { JobKind } from "../jobs/jobs.ts";
import type { Letter } from "./letter.ts";
import {
  deleteMailsBefore,
  findKeptMail,
  findUncarriedMail,
  insertMail,
  listKeptMails,
  stampMail,
} from "./queries.ts";

const KEPT_DAYS = 7;
const SHOWN = 200;

/** Tried for six to eight hours: as long as a mail server may be away, or ask a stranger to come again. */
export const mailJob: JobKind = {
  name: "send-mail",
  retries: 10,
  firstWaitSeconds: 30,
  longestWaitSeconds: 7_200,
  attemptSeconds: 120,
};

const sealContext = (id: string) => `mail|${id}`;

export const sealedLetters = sealedColumn({
  table: "mails",
  column: "sealed_letter",
  key: { id: "uuid" },
  bound: { id: "t.id" },
  contextOf: ({ id }) => sealContext(id),
});

/** Writes a letter in the caller's transaction; a job sends it after the commit, so that nobody waits for a mail server. */
export async function sendMail(ctx: Context, tx: Queries, recipient: string, letter: Letter): Promise<void> {
  if (ctx.config.mail === "off") return;
  const id = ctx.newId();
  await insertMail(tx, {
    id,
    recipient,
    sealed_letter: ctx.vault.seal(JSON.stringify(letter), sealContext(id)),
    created_at: ctx.now(),
  });
  await ctx.jobs.send(tx, mailJob.name, { mailId: id });
}

/**
 * Hands a letter over, once: unless the process is killed between the mail server's yes and our note of it, when the
 * next attempt sends it again under the same Message-ID. What was taken is kept no longer; /dev/mail shows it for a week.
 */
export async function carryMail(ctx: Context, mailId: string, signal: AbortSignal): Promise<void> {
  const mail = await findUncarriedMail(ctx.db, mailId);
  if (!mail) return;
  const { recipient } = mail;
  const carried = await ctx.integrations.emailSender.send(
    { id: mailId, recipient, ...openLetter(ctx, mail) },
    signal,
  );
  if (carried.state === "taken") {
    const isShown = ctx.config.mail === "dev";
    await stampMail(ctx.db, mailId, { sent_at: ctx.now(), ...(!isShown && { sealed_letter: null }) });
  } else {
    ctx.log.warn({ mail: mailId, why: carried.why }, "a letter was refused");
    await stampMail(ctx.db, mailId, { refused_at: ctx.now(), sealed_letter: null });
  }
}

const openLetter = ({ vault }: Context, { id, sealedLetter }: { id: string; sealedLetter: string }): Letter =>
  JSON.parse(vault.open(sealedLetter, sealContext(id)));

/** A letter as /dev/mail shows it. */
export interface ShownLetter extends Letter {
  id: string;
  to: string;
  createdAt: Date;
}

interface KeptMail {
  id: string;
  recipient: string;
  sealedLetter: string;
  createdAt: Date;
}

const toShown = (ctx: Context, mail: KeptMail): ShownLetter => ({
  id: mail.id,
  to: mail.recipient,
  createdAt: mail.createdAt,
  ...openLetter(ctx, mail),
});

/** Newest first. */
export async function listLetters(ctx: Context): Promise<ShownLetter[]> {
  return (await listKeptMails(ctx.db, SHOWN)).map((mail) => toShown(ctx, mail));
}

export async function findLetter(ctx: Context, id: string): Promise<ShownLetter | null> {
  const mail = await findKeptMail(ctx.db, id);
  return mail ? toShown(ctx, mail) : null;
}

export async function forgetOldMails(ctx: Context): Promise<void> {
  await deleteMailsBefore(ctx.db, daysAfter(ctx.now(), -KEPT_DAYS));
}
