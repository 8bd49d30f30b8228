import type { AdminOrderDetail } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { historyQuery, orderQuery } from "../../queries/administration.ts";

const REASONS = {
  not_working: "It does not work",
  not_as_described: "It is not as described",
  duplicate: "It was paid twice",
  fraudulent: "The buyer did not order it",
  accidental: "It was bought by mistake",
  customer_request: "The buyer asked for it",
  other: "Another reason",
};

/** Refunds all that remains, or a part of it. */
export function OrderRefundDialog({ order, onClose }: { order: AdminOrderDetail; onClose: () => void }) {
  const client = useQueryClient();
  const rest = order.amount - order.refundedAmount;
  const [isPartial, setPartial] = useState(false);
  const [amount, setAmount] = useState("");
  const [reason, setReason] = useState<string>("not_working");
  const [problem, setProblem] = useState<string>();
  const refund = useAction({
    run: async (body: { amount?: number; reason: string }, idempotencyKey) =>
      await stoa.admin.orders.refund(order.orderId, body, { idempotencyKey }),
    onSuccess: async ({ status }) => {
      showToast(status === "succeeded" ? "The refund succeeded." : "The refund is on its way.");
      onClose();
      await Promise.all([
        client.invalidateQueries({ queryKey: orderQuery(order.orderId).queryKey }),
        client.invalidateQueries({ queryKey: historyQuery(order.orderId).queryKey }),
        client.invalidateQueries({ queryKey: ["admin", "orders"] }),
        client.invalidateQueries({ queryKey: ["admin", "refunds"] }),
      ]);
    },
  });
  const given = isPartial ? Number(amount.replace(",", ".")) : rest;
  const isAmount = Number.isFinite(given) && given > 0 && given <= rest;
  const money = (value: number) => formatMoney(value, order.currency);
  const body = { ...(isPartial && { amount: given }), reason };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setProblem(isAmount ? undefined : `Enter an amount up to ${money(rest)}.`);
    if (isAmount) refund.start(body);
  };
  return (
    <Dialog title={`Refund ${order.buyer.name}`} onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError error={refund.error} title="Nothing was refunded" />
        <fieldset className="plain field picks">
          <legend className="m">Amount</legend>
          <label className="choice">
            <input type="radio" className="radio" checked={!isPartial} onChange={() => setPartial(false)} />
            <span>
              All that remains, <b>{money(rest)}</b>
              <span className="sm soft"> The buyer loses the product.</span>
            </span>
          </label>
          <label className="choice">
            <input type="radio" className="radio" checked={isPartial} onChange={() => setPartial(true)} />
            <span>
              A part<span className="sm soft"> The buyer keeps the product.</span>
            </span>
          </label>
        </fieldset>
        {isPartial && (
          <Field label={`Part in ${order.currency}`} error={problem ?? fieldErrors(refund.error)["amount"]}>
            {(control) => (
              <input
                {...control}
                className="input num"
                inputMode="decimal"
                autoComplete="off"
                value={amount}
                onChange={(event) => setAmount(event.target.value)}
              />
            )}
          </Field>
        )}
        <Field label="Reason" error={fieldErrors(refund.error)["reason"]}>
          {(control) => (
            <select
              {...control}
              className="input"
              value={reason}
              onChange={(event) => setReason(event.target.value)}
            >
              {Object.entries(REASONS).map(([code, text]) => (
                <option key={code} value={code}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
        <p className="sm soft">
          The money goes back to the card. Each party's share is taken back in proportion, and the seller is
          told.
        </p>
        <ShowAsCode
          curl={curlOf("POST", `/admin/orders/${order.orderId}/refund`, body)}
          sdk={`await stoa.admin.orders.refund("${order.orderId}", ${JSON.stringify(body)});`}
        />
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep the payment
          </button>
          <button type="submit" className="btn destroy" disabled={refund.isPending}>
            {isAmount ? `Refund ${money(given)}` : "Refund"}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
