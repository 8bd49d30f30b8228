import type { PaymentMethod } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect } from "react";
import { stoa } from "../api.ts";
import { hasDraft, saveDraft, takeDraft } from "../lib/drafts.ts";
import { showError, showToast } from "../lib/toasts.ts";
import { useAction } from "../lib/use-action.ts";
import { paymentMethodsQuery } from "../queries/account.ts";

/** The draft that says that this account requested the page in this browser: a link of somebody else must not add their card. */
const REQUESTED = "card-entry";

interface EnterCardProps {
  className: string;
  children: ReactNode;
  /** Saves what was typed on this page. */
  onLeave?: () => void;
}

/** Opens the payment provider's page for cards, which redirects to this page with `card` in the address. */
export function EnterCard({ className, children, onLeave }: EnterCardProps) {
  const open = useAction({
    run: async (returnTo: string, idempotencyKey) =>
      await stoa.paymentMethods.startSetup({ returnTo }, { idempotencyKey }),
    onSuccess: ({ url }) => {
      onLeave?.();
      saveDraft(REQUESTED, true);
      location.assign(url);
    },
    onError: (error) => showError("The page for cards did not open", error),
  });
  return (
    <button
      type="button"
      className={className}
      disabled={open.isPending}
      onClick={() => open.start(addressWithoutCard())}
    >
      {children}
    </button>
  );
}

function addressWithoutCard(): string {
  const url = new URL(location.href);
  url.searchParams.delete("card");
  return url.pathname + url.search;
}

/** Stores the `card` of the address. After a failure it stays there, so that a reload tries again. */
export function useEnteredCard(card: string | undefined, onStored: (method: PaymentMethod) => void): void {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { start } = useAction({
    run: async (token: string, idempotencyKey) =>
      await stoa.paymentMethods.create({ token }, { idempotencyKey }),
    onSuccess: async (method) => {
      await client.invalidateQueries({ queryKey: paymentMethodsQuery.queryKey });
      takeDraft(REQUESTED);
      onStored(method);
      await navigate({ to: ".", search: (old: object) => ({ ...old, card: undefined }), replace: true });
    },
    onError: (error) => showError("The card was not stored", error),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each card
  useEffect(() => {
    if (card === undefined) return;
    if (hasDraft(REQUESTED)) start(card);
    else showToast("A card was not stored, because you did not ask for it in this browser. Add it again.");
  }, [card]);
}
