import "./run-form.css";
import type { ProviderKey } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { hasOwnAddress, PROVIDERS, providerName, runsEveryProduct } from "../../lib/providers.ts";
import { useStartOnce } from "../../lib/start-once.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { ErrorSummary, Field, fieldErrors } from "../field.tsx";

interface KeyDialogProps {
  /** Providers that the product runs on, first in the list. */
  providers: string[];
  /** Absent: a new key. Else its secret is replaced. */
  replaced?: ProviderKey | undefined;
  onDone: (key: ProviderKey) => void;
  onClose: () => void;
}

interface KeyInput {
  provider: string;
  name: string;
  key: string;
  baseUrl: string;
}

/** Stores a provider key, or replaces the secret of one, without leaving the page. */
export function KeyDialog({ providers, replaced, onDone, onClose }: KeyDialogProps) {
  const client = useQueryClient();
  const fitting = providers.filter((id) => PROVIDERS.includes(id));
  const others = PROVIDERS.filter((id) => !fitting.includes(id) && runsEveryProduct(id));
  const [input, setInput] = useState<KeyInput>({
    provider: replaced?.provider ?? fitting[0] ?? others[0] ?? "openai",
    name: replaced?.name ?? "",
    key: "",
    baseUrl: "",
  });
  const [refused, setRefused] = useState<ProviderKey | null>(null);
  const { start, isPending, error } = useStartOnce(({ provider, name, key, baseUrl }: KeyInput, options) => {
    const stored = replaced ?? refused;
    if (stored) return stoa.ai.keys.update(stored.id, { key }, { maxRetries: options.maxRetries });
    const own = { provider, key, name: name.trim() || providerName(provider) };
    return stoa.ai.keys.create({ ...own, ...(baseUrl && { baseUrl: baseUrl.trim() }) }, options);
  });
  const change = (part: Partial<KeyInput>) => setInput((old) => ({ ...old, ...part }));
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const stored = await start({ ...input, key: input.key.trim() });
    if (!stored) return;
    await client.invalidateQueries({ queryKey: ["provider-keys"] });
    if (stored.status === "invalid") setRefused(stored);
    else onDone(stored);
  };
  const errors = fieldErrors(error);
  const needsAddress = input.provider === "openai-compatible";
  const name = providerName(input.provider);
  const isFixed = replaced !== undefined || refused !== null;
  return (
    <Dialog title={replaced ? `Replace the key “${replaced.name}”` : "Add a provider key"} onClose={onClose}>
      <p className="soft">
        Runs use your own account at a model provider, which charges you for them. The key is stored
        encrypted, and shows its last 4 characters only.
      </p>
      <form className="stack key-form" onSubmit={submit}>
        {Object.keys(errors).length === 0 && <ErrorSummary error={error} title="The key was not stored" />}
        {!isFixed && (
          <>
            <Field label="Provider">
              {(control) => (
                <select
                  {...control}
                  className="input"
                  value={input.provider}
                  onChange={(event) => change({ provider: event.target.value })}
                >
                  {[...fitting, ...others].map((id) => (
                    <option key={id} value={id}>
                      {providerName(id)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            {hasOwnAddress(input.provider) && (
              <Field
                label={needsAddress ? "Address" : "Address, optional"}
                hint="Such as https://models.example/v1"
                error={errors["baseUrl"]}
              >
                {(control) => (
                  <input
                    {...control}
                    className="input"
                    type="url"
                    required={needsAddress}
                    value={input.baseUrl}
                    onChange={(event) => change({ baseUrl: event.target.value })}
                  />
                )}
              </Field>
            )}
            <Field label="Name, optional" error={errors["name"]}>
              {(control) => (
                <input
                  {...control}
                  className="input"
                  maxLength={100}
                  autoComplete="off"
                  placeholder={name}
                  value={input.name}
                  onChange={(event) => change({ name: event.target.value })}
                />
              )}
            </Field>
          </>
        )}
        <Field
          label={`Key of ${name}`}
          error={refused ? `${name} refuses this key. Check it, then store it again.` : errors["key"]}
        >
          {(control) => (
            <input
              {...control}
              className="input mono"
              type="password"
              autoComplete="off"
              required
              value={input.key}
              onChange={(event) => change({ key: event.target.value })}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={isPending}>
            {isPending ? "Asking the provider" : isFixed ? "Replace key" : "Add key"}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
