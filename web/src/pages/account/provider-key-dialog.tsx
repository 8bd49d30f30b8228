import type { CreateProviderKey, ProviderKey, UpdateProviderKey } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { hasOwnAddress, PROVIDERS, providerName } from "../../lib/providers.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { providerKeysQuery } from "../../queries/account.ts";

interface ProviderKeyDialogProps {
  /** Absent: a new key. */
  providerKey?: ProviderKey;
  onClose: () => void;
}

interface Draft {
  provider: string;
  name: string;
  key: string;
  baseUrl: string;
  monthlyBudget: string;
  maxConcurrency: string;
}

const draftOf = (given: ProviderKey | undefined): Draft => ({
  provider: given?.provider ?? "openai",
  name: given?.name ?? "",
  key: "",
  baseUrl: given?.baseUrl ?? "",
  monthlyBudget: given?.monthlyBudget?.toString() ?? "",
  maxConcurrency: given?.maxConcurrency?.toString() ?? "",
});

/** The API refuses what is no number, and says so; JSON would turn NaN into null, which removes the limit. */
function numberOf(text: string): number | null {
  const number = Number(text);
  if (text.trim() === "") return null;
  return Number.isNaN(number) ? (text as never) : number;
}

const limitsOf = ({ monthlyBudget, maxConcurrency }: Draft) => ({
  monthlyBudget: numberOf(monthlyBudget),
  maxConcurrency: numberOf(maxConcurrency),
});

function toNewKey(draft: Draft): CreateProviderKey {
  const { provider, name, key, baseUrl } = draft;
  return { provider, name, key, ...(hasOwnAddress(provider) && baseUrl && { baseUrl }), ...limitsOf(draft) };
}

/** Only what changed: a new address needs a new key. */
function toUpdate(draft: Draft, given: ProviderKey): UpdateProviderKey {
  const { name, key, baseUrl } = draft;
  return {
    ...(name !== given.name && { name }),
    ...(key !== "" && { key }),
    ...(baseUrl !== (given.baseUrl ?? "") && { baseUrl }),
    ...limitsOf(draft),
  };
}

export function ProviderKeyDialog({ providerKey, onClose }: ProviderKeyDialogProps) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => draftOf(providerKey));
  const save = useAction({
    run: async (typed: Draft, idempotencyKey) =>
      providerKey
        ? await stoa.ai.keys.update(providerKey.id, toUpdate(typed, providerKey))
        : await stoa.ai.keys.create(toNewKey(typed), { idempotencyKey }),
    onSuccess: async ({ name, status, provider }) => {
      await client.invalidateQueries({ queryKey: providerKeysQuery.queryKey });
      onClose();
      showToast(
        status === "invalid"
          ? `${providerName(provider)} refused ${name}: replace the key`
          : `${name} is stored`,
      );
    },
  });
  const errors = fieldErrors(save.error);
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.start(draft);
  };
  const isReady = draft.name.trim() !== "" && (providerKey !== undefined || draft.key !== "");
  return (
    <Dialog title={providerKey ? `Change “${providerKey.name}”` : "Add a provider key"} onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError error={save.error} title="The key was not stored" />
        {!providerKey && (
          <Field label="Provider" error={errors["provider"]}>
            {(control) => (
              <select
                {...control}
                className="input"
                value={draft.provider}
                onChange={({ target }) => change({ provider: target.value })}
              >
                {PROVIDERS.map((provider) => (
                  <option key={provider} value={provider}>
                    {providerName(provider)}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Field label="Name" error={errors["name"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              autoComplete="off"
              dir="auto"
              maxLength={100}
              value={draft.name}
              onChange={({ target }) => change({ name: target.value })}
            />
          )}
        </Field>
        {hasOwnAddress(draft.provider) && (
          <Field label="Address" hint="Such as https://models.example/v1" error={errors["baseUrl"]}>
            {(control) => (
              <input
                {...control}
                className="input"
                type="url"
                maxLength={2048}
                value={draft.baseUrl}
                onChange={({ target }) => change({ baseUrl: target.value })}
              />
            )}
          </Field>
        )}
        <Field
          label={providerKey ? "New key" : "Key"}
          hint={
            providerKey
              ? `Leave it empty to keep the one that ends in ${providerKey.last4}.`
              : "From the provider's console. The provider is asked whether it works, which costs nothing."
          }
          error={errors["key"]}
        >
          {(control) => (
            <input
              {...control}
              className="input mono"
              type="password"
              autoComplete="off"
              maxLength={1000}
              value={draft.key}
              onChange={({ target }) => change({ key: target.value.trim() })}
            />
          )}
        </Field>
        <Field
          label="Monthly budget in USD"
          hint="Optional. A run that may cost more than the rest does not start."
          error={errors["monthlyBudget"]}
        >
          {(control) => (
            <input
              {...control}
              className="input num"
              inputMode="decimal"
              maxLength={20}
              value={draft.monthlyBudget}
              onChange={({ target }) => change({ monthlyBudget: target.value })}
            />
          )}
        </Field>
        <Field label="Calls at a time" hint="Optional." error={errors["maxConcurrency"]}>
          {(control) => (
            <input
              {...control}
              className="input num"
              inputMode="numeric"
              maxLength={6}
              value={draft.maxConcurrency}
              onChange={({ target }) => change({ maxConcurrency: target.value })}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button type="submit" className="btn primary" disabled={!isReady || save.isPending}>
            {providerKey ? "Save changes" : "Add key"}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
