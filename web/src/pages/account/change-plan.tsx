import { PaymentError, type Subscription } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { FormError } from "../../components/form-error.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { cardName } from "../../lib/card-name.ts";
import { formatDate, formatMoney } from "../../lib/format.ts";
import { declineReason } from "../../lib/orders.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { paymentMethodsQuery, subscriptionQuery } from "../../queries/account.ts";
import { accountQuery } from "../../session.ts";
import { isUpgrade, type Offer, planName } from "./plans.ts";

interface ChangePlanProps {
  offer: Offer;
  plan: Subscription;
  onClose: () => void;
}

const declineCodeOf = ({ details: { declineCode } }: PaymentError): string | null =>
  typeof declineCode === "string" ? declineCode : null;

/** Asks for the payment method of an upgrade, with the amount; or says when a downgrade begins. */
export function ChangePlan({ offer, plan: present, onClose }: ChangePlanProps) {
  const client = useQueryClient();
  const { data: methods } = useSuspenseQuery(paymentMethodsQuery);
  const preset = methods.data.find(({ isDefault }) => isDefault) ?? methods.data[0];
  const [paymentMethodId, setPaymentMethodId] = useState(preset?.id);
  const { plan, monthlyPrice, currency } = offer;
  const isPaid = isUpgrade(present, offer);
  const change = useAction({
    run: async () =>
      await stoa.account.subscription.update({ plan, ...(isPaid && paymentMethodId && { paymentMethodId }) }),
    onSuccess: async (changed) => {
      client.setQueryData(subscriptionQuery.queryKey, changed);
      onClose();
      if (changed.plan === plan) showToast(`You have the ${planName(plan)} plan`);
      await client.invalidateQueries({ queryKey: accountQuery.queryKey });
    },
    onSettled: () =>
      Promise.all(
        ["plan-payments", "usage"].map((queryKey) => client.invalidateQueries({ queryKey: [queryKey] })),
      ),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.start();
  };
  const price = formatMoney(monthlyPrice ?? 0, currency);
  const isFirst = present.periodEnd === null;
  return (
    <Dialog title={`Change to ${planName(plan)}`} onClose={onClose}>
      <form className="stack form" onSubmit={submit}>
        {change.error instanceof PaymentError ? (
          <div className="strip bad" role="alert">
            <AlertIcon size={20} />
            <span className="grow">
              <b>Your bank declined the card: {declineReason(declineCodeOf(change.error))}.</b> You were not
              charged. Use another card.
            </span>
          </div>
        ) : (
          <FormError error={change.error} title="The plan did not change" />
        )}
        {isPaid ? (
          <>
            <p className="soft">
              {isFirst
                ? `You pay ${price} now, plus tax where due, and each month from then on. `
                : `You pay at most ${price} now, plus tax where due: the unused part of your present month is taken off. Then ${price} each month. `}
              You can change back at any time; the month that is paid stays.
            </p>
            <fieldset className="plain picks">
              <legend className="m">Pay with</legend>
              {methods.data.map((method) => (
                <label className="choice" key={method.id}>
                  <input
                    type="radio"
                    className="radio"
                    name="method"
                    checked={paymentMethodId === method.id}
                    onChange={() => setPaymentMethodId(method.id)}
                  />
                  <span>
                    <span className="m">{cardName(method)}</span>{" "}
                    {method.isDefault && <span className="soft sm">default</span>}
                  </span>
                </label>
              ))}
              {methods.data.length === 0 && (
                <p className="soft">
                  You have no payment method.{" "}
                  <Link className="link" to="/account/payment-methods">
                    Add one
                  </Link>
                </p>
              )}
            </fieldset>
          </>
        ) : (
          <p className="soft">
            {present.periodEnd === null
              ? "It begins at once."
              : `It begins on ${formatDate(present.periodEnd)}, when the paid month ends. Until then you keep ${planName(present.plan)}.`}{" "}
            Nothing is charged now.
          </p>
        )}
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep {planName(present.plan)}
          </button>
          <button
            type="submit"
            className="btn primary"
            disabled={change.isPending || (isPaid && paymentMethodId === undefined)}
          >
            {isPaid ? `Pay ${isFirst ? "" : "up to "}${price}` : `Change to ${planName(plan)}`}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
