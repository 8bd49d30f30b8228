import type { OrderEvent, Purchase, PurchaseDetail, Refund, Refundable } from "@stoa/sdk";
import type { Tone } from "../components/status-tag.tsx";
import { formatDate, formatMoney } from "./format.ts";

/** What orders, refunds and declines are called on pages. */

const statuses: Record<string, [Tone, string]> = {
  pending: ["warning", "Waits for the payment"],
  requires_action: ["warning", "Waits for your bank"],
  completed: ["good", "Paid"],
  failed: ["bad", "Declined"],
  canceled: ["neutral", "Canceled"],
  partially_refunded: ["neutral", "Partly refunded"],
  refunded: ["neutral", "Refunded"],
  disputed: ["warning", "Disputed"],
};

export const orderStatus = ({ status }: Pick<Purchase, "status">): [Tone, string] =>
  statuses[status] ?? ["neutral", status];

const refundStatuses: Record<string, [Tone, string]> = {
  pending: ["warning", "Waits for the seller"],
  approved: ["warning", "Approved"],
  processing: ["warning", "On its way"],
  succeeded: ["good", "Refunded"],
  failed: ["bad", "Failed"],
  rejected: ["bad", "Rejected"],
  canceled: ["neutral", "Canceled"],
};

export const refundStatus = ({ status }: Pick<Refund, "status">): [Tone, string] =>
  refundStatuses[status] ?? ["neutral", status];

/** By the codes of payment providers; others are declined without a reason. */
const declines: Record<string, string> = {
  insufficient_funds: "not enough funds",
  card_declined: "the bank gave no reason",
  generic_decline: "the bank gave no reason",
  do_not_honor: "the bank gave no reason",
  expired_card: "the card has expired",
  incorrect_cvc: "the security code is wrong",
  incorrect_number: "the card number is wrong",
  authentication_failed: "the payment was not confirmed",
  authentication_required: "the bank wants a confirmation",
  processing_error: "the bank could not process it",
  card_not_supported: "the card does not allow such a payment",
  currency_not_supported: "the card does not allow this currency",
  card_velocity_exceeded: "the limit of the card is reached",
  withdrawal_count_limit_exceeded: "the limit of the card is reached",
  lost_card: "the bank has blocked the card",
  stolen_card: "the bank has blocked the card",
  pickup_card: "the bank has blocked the card",
  unknown_method: "the card is no longer known",
  canceled: "the payment was canceled",
};

export const declineReason = (code: string | null): string =>
  (code !== null && declines[code]) || "the bank gave no reason";

const events: Record<string, string> = {
  "purchase.created": "Order placed",
  "purchase.completed": "Paid",
  "refund.requested": "Refund requested",
  "refund.approved": "Refund approved",
  "refund.rejected": "Refund rejected by the seller",
  "refund.canceled": "Refund request canceled",
  "refund.succeeded": "Refunded",
  "refund.failed": "Refund failed",
  "dispute.opened": "Disputed at the bank",
  "dispute.won": "Dispute ended for the seller",
  "dispute.lost": "Dispute ended for you",
};

export const eventLabel = ({ type }: OrderEvent): string => events[type] ?? type;

const obstacles: Record<string, string> = {
  not_completed: "Nothing was paid.",
  free_copy: "A free copy has nothing to refund.",
  already_refunded: "Everything is refunded.",
  disputed: "The payment is disputed: the bank decides about the money.",
  refund_open: "A refund is in progress.",
  refund_window_expired: "The time for a refund is over. The seller can still help.",
};

/** The rule that holds for a purchase now. */
export function refundRule({ until, reasonIfNot, approval, approvalReason }: Refundable): string {
  if (reasonIfNot !== null) return obstacles[reasonIfNot] ?? "A refund is not possible.";
  const day = until === null ? "" : ` until ${formatDate(until)}`;
  if (approvalReason === "failed_runs")
    return `Refunded in full${day}, at once: your runs failed more often than those of others.`;
  if (approval === "instant") return `Refunded in full${day}, at once, while you have not opened or run it.`;
  return approvalReason === "recent_instant_refund"
    ? `Refunded${day} if the seller agrees: you had an instant refund recently.`
    : `Refunded${day} if the seller agrees: you have opened or run it.`;
}

/** The rule before a purchase. */
export const refundRuleOfOffer = (refundDays: number): string =>
  refundDays === 0
    ? "The seller offers no refund."
    : `Refunded in full within ${refundDays} days while unopened. After the first run, the seller decides.`;

/** "2 days left", or hours and minutes on the last day; null: the time is over. */
export function timeLeft(until: string, now: number): string | null {
  const minutes = Math.ceil((Date.parse(until) - now) / 60_000);
  if (minutes <= 0) return null;
  const [count, unit] =
    minutes >= 48 * 60
      ? [Math.floor(minutes / 1_440), "days"]
      : minutes >= 120
        ? [Math.floor(minutes / 60), "hours"]
        : [minutes, minutes === 1 ? "minute" : "minutes"];
  return `${count} ${unit} left`;
}

export const orderAmount = ({ amount, currency }: Pick<Purchase, "amount" | "currency">): string =>
  formatMoney(amount, currency);

const ENDED_REFUNDS: ReadonlySet<string> = new Set(["succeeded", "failed", "rejected", "canceled"]);

export const openRefund = ({ refunds }: PurchaseDetail): Refund | undefined =>
  refunds.find(({ status }) => !ENDED_REFUNDS.has(status));

/** Whether the product was never opened, downloaded or run. */
export const isUnopened = ({ refundable }: PurchaseDetail): boolean =>
  refundable.approvalReason === "unused" || refundable.approvalReason === "recent_instant_refund";
