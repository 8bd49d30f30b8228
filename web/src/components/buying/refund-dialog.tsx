import type { CreateRefund, PurchaseDetail, Refund } from "@stoa/sdk";
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { queryClient, stoa } from "../../api.ts";
import { formatDate, formatMoney } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { Field, fieldErrors } from "../field.tsx";
import { ErrorStrip } from "../page-error.tsx";

const REASONS = {
  not_as_described: "It is not what its page describes",
  not_working: "It does not work",
  accidental: "I bought it by mistake",
  duplicate: "I bought it twice",
  customer_request: "I no longer need it",
  fraudulent: "I did not buy this",
  other: "Another reason",
} as const;
const MAX_DETAILS = 2_000;

const refreshPurchases = (client: QueryClient) => client.invalidateQueries({ queryKey: ["purchases"] });

/** Takes an undecided request back. */
export async function cancelRefund(refund: Refund): Promise<void> {
  try {
    await stoa.refunds.cancel(refund.id);
    showToast("The refund request is canceled. You keep the product.");
  } catch (error) {
    showError("The request was not canceled", error);
  }
  await refreshPurchases(queryClient);
}

function announce(refund: Refund): void {
  const amount = formatMoney(refund.amount, refund.currency);
  if (refund.status === "pending") {
    const until = refund.decideBy === null ? "" : ` by ${formatDate(refund.decideBy)}`;
    showToast(`Refund requested. The seller answers${until}; then it is approved.`, {
      undo: () => void cancelRefund(refund),
    });
  } else if (refund.status === "succeeded") showToast(`${amount} refunded. Your bank may need some days.`);
  else if (refund.status === "failed")
    showError(`${amount} not refunded`, new Error("The payment provider refused it. You keep the product."));
  else showToast(`Refund of ${amount} approved. The money is on its way.`);
}

interface RefundDialogProps {
  purchase: PurchaseDetail;
  onClose: () => void;
}

/** Asks for the reason of a refund, and says before the click who decides and what follows. */
export function RefundDialog({ purchase, onClose }: RefundDialogProps) {
  const { orderId, refundable, currency, product } = purchase;
  const client = useQueryClient();
  const [reason, setReason] = useState<keyof typeof REASONS>("not_as_described");
  const [details, setDetails] = useState("");
  const request = useAction({
    run: async (body: CreateRefund, idempotencyKey) =>
      await stoa.refunds.create(orderId, body, { idempotencyKey }),
    onSuccess: async (refund) => {
      announce(refund);
      await Promise.all([
        refreshPurchases(client),
        client.invalidateQueries({ queryKey: ["product", product.id], refetchType: "none" }),
      ]);
      onClose();
    },
  });
  const isInstant = refundable.approval === "instant";
  const amount = formatMoney(refundable.amount, currency);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (request.isSuccess) return;
    const text = details.trim();
    request.start({ reason, ...(text !== "" && { details: text }) });
  };
  const errors = request.error ? fieldErrors(request.error) : {};
  const isAboutField = "details" in errors || "reason" in errors;
  return (
    <Dialog title={`Refund “${product.title}”?`} onClose={onClose}>
      <form className="stack refund-form" onSubmit={submit}>
        <Consequence purchase={purchase} />
        {request.error && !isAboutField && <ErrorStrip error={request.error} />}
        <Field label="Reason" error={errors["reason"]}>
          {(control) => (
            <select
              {...control}
              className="input"
              value={reason}
              onChange={({ target }) => setReason(target.value as keyof typeof REASONS)}
            >
              {Object.entries(REASONS).map(([code, label]) => (
                <option key={code} value={code}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label={isInstant ? "Details, optional" : "Details for the seller, optional"}
          error={errors["details"]}
        >
          {(control) => (
            <textarea
              {...control}
              className="input"
              rows={3}
              maxLength={MAX_DETAILS}
              dir="auto"
              value={details}
              onChange={({ target }) => setDetails(target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep it
          </button>
          <button type="submit" className="btn destroy" disabled={request.isPending || request.isSuccess}>
            {isInstant ? `Refund ${amount}` : `Request a refund of ${amount}`}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

function Consequence({ purchase: { refundable, paymentMethod } }: { purchase: PurchaseDetail }) {
  const { approvalReason, instantFrom, until } = refundable;
  const card = paymentMethod === null ? "" : ` to the card that ends in ${paymentMethod.last4}`;
  if (refundable.approval === "instant")
    return (
      <p className="soft">
        You have not opened, downloaded or run it, so the refund is approved at once. All of the money goes
        back{card}, and you lose access. This cannot be undone; you can buy it again.
      </p>
    );
  return (
    <>
      <p className="soft">
        {approvalReason === "recent_instant_refund"
          ? "You had an instant refund recently, so the seller decides."
          : "You have opened or run it, so the seller decides."}{" "}
        Without a decision within 7 days, it is approved. Until then you keep it, and you can cancel the
        request. With the money back{card}, you lose access.
      </p>
      {instantFrom !== null && until !== null && (
        <p className="soft">
          From {formatDate(instantFrom)} until {formatDate(until)} it would be approved at once, if you do not
          open it.
        </p>
      )}
    </>
  );
}
