import type { AdminPayout, Payout, PayoutItem } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";

const STATUSES: Record<string, [Tone, string]> = {
  pending: ["warning", "Pending"],
  in_transit: ["warning", "On its way"],
  completed: ["good", "Paid"],
  failed: ["bad", "Failed"],
  returned: ["bad", "Came back"],
};

export const payoutStatus = ({ status }: Pick<Payout | AdminPayout, "status">): [Tone, string] =>
  STATUSES[status] ?? ["neutral", status];

const FAILURES: Record<string, string> = {
  account_closed: "the bank account is closed",
  seller_banned: "your account was banned before it was sent",
};

export const payoutFailure = (code: string): string => FAILURES[code] ?? code;

const KINDS: Record<string, string> = {
  sale: "Sale",
  refund: "Refund",
  dispute_opened: "Dispute opened",
  dispute_won: "Dispute won",
  dispute_lost: "Dispute lost",
  payout_failed: "Earlier payout that failed",
  payout_returned: "Earlier payout that came back",
};

export const itemKind = ({ kind, share }: PayoutItem): string =>
  `${KINDS[kind] ?? kind}${share === "commission" ? ", commission" : ""}`;
