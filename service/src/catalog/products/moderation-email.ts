import type { SuspensionReason } from "@stoa/contract";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import type { MoveName } from "./lifecycle.ts";

/** What moderators say with a move. */
export interface ModerationReason {
  reasonCode: SuspensionReason | null;
  reason: string | null;
}

type EmailTemplate = (title: string, said: ModerationReason) => { subject: string; paragraphs: string[] };

const reasonTexts: Record<SuspensionReason, string> = {
  malicious: "it does harm to those who run it",
  illegal: "it is against the law",
  infringing: "it is somebody else's work, or uses their name",
  misleading: "it is not what it says",
  spam: "it is spam",
  other: "of what is said below",
};

/** What an author hears of each move that moderators make. */
const emails: Partial<Record<MoveName, EmailTemplate>> = {
  approve: (title) => ({
    subject: `On sale: ${title}`,
    paragraphs: [`Moderators have looked at “${title}”. It is on sale now.`],
  }),
  reject: (title, { reason }) => ({
    subject: `To mend before it is sold: ${title}`,
    paragraphs: [
      `Moderators have looked at “${title}”, and it is not on sale yet. They say:`,
      reason ?? "",
      "Change it and publish it again: they will look at it anew.",
    ],
  }),
  suspend: (title, { reasonCode, reason }) => ({
    subject: `Taken off the market: ${title}`,
    paragraphs: [
      `Moderators have suspended “${title}”, because ${reasonTexts[reasonCode ?? "other"]}. Nobody can buy it.`,
      ...(reason ? ["They say:", reason] : []),
      "If you think that this is wrong, write to whoever runs this marketplace.",
    ],
  }),
  reinstate: (title) => ({
    subject: `No longer suspended: ${title}`,
    paragraphs: [`The suspension of “${title}” has ended. It is off sale until you publish it again.`],
  }),
};

export function renderModerationEmail(name: MoveName, title: string, said: ModerationReason): Email | null {
  const words = emails[name];
  return words ? renderEmail(words(title, said)) : null;
}
