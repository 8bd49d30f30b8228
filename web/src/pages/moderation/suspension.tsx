import type { ModeratedProduct } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog, Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { SUSPENSION_REASONS, type SuspensionReason } from "../../lib/admin-statuses.ts";
import { formatCount } from "../../lib/format.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useNext } from "./use-decision.ts";

interface ButtonProps {
  moderated: ModeratedProduct;
}

export function SuspendButton({ moderated }: ButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="btn danger" onClick={() => setOpen(true)}>
        Suspend
      </button>
      {isOpen && <SuspendDialog moderated={moderated} onClose={() => setOpen(false)} />}
    </>
  );
}

function SuspendDialog({ moderated: { id, title }, onClose }: ButtonProps & { onClose: () => void }) {
  const [reasonCode, setCode] = useState<SuspensionReason>("infringing");
  const [reason, setReason] = useState("");
  const toNext = useNext(id);
  const suspend = useAction({
    run: async (body: { reasonCode: SuspensionReason; reason?: string }, idempotencyKey) =>
      await stoa.admin.products.suspend(id, body, { idempotencyKey }),
    onSuccess: () => {
      onClose();
      return toNext(`${title} is suspended.`);
    },
  });
  const endsAccess = reasonCode === "malicious" || reasonCode === "illegal";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const text = reason.trim();
    suspend.start({ reasonCode, ...(text !== "" && { reason: text }) });
  };
  return (
    <Dialog title={`Suspend ${title}?`} onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError error={suspend.error} title="The product was not suspended" />
        <Field label="Why" error={fieldErrors(suspend.error)["reasonCode"]}>
          {(control) => (
            <select
              {...control}
              className="input"
              value={reasonCode}
              onChange={(event) => setCode(event.target.value as SuspensionReason)}
            >
              {Object.entries(SUSPENSION_REASONS).map(([code, text]) => (
                <option key={code} value={code}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field
          label="Words to the seller"
          hint="Sent by email. Needed for another reason."
          error={fieldErrors(suspend.error)["reason"]}
        >
          {(control) => (
            <textarea
              {...control}
              className="input area"
              rows={3}
              maxLength={2_000}
              value={reason}
              onChange={(event) => setReason(event.target.value)}
            />
          )}
        </Field>
        <p className="sm">
          Nobody can buy it any more.{" "}
          {endsAccess
            ? "Its buyers can neither run nor read it, and you can refund them afterwards."
            : "Its buyers keep what they bought."}
        </p>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep it
          </button>
          <button type="submit" className="btn destroy" disabled={suspend.isPending}>
            Suspend the product
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

export function ReinstateButton({ moderated: { id, title } }: ButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const toNext = useNext(id);
  const reinstate = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.products.reinstate(id, { idempotencyKey }),
    onSuccess: () => {
      setOpen(false);
      return toNext(`${title} is reinstated. Its seller can publish it.`);
    },
    onError: (error) => showError("The product is still suspended", error),
  });
  return (
    <>
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        Reinstate
      </button>
      {isOpen && (
        <ConfirmDialog
          title={`Reinstate ${title}?`}
          action="Reinstate the product"
          keep="Keep it suspended"
          isPending={reinstate.isPending}
          onConfirm={() => reinstate.start()}
          onClose={() => setOpen(false)}
        >
          <p>
            The product is unpublished then, and its seller can publish it again. Buyers have their access
            back.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

export function RefundBuyersButton({ moderated: { id, title } }: ButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const refund = useAction({
    run: async (_, idempotencyKey) => await stoa.admin.products.refundBuyers(id, { idempotencyKey }),
    onSuccess: async ({ orders }) => {
      setOpen(false);
      showToast(
        `${formatCount(orders)} ${orders === 1 ? "purchase is" : "purchases are"} refunded, one after another.`,
      );
      await client.invalidateQueries({ queryKey: ["admin", "refunds"] });
    },
    onError: (error) => showError("Nobody was refunded", error),
  });
  return (
    <>
      <button type="button" className="btn danger" onClick={() => setOpen(true)}>
        Refund buyers
      </button>
      {isOpen && (
        <ConfirmDialog
          title={`Refund the buyers of ${title}?`}
          action="Refund all buyers"
          keep="Keep the payments"
          typedName={title}
          isPending={refund.isPending}
          onConfirm={() => refund.start()}
          onClose={() => setOpen(false)}
        >
          <p>
            Everyone who bought it in the last 90 days gets the rest of the price back, used or not. Disputed
            purchases are left to the bank. This cannot be undone.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
