import type { Balance, CreatePayout } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { formatMoney } from "../../lib/format.ts";
import { payoutFailure, payoutStatus } from "../../lib/payouts.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

interface RequestPayoutProps {
  balance: Balance;
  onClose: () => void;
}

export function RequestPayout({ balance: { currency, available, minimum }, onClose }: RequestPayoutProps) {
  const client = useQueryClient();
  const [typed, setTyped] = useState(String(available));
  const amount = Number(typed.trim().replace(",", "."));
  const money = (value: number) => formatMoney(value, currency);
  const request = useAction({
    run: async (body: CreatePayout, idempotencyKey) => await stoa.payouts.create(body, { idempotencyKey }),
    onSuccess: async (payout) => {
      const why = payout.failureCode ? `: ${payoutFailure(payout.failureCode)}` : "";
      showToast(`${money(payout.amount)}: ${payoutStatus(payout)[1].toLowerCase()}${why}.`);
      await Promise.all([
        client.invalidateQueries({ queryKey: ["payouts"] }),
        client.invalidateQueries({ queryKey: ["studio"] }),
      ]);
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!request.isSuccess) request.start({ currency, ...(amount !== available && { amount }) });
  };
  return (
    <Dialog title={`Pay out ${currency}`} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        <FormError error={request.error} title="Nothing was paid out" />
        <Field
          label={`Amount, from ${money(minimum)} to ${money(available)}`}
          error={fieldErrors(request.error)["amount"]}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              inputMode="decimal"
              autoComplete="off"
              value={typed}
              onChange={({ target }) => setTyped(target.value)}
            />
          )}
        </Field>
        <p className="sm soft">
          It goes to your payout account. A payout that fails is available again at once.
        </p>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Not now
          </button>
          <button type="submit" className="btn primary" disabled={request.isPending || request.isSuccess}>
            Pay out {amount > 0 ? money(amount) : ""}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
