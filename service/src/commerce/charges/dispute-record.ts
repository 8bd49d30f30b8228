import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toDecimal } from "../../core/money/amount.ts";
import type { Dispute } from "../../integrations/payments/payments.ts";
import { type AuditRecord, recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";

export const isInquiry = ({ state }: Dispute) => state === "inquiry" || state === "inquiry_closed";

/** A bank may be faster than the provider's answer to our charge. */
export const notPaidYetError = (current: string | undefined) =>
  new ApiError("INVALID_STATE", "Its payment is not completed yet: report it again later.", { current });

export const newDisputeRow = (ctx: Context, reported: Dispute) => ({
  id: ctx.newId(),
  providerDisputeId: reported.disputeId,
  amountMinor: reported.amountMinor,
  feeMinor: reported.feeMinor,
  reason: reported.reason,
  answerBy: reported.evidenceDueBy,
  openedAt: ctx.now(),
});

export interface AuditedDispute extends Pick<Dispute, "amountMinor" | "reason"> {
  target: NonNullable<AuditRecord["target"]>;
  currency: string;
  kind: "inquiry" | "opened" | "won" | "lost";
  details?: Record<string, string>;
}

export const auditDispute = (
  ctx: Context,
  tx: Tx,
  { target, amountMinor, currency, reason, kind, details }: AuditedDispute,
) =>
  recordAudit(ctx, tx, {
    actorId: null,
    action: `dispute.${kind}`,
    target,
    source: null,
    details: { ...details, amount: toDecimal(amountMinor, currency), currency, reason },
  });
