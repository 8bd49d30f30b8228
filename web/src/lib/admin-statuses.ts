import type { AdminDispute, AdminPayout, AdminUser, ModeratedProduct } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";

/** What administrators call the states of products, accounts, disputes and payouts. */

type Label = [Tone, string];
const labelOf = (labels: Record<string, Label>, status: string): Label =>
  labels[status] ?? ["neutral", status];

const products: Record<string, Label> = {
  draft: ["neutral", "Draft"],
  pending_review: ["warning", "Waits for review"],
  published: ["good", "Published"],
  rejected: ["bad", "Rejected"],
  unpublished: ["neutral", "Unpublished"],
  suspended: ["bad", "Suspended"],
  deleted: ["neutral", "Deleted"],
};
export const productStatus = ({ status }: Pick<ModeratedProduct, "status">): Label =>
  labelOf(products, status);

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
export const disputeStatus = ({ status }: Pick<AdminDispute, "status">): Label => labelOf(disputes, status);

const payouts: Record<string, Label> = {
  pending: ["warning", "Waits"],
  in_transit: ["accent", "On its way"],
  completed: ["good", "Paid"],
  failed: ["bad", "Failed"],
  returned: ["bad", "Returned"],
};
export const payoutStatus = ({ status }: Pick<AdminPayout, "status">): Label => labelOf(payouts, status);

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
