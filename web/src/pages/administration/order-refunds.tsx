import type { AdminRefund } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ReasonDialog } from "../../components/administration/reason-dialog.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Id } from "../../components/id.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { formatMoment, formatMoney } from "../../lib/format.ts";
import { refundStatus } from "../../lib/orders.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { historyQuery, orderQuery } from "../../queries/administration.ts";

/** The refunds of an order. An administrator can decide those that wait for the seller. */
export const OrderRefunds = ({ refunds }: { refunds: readonly AdminRefund[] }) => (
  <section className="beam thin stack">
    <h2 className="h3">Refunds</h2>
    <ul>
      {refunds.map((refund) => (
        <RefundItem key={refund.id} refund={refund} />
      ))}
    </ul>
  </section>
);

function RefundItem({ refund }: { refund: AdminRefund }) {
  const [open, setOpen] = useState<"approve" | "reject" | null>(null);
  const [tone, label] = refundStatus(refund);
  const amount = formatMoney(refund.amount, refund.currency);
  return (
    <li className="order-refund">
      <div className="row wrap between">
        <span className="row wrap">
          <StatusTag tone={tone}>{label}</StatusTag>
          <b>{amount}</b>
          <span className="soft">{refund.reason.replaceAll("_", " ")}</span>
        </span>
        <Id id={refund.id} />
      </div>
      {refund.details && <p dir="auto">{refund.details}</p>}
      {refund.failureCode && <p className="sm bad">{refund.failureCode.replaceAll("_", " ")}</p>}
      {refund.status === "pending" && (
        <div className="row wrap">
          <button type="button" className="btn s" onClick={() => setOpen("approve")}>
            Approve
          </button>
          <button type="button" className="btn s danger" onClick={() => setOpen("reject")}>
            Reject
          </button>
          {refund.decideBy && (
            <span className="sm soft">The seller has time until {formatMoment(refund.decideBy)}.</span>
          )}
        </div>
      )}
      {open === "approve" && <Approve refund={refund} amount={amount} onClose={() => setOpen(null)} />}
      {open === "reject" && <Reject refund={refund} amount={amount} onClose={() => setOpen(null)} />}
    </li>
  );
}

interface DecisionProps {
  refund: AdminRefund;
  amount: string;
  onClose: () => void;
}

function useDecided(refund: AdminRefund, onClose: () => void) {
  const client = useQueryClient();
  return async (text: string) => {
    showToast(text);
    onClose();
    await Promise.all([
      client.invalidateQueries({ queryKey: orderQuery(refund.orderId).queryKey }),
      client.invalidateQueries({ queryKey: historyQuery(refund.orderId).queryKey }),
      client.invalidateQueries({ queryKey: ["admin", "refunds"] }),
    ]);
  };
}

function Approve({ refund, amount, onClose }: DecisionProps) {
  const onDecided = useDecided(refund, onClose);
  const approve = useAction({
    run: async (_, idempotencyKey) => await stoa.refunds.approve(refund.id, { idempotencyKey }),
    onSuccess: () => onDecided(`${amount} goes back to ${refund.buyer.name}.`),
    onError: (error) => showError("The refund was not approved", error),
  });
  return (
    <ConfirmDialog
      title={`Refund ${amount} to ${refund.buyer.name}?`}
      action={`Refund ${amount}`}
      keep="Decide later"
      isPending={approve.isPending}
      onConfirm={() => approve.start()}
      onClose={onClose}
    >
      <p>You decide in place of the seller. The buyer loses the product.</p>
    </ConfirmDialog>
  );
}

function Reject({ refund, amount, onClose }: DecisionProps) {
  const onDecided = useDecided(refund, onClose);
  const reject = useAction({
    run: async (reason: string, idempotencyKey) =>
      await stoa.refunds.reject(refund.id, { reason }, { idempotencyKey }),
    onSuccess: () => onDecided("The refund was rejected."),
  });
  return (
    <ReasonDialog
      title={`Reject the refund of ${amount}?`}
      action="Reject the refund"
      keep="Decide later"
      isDestructive
      reasonHint="The buyer gets it by email."
      error={reject.error}
      errorTitle="The refund was not rejected"
      isPending={reject.isPending}
      onSubmit={reject.start}
      onClose={onClose}
    >
      <p>You decide in place of the seller. The buyer keeps the product and can request a refund again.</p>
    </ReasonDialog>
  );
}
