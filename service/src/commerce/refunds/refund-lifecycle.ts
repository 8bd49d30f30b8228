import type { RefundStatus } from "@stoa/contract";

export type RefundMoveName = "approve" | "reject" | "cancel" | "withdraw" | "ask" | "succeed" | "fail";

export interface RefundMove {
  /** Who may make it, beside administrators; without, the service alone. */
  by?: "buyer" | "seller";
  from: readonly RefundStatus[];
  to: RefundStatus;
  /** Records who decided. */
  decides?: true;
  /** What the audit log calls it. */
  auditAction?: `refund.${string}`;
}

/** The life of a refund: every move that there is. */
export const refundMoves: Record<RefundMoveName, RefundMove> = {
  approve: { by: "seller", from: ["pending"], to: "approved", decides: true, auditAction: "refund.approved" },
  reject: { by: "seller", from: ["pending"], to: "rejected", decides: true, auditAction: "refund.rejected" },
  cancel: { by: "buyer", from: ["pending"], to: "canceled", auditAction: "refund.canceled" },
  // A dispute gives the money back, or another refund did.
  withdraw: { from: ["pending", "approved"], to: "canceled", auditAction: "refund.withdrawn" },
  // Repeatable under the same id while the provider's answer is unknown.
  ask: { from: ["approved", "processing"], to: "processing" },
  succeed: { from: ["processing"], to: "succeeded", auditAction: "refund.succeeded" },
  fail: { from: ["processing"], to: "failed", auditAction: "refund.failed" },
};

/** Nothing moves any more. */
export const isFinal = (status: RefundStatus) =>
  !Object.values(refundMoves).some(({ from }) => from.includes(status));

/** Its amount is set aside of what remains of the order. */
export const isInProgress = (status: RefundStatus) => status === "approved" || status === "processing";

export const OPEN_REFUND_STATUSES: RefundStatus[] = ["pending", "approved", "processing"];
