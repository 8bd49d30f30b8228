import type { Refund } from "@stoa/sdk";

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
