import type { RefundStatus } from "@stoa/contract";

export type RefundMoveName = "approve" | "reject" | "cancel" | "withdraw" | "ask" | "succeed" | "fail";

export interface RefundMove {
  /** The side that may make the move; administrators may make those of the seller. Absent: only the service. */
  by?: "buyer" | "seller";
  from: readonly RefundStatus[];
  to: RefundStatus;
  decides?: true;
  auditAction?: `refund.${string}`;
}

export const refundMoves: Record<RefundMoveName, RefundMove> = {
  approve: { by: "seller", from: ["pending"], to: "approved", decides: true, auditAction: "refund.approved" },
  reject: { by: "seller", from: ["pending"], to: "rejected", decides: true, auditAction: "refund.rejected" },
  cancel: { by: "buyer", from: ["pending"], to: "canceled", auditAction: "refund.canceled" },
  // A dispute or another refund took the money.
  withdraw: { from: ["pending", "approved"], to: "canceled", auditAction: "refund.withdrawn" },
  // Repeatable under the same id while the provider's answer is unknown.
  ask: { from: ["approved", "processing"], to: "processing" },
  succeed: { from: ["processing"], to: "succeeded", auditAction: "refund.succeeded" },
  fail: { from: ["processing"], to: "failed", auditAction: "refund.failed" },
};

export const isFinal = (status: RefundStatus) =>
  !Object.values(refundMoves).some(({ from }) => from.includes(status));

/** The order reserves the amount of a refund in progress. */
export const isInProgress = (status: RefundStatus) => status === "approved" || status === "processing";

export const OPEN_REFUND_STATUSES: RefundStatus[] = ["pending", "approved", "processing"];
