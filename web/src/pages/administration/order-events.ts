import type { AdminDispute, AdminOrderDetail, AdminRefund } from "@stoa/sdk";
import { formatMoney } from "../../lib/format.ts";
import { declineReason } from "../../lib/orders.ts";

interface OrderMoment {
  key: string;
  at: string;
  text: string;
  note?: string;
  amount?: string;
  tone: "good" | "bad" | "warning" | "";
}

interface OrderHistory {
  order: AdminOrderDetail;
  refunds: readonly AdminRefund[];
  disputes: readonly AdminDispute[];
}

const REQUESTERS: Record<string, string> = {
  buyer: "The buyer requested a refund",
  admin: "An administrator started a refund",
  service: "The service started a refund",
  provider: "A refund was made at the payment provider",
};
const DECIDERS: Record<string, string> = {
  rules: "by the rules",
  seller: "by the seller",
  admin: "by an administrator",
};
const ENDS: Record<string, [string, OrderMoment["tone"]]> = {
  succeeded: ["Refunded", "good"],
  failed: ["The refund failed", "bad"],
  rejected: ["The refund was rejected", "bad"],
  canceled: ["The refund was canceled", ""],
};

const orderMoments = (order: AdminOrderDetail): OrderMoment[] => [
  { key: "created", at: order.createdAt, text: "Ordered", tone: "" },
  ...(order.completedAt === null
    ? []
    : [
        {
          key: "paid",
          at: order.completedAt,
          text: "Paid",
          amount: formatMoney(order.amount, order.currency),
          tone: "good" as const,
        },
      ]),
  ...(order.status === "failed"
    ? [
        {
          key: "failed",
          at: order.createdAt,
          text: "Declined",
          note: declineReason(order.declineCode),
          tone: "bad" as const,
        },
      ]
    : []),
];

function refundMoments(refund: AdminRefund): OrderMoment[] {
  const amount = formatMoney(refund.amount, refund.currency);
  const note = [refund.reason.replaceAll("_", " "), refund.details].filter(Boolean).join(": ");
  const requested = REQUESTERS[refund.requestedBy] ?? "A refund was requested";
  const moments: OrderMoment[] = [
    { key: `${refund.id} requested`, at: refund.createdAt, text: requested, note, amount, tone: "warning" },
  ];
  const end = ENDS[refund.status];
  if (refund.decidedAt !== null && refund.status !== "rejected")
    moments.push({
      key: `${refund.id} decided`,
      at: refund.decidedAt,
      text: `Refund approved ${DECIDERS[refund.decidedBy ?? ""] ?? ""}`.trim(),
      tone: "",
    });
  if (end && refund.completedAt !== null)
    moments.push({
      key: `${refund.id} ended`,
      at: refund.completedAt,
      text: end[0],
      ...(refund.decisionNote !== null && { note: refund.decisionNote }),
      ...(refund.status === "succeeded" && { amount: `−${amount}` }),
      tone: end[1],
    });
  if (refund.returnedAt !== null)
    moments.push({
      key: `${refund.id} returned`,
      at: refund.returnedAt,
      text: "The buyer's bank returned the refund",
      amount,
      tone: "bad",
    });
  return moments;
}

function disputeMoments(dispute: AdminDispute): OrderMoment[] {
  const { id, currency, status, openedAt, closedAt, lostAmount } = dispute;
  const isInquiry = status.startsWith("inquiry");
  const opened: OrderMoment = {
    key: `${id} opened`,
    at: openedAt,
    text: isInquiry ? "The bank asked about the payment" : "Disputed at the bank",
    note: dispute.reason.replaceAll("_", " "),
    amount: formatMoney(dispute.amount, currency),
    tone: "warning",
  };
  if (closedAt === null) return [opened];
  const closed: OrderMoment = {
    key: `${id} closed`,
    at: closedAt,
    text:
      status === "won"
        ? "Dispute won"
        : status === "lost"
          ? "Dispute lost"
          : "The bank's question was closed",
    ...(lostAmount !== null && { amount: `−${formatMoney(lostAmount, currency)}` }),
    tone: status === "won" ? "good" : status === "lost" ? "bad" : "",
  };
  return [opened, closed];
}

/** What became of an order, the earliest first. */
export const listOrderEvents = ({ order, refunds, disputes }: OrderHistory): OrderMoment[] =>
  [
    ...orderMoments(order),
    ...refunds.toReversed().flatMap(refundMoments),
    ...disputes.flatMap(disputeMoments),
  ].toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
