import type { Refund, SaleDetail } from "@stoa/sdk";
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog, Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Pair } from "../../components/studio/sale-split.tsx";
import { curlOf } from "../../lib/curl.ts";
import { takeDraft } from "../../lib/drafts.ts";
import { formatMoment, formatMoney } from "../../lib/format.ts";
import { timeLeft } from "../../lib/orders.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useNow } from "../../lib/use-now.ts";
import { refundQuery } from "../../queries/selling.ts";

interface DecisionProps {
  refund: Refund;
  sale: SaleDetail;
}

/** The deadline, what each decision means in money, and both decisions. Neither button is filled: the person decides. */
export function RefundDecision({ refund, sale }: DecisionProps) {
  // What was typed before a sign-in.
  const [typed] = useState(() => takeDraft<string>(draftName(refund.id)));
  const [open, setOpen] = useState<"approve" | "reject" | null>(typed === null ? null : "reject");
  const now = useNow();
  const { ifRefunded, currency } = sale;
  const money = (amount: number) => formatMoney(amount, currency);
  const left = refund.decideBy === null ? null : timeLeft(refund.decideBy, now);
  return (
    <aside className="panel studio-panel refund-decision" aria-label="Decision">
      {refund.decideBy !== null && (
        <p>
          <b>{left === null ? "The deadline is over." : left}</b>{" "}
          <span className="soft">
            {left === null
              ? "It is being approved."
              : `Decide by ${formatMoment(refund.decideBy)}; then it is approved.`}
          </span>
        </p>
      )}
      <h2 className="h3">If you approve</h2>
      <dl className="studio-pairs">
        <Pair term="Back to the buyer">{money(refund.amount)}</Pair>
        <Pair term="From your earnings">{money(-ifRefunded.earnings)}</Pair>
        <Pair term="From the marketplace's fee">{money(-ifRefunded.fee)}</Pair>
        {ifRefunded.commission > 0 && (
          <Pair term="From the referrer's commission">{money(-ifRefunded.commission)}</Pair>
        )}
        {ifRefunded.tax > 0 && <Pair term="From the tax">{money(-ifRefunded.tax)}</Pair>}
      </dl>
      <p className="sm soft">
        The buyer loses access. If you reject, the buyer gets your reason by email, keeps the product, and can
        ask again within {sale.refundDays} days of the purchase.
      </p>
      <div className="row wrap">
        <button type="button" className="btn" onClick={() => setOpen("approve")}>
          Approve…
        </button>
        <button type="button" className="btn danger" onClick={() => setOpen("reject")}>
          Reject…
        </button>
      </div>
      <ShowAsCode
        curl={curlOf("POST", `/refunds/${refund.id}/approve`)}
        sdk={`await stoa.refunds.approve("${refund.id}");`}
      />
      {open === "approve" && <ApproveDialog refund={refund} sale={sale} onClose={() => setOpen(null)} />}
      {open === "reject" && (
        <RejectDialog refund={refund} typed={typed ?? ""} onClose={() => setOpen(null)} />
      )}
    </aside>
  );
}

async function onDecided(client: QueryClient, refund: Refund): Promise<void> {
  client.setQueryData(refundQuery(refund.id).queryKey, refund);
  await Promise.all(
    ["refunds", "sales", "studio"].map((key) => client.invalidateQueries({ queryKey: [key] })),
  );
}

function ApproveDialog({ refund, sale, onClose }: DecisionProps & { onClose: () => void }) {
  const client = useQueryClient();
  const amount = formatMoney(refund.amount, refund.currency);
  const approve = useAction({
    run: async (id: string, idempotencyKey) => await stoa.refunds.approve(id, { idempotencyKey }),
    onSuccess: async (decided) => {
      showToast(
        decided.status === "succeeded"
          ? `${amount} went back to the buyer.`
          : `Approved. ${amount} is on its way to the buyer.`,
      );
      await onDecided(client, decided);
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Refund ${amount}?`}
      action={`Refund ${amount}`}
      keep="Not now"
      isPending={approve.isPending || approve.isSuccess}
      onConfirm={() => approve.start(refund.id)}
      onClose={onClose}
    >
      <FormError error={approve.error} title="The refund was not approved" />
      <p>
        {formatMoney(sale.ifRefunded.earnings, sale.currency)} of it comes from your balance, and{" "}
        <span dir="auto">{sale.buyer.name}</span> loses access. This cannot be undone.
      </p>
    </ConfirmDialog>
  );
}

const draftName = (refundId: string) => `reject-${refundId}`;
interface RejectDialogProps {
  refund: Refund;
  typed: string;
  onClose: () => void;
}

function RejectDialog({ refund, typed, onClose }: RejectDialogProps) {
  const client = useQueryClient();
  const [reason, setReason] = useState(typed);
  const reject = useAction({
    run: async (body: { reason: string }, idempotencyKey) =>
      await stoa.refunds.reject(refund.id, body, { idempotencyKey }),
    onSuccess: async (decided) => {
      showToast("Rejected. The buyer gets your reason by email.");
      await onDecided(client, decided);
      onClose();
    },
  });
  const errors = fieldErrors(reject.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!reject.isSuccess) reject.start({ reason: reason.trim() });
  };
  return (
    <Dialog title="Reject the refund?" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <FormError
          error={reject.error}
          title="The refund was not rejected"
          draft={{ name: draftName(refund.id), value: reason }}
        />
        <Field
          label="Reason for the buyer"
          hint="Say what helps: how to use it, or what it does not do."
          error={errors["reason"]}
        >
          {(control) => (
            <textarea
              {...control}
              className="input"
              rows={5}
              maxLength={2_000}
              required
              dir="auto"
              value={reason}
              onChange={({ target }) => setReason(target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Not now
          </button>
          <button type="submit" className="btn destroy" disabled={reject.isPending || reject.isSuccess}>
            Reject the refund
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
