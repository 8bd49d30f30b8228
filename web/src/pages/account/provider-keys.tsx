import "./account.css";
import type { ProviderKey } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PlusIcon } from "../../components/icons.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag, type Tone } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { providerName } from "../../lib/providers.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { providerKeysQuery } from "../../queries/account.ts";
import { ProviderKeyDialog } from "./provider-key-dialog.tsx";

const route = getRouteApi("/account/provider-keys");

const STATUSES: Record<string, [Tone, string]> = {
  valid: ["good", "Valid"],
  invalid: ["bad", "Refused by the provider"],
  unverified: ["neutral", "Not checked"],
};

type Action = { kind: "edit" | "delete"; providerKey: ProviderKey };

export default function ProviderKeys() {
  useTitle("Provider keys");
  const { create = false } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useSuspenseQuery(providerKeysQuery);
  const [action, setAction] = useState<Action | null>(null);
  const endAction = () => setAction(null);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <div>
          <h1 className="page-title">Provider keys</h1>
          <p className="soft">
            What you buy runs with your own keys. They are encrypted, and never shown again.
          </p>
        </div>
        <Link to="." search={{ create: true }} className="btn primary">
          <PlusIcon /> Add key
        </Link>
      </div>
      <section className="beam stack">
        {data.data.length === 0 ? (
          <EmptyState
            title="No provider keys yet"
            action={
              <Link to="." search={{ create: true }} className="btn">
                Add key
              </Link>
            }
          >
            With a key of OpenAI, Anthropic or another provider, products run here, and the provider bills
            you.
          </EmptyState>
        ) : (
          <ul className="rows">
            {data.data.map((providerKey) => (
              <KeyRow key={providerKey.id} providerKey={providerKey} onAction={setAction} />
            ))}
          </ul>
        )}
        <div className="flush">
          <ShowAsCode
            curl={curlOf("GET", "/ai/keys")}
            sdk="const keys = await stoa.ai.keys.list().toArray();"
          />
        </div>
      </section>
      {create && <ProviderKeyDialog onClose={() => void navigate({ search: {}, replace: true })} />}
      {action?.kind === "edit" && <ProviderKeyDialog providerKey={action.providerKey} onClose={endAction} />}
      {action?.kind === "delete" && <DeleteKey providerKey={action.providerKey} onClose={endAction} />}
    </main>
  );
}

interface KeyRowProps {
  providerKey: ProviderKey;
  onAction: (action: Action) => void;
}

function KeyRow({ providerKey, onAction }: KeyRowProps) {
  const { id, provider, name, last4, baseUrl, status, monthlyBudget, maxConcurrency, lastUsedAt } =
    providerKey;
  const client = useQueryClient();
  const verify = useAction({
    run: async () => await stoa.ai.keys.verify(id),
    onSuccess: ({ status }) =>
      showToast(status === "valid" ? `${name} works` : `${providerName(provider)} refused ${name}`),
    onError: (error) => showError(`${name} was not checked`, error),
    onSettled: () => client.invalidateQueries({ queryKey: providerKeysQuery.queryKey }),
  });
  const [tone, word] = STATUSES[status] ?? ["neutral", status];
  return (
    <li>
      <div className="grow">
        <b dir="auto">{name}</b> <StatusTag tone={tone}>{word}</StatusTag>
        <p className="sm soft">
          {providerName(provider)} <code>…{last4}</code>
          {baseUrl && (
            <>
              {" "}
              at <code>{baseUrl}</code>
            </>
          )}{" "}
          · {monthlyBudget === null ? "no budget" : `at most ${formatMoney(monthlyBudget, "USD")} a month`}
          {maxConcurrency !== null && ` · ${maxConcurrency} calls at a time`} ·{" "}
          {lastUsedAt ? (
            <>
              last used <Time iso={lastUsedAt} />
            </>
          ) : (
            "never used"
          )}
        </p>
      </div>
      <button
        type="button"
        className="btn s"
        disabled={verify.isPending}
        aria-label={`Check ${name}`}
        onClick={() => verify.start()}
      >
        {verify.isPending ? "Checking" : "Check"}
      </button>
      <RowMenu
        label={`More for ${name}`}
        actions={[
          { label: "Change", onSelect: () => onAction({ kind: "edit", providerKey }) },
          {
            label: "Delete key",
            isDestructive: true,
            onSelect: () => onAction({ kind: "delete", providerKey }),
          },
        ]}
      />
    </li>
  );
}

function DeleteKey({ providerKey, onClose }: { providerKey: ProviderKey; onClose: () => void }) {
  const { id, name, provider, last4 } = providerKey;
  const client = useQueryClient();
  const remove = useAction({
    run: async () => await stoa.ai.keys.delete(id),
    onSuccess: () => {
      onClose();
      showToast(`${name} is deleted`);
    },
    onSettled: () => client.invalidateQueries({ queryKey: providerKeysQuery.queryKey }),
  });
  return (
    <ConfirmDialog
      title={`Delete “${name}”?`}
      action="Delete key"
      keep="Keep it"
      isPending={remove.isPending}
      onConfirm={() => remove.start()}
      onClose={onClose}
    >
      <p className="soft">
        Runs can no longer use {providerName(provider)} …{last4}. The key itself stays valid there: end it in
        the provider's console if it leaked.
      </p>
      <FormError error={remove.error} title="The key was not deleted" />
    </ConfirmDialog>
  );
}
