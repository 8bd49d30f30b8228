import type { SuspensionReason } from "@stoa/contract";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";

export interface ModerationReason {
  reasonCode: SuspensionReason | null;
  reason: string | null;
}

type EmailTemplate = (
  title: string,
  moderationReason: ModerationReason,
) => { subject: string; paragraphs: string[] };

const reasonTexts: Record<SuspensionReason, string> = {
  malicious: "it harms the users who run it",
  illegal: "it is against the law",
  infringing: "it infringes another person's copyright or trademark",
  misleading: "its description is misleading",
  spam: "it is spam",
  other: "of the reason below",
};

/** One sentence; null: none was given. */
export function describeReason({ reasonCode, reason }: ModerationReason): string | null {
  if (reason) return reason;
  return reasonCode && reasonCode !== "other" ? `Moderators found that ${reasonTexts[reasonCode]}.` : null;
}

type Decision = "approve" | "reject" | "suspend" | "reinstate";

/** To the author, by move. */
const emails: Record<Decision, EmailTemplate> = {
  approve: (title) => ({
    subject: `On sale: ${title}`,
    paragraphs: [`Moderators approved “${title}”. It is on sale now.`],
  }),
  reject: (title, { reason }) => ({
    subject: `Changes requested: ${title}`,
    paragraphs: [
      `Moderators rejected “${title}”. It is not on sale. The reason:`,
      reason ?? "",
      "Change the product and publish it again; moderators then review it again.",
    ],
  }),
  suspend: (title, { reasonCode, reason }) => ({
    subject: `Suspended: ${title}`,
    paragraphs: [
      `Moderators have suspended “${title}”, because ${reasonTexts[reasonCode ?? "other"]}. It is off sale.`,
      ...(reason ? ["The reason:", reason] : []),
      "To appeal, contact the operator of this marketplace.",
    ],
  }),
  reinstate: (title) => ({
    subject: `Suspension ended: ${title}`,
    paragraphs: [`The suspension of “${title}” ended. Publish the product again to sell it.`],
  }),
};

export const renderModerationEmail = (
  name: Decision,
  title: string,
  moderationReason: ModerationReason,
): Email => renderEmail(emails[name](title, moderationReason));
