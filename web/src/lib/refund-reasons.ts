import type { Refund } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";
import { refundStatus } from "./orders.ts";

const REASONS: Record<string, string> = {
  not_as_described: "It is not as described",
  not_working: "It does not work",
  accidental: "Bought by accident",
  duplicate: "Bought twice",
  fraudulent: "Not bought by the owner of the card",
  customer_request: "No longer wanted",
};

/** The buyer's reason in words: one of the list, or as it was typed. */
export const refundReason = ({ reason, reasonCode }: Pick<Refund, "reason" | "reasonCode">): string =>
  REASONS[reasonCode] ?? (reason === "other" ? "Another reason" : reason);

/** For the seller, who decides. */
export const sellerRefundStatus = (refund: Pick<Refund, "status">): [Tone, string] =>
  refund.status === "pending" ? ["warning", "To decide"] : refundStatus(refund);
