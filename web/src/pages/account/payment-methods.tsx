import "./account.css";
import type { PaymentMethod } from "@stoa/sdk";
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { EnterCard, useEnteredCard } from "../../components/card-entry.tsx";
import { ConfirmDialog, Dialog, DialogButtons } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { CardIcon, PlusIcon } from "../../components/icons.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Time } from "../../components/time.tsx";
import { cardName } from "../../lib/card-name.ts";
import { curlOf } from "../../lib/curl.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { paymentMethodsQuery } from "../../queries/account.ts";

const route = getRouteApi("/account/payment-methods");
/** A card of the test environment by what it does: "pm_test_card_declined" is "card declined". */
const behaviorOf = (id: string): string =>
  id
    .replace(/^pm_test_/, "")
    .replace(/_[0-9a-f]{16}$/, "")
    .replaceAll("_", " ");

export default function PaymentMethods() {
  useTitle("Payment methods");
  const { create = false, card } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useSuspenseQuery(paymentMethodsQuery);
  const [removing, setRemoving] = useState<PaymentMethod | null>(null);
  useEnteredCard(card, () => showToast("Card stored"));
  const testCards = data.data.filter(({ createdAt }) => createdAt === null);
  const hasTestCards = testCards.length > 0;
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <div>
          <h1 className="page-title">Payment methods</h1>
          <p className="soft">The default pays for purchases and for your plan, unless you choose another.</p>
        </div>
        {hasTestCards ? (
          <Link to="." search={{ create: true }} className="btn primary">
            <PlusIcon /> Store test card
          </Link>
        ) : (
          <EnterCard className="btn primary">
            <PlusIcon /> Add a card
          </EnterCard>
        )}
      </div>
      <section className="beam stack">
        {data.data.length === 0 ? (
          <EmptyState title="No payment methods yet">
            Add a card here or when you buy. You enter it at the payment provider, and its number stays there.
          </EmptyState>
        ) : (
          <ul className="rows">
            {data.data.map((method) => (
              <MethodRow key={method.id} method={method} onRemove={() => setRemoving(method)} />
            ))}
          </ul>
        )}
        <div className="flush">
          <ShowAsCode
            curl={curlOf("GET", "/payment-methods")}
            sdk="const methods = await stoa.paymentMethods.list().toArray();"
          />
        </div>
      </section>
      {create && hasTestCards && (
        <AddTestCard shared={testCards} onClose={() => void navigate({ search: {}, replace: true })} />
      )}
      {removing && <RemoveMethod method={removing} onClose={() => setRemoving(null)} />}
    </main>
  );
}

function MethodRow({ method, onRemove }: { method: PaymentMethod; onRemove: () => void }) {
  const { id, isDefault, createdAt } = method;
  const client = useQueryClient();
  const setDefault = useMutation({
    mutationFn: async () => await stoa.paymentMethods.setDefault(id),
    // The list shows it at once; a failure brings the old default back.
    onMutate: async () => {
      await client.cancelQueries({ queryKey: paymentMethodsQuery.queryKey });
      const before = client.getQueryData(paymentMethodsQuery.queryKey);
      client.setQueryData(
        paymentMethodsQuery.queryKey,
        (page) =>
          page && { ...page, data: page.data.map((other) => ({ ...other, isDefault: other.id === id })) },
      );
      return before;
    },
    onError: (error, _, before) => {
      client.setQueryData(paymentMethodsQuery.queryKey, before);
      showError("The default did not change", error);
    },
    onSettled: () => client.invalidateQueries({ queryKey: paymentMethodsQuery.queryKey }),
  });
  return (
    <li>
      <CardIcon size={20} />
      <div className="grow">
        <b>{cardName(method)}</b> {isDefault && <span className="tag accent">Default</span>}
        <p className="sm soft">
          {createdAt === null ? (
            "Shared test card"
          ) : (
            <>
              Added <Time iso={createdAt} />
            </>
          )}
          {id.startsWith("pm_test_") && `: ${behaviorOf(id)}`}
        </p>
      </div>
      {!isDefault && (
        <button
          type="button"
          className="btn s"
          disabled={setDefault.isPending}
          aria-label={`Make default: ${cardName(method)}`}
          onClick={() => setDefault.mutate()}
        >
          Make default
        </button>
      )}
      {createdAt !== null && (
        <button type="button" className="btn s" aria-label={`Remove ${cardName(method)}`} onClick={onRemove}>
          Remove
        </button>
      )}
    </li>
  );
}

function RemoveMethod({ method, onClose }: { method: PaymentMethod; onClose: () => void }) {
  const { id, isDefault } = method;
  const client = useQueryClient();
  const remove = useAction({
    run: async () => await stoa.paymentMethods.delete(id),
    onSuccess: () => {
      onClose();
      showToast("Card removed");
    },
    onSettled: () => client.invalidateQueries({ queryKey: paymentMethodsQuery.queryKey }),
  });
  return (
    <ConfirmDialog
      title="Remove the card?"
      action="Remove card"
      keep="Keep it"
      isPending={remove.isPending}
      onConfirm={() => remove.start()}
      onClose={onClose}
    >
      <p className="soft">
        {cardName(method)}. {isDefault && "It is your default: choose another one afterwards. "}
        To use the card again you enter it again. Refunds still reach it.
      </p>
      <FormError error={remove.error} title="The card was not removed" />
    </ConfirmDialog>
  );
}

interface AddTestCardProps {
  /** The cards that can be stored: their ids are tokens, too. */
  shared: PaymentMethod[];
  onClose: () => void;
}

function AddTestCard({ shared, onClose }: AddTestCardProps) {
  const client = useQueryClient();
  const [token, setToken] = useState(shared[0]?.id ?? "");
  const add = useAction({
    run: async (body: { token: string }, idempotencyKey) =>
      await stoa.paymentMethods.create(body, { idempotencyKey }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: paymentMethodsQuery.queryKey });
      onClose();
      showToast("Card stored");
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.start({ token });
  };
  return (
    <Dialog title="Store a test card" onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <p className="soft">No money moves in the test environment. The card decides how its payments end.</p>
        <FormError error={add.error} title="The card was not stored" />
        <Field label="Card" error={fieldErrors(add.error)["token"]}>
          {(control) => (
            <select
              {...control}
              className="input"
              value={token}
              onChange={({ target }) => setToken(target.value)}
            >
              {shared.map((method) => (
                <option key={method.id} value={method.id}>
                  {cardName(method)}, {behaviorOf(method.id)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button type="submit" className="btn primary" disabled={token === "" || add.isPending}>
            Store card
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
