import type { AdminDispute, AdminUser } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";

/** What administrators call the states of accounts and disputes. */

type Label = [Tone, string];

export function userStatus({ bannedAt, closedAt }: Pick<AdminUser, "bannedAt" | "closedAt">): Label {
  if (closedAt !== null) return ["neutral", "Closed"];
  return bannedAt === null ? ["good", "Active"] : ["bad", "Banned"];
}

const disputes: Record<string, Label> = {
  inquiry: ["warning", "Question of the bank"],
  inquiry_closed: ["neutral", "Question closed"],
  open: ["warning", "Open"],
  won: ["good", "Won"],
  lost: ["bad", "Lost"],
};
export const disputeStatus = ({ status }: Pick<AdminDispute, "status">): Label =>
  disputes[status] ?? ["neutral", status];

/** Why moderators suspend a product, or users report one. */
export const SUSPENSION_REASONS = {
  malicious: "Malicious",
  illegal: "Illegal",
  infringing: "Someone else's work",
  misleading: "Misleading",
  spam: "Spam",
  other: "Another reason",
} as const;
export type SuspensionReason = keyof typeof SUSPENSION_REASONS;

export const reasonLabel = (code: string): string =>
  code in SUSPENSION_REASONS ? SUSPENSION_REASONS[code as SuspensionReason] : code;
