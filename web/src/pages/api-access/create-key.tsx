import type { NewApiKey } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PermissionPicker } from "../../components/permission-picker.tsx";
import { takeDraft } from "../../lib/drafts.ts";
import { formatDate } from "../../lib/format.ts";
import type { Permission } from "../../lib/permissions.ts";
import { useAction } from "../../lib/use-action.ts";
import { NewKey } from "./new-key.tsx";

const DRAFT = "api-key";
const DAY_MS = 86_400_000;
/** Days; null: no end. */
const LIFETIMES = [7, 30, 90, 365, null];

interface Draft {
  name: string;
  permissions: Permission[];
  days: number | null;
}

const EMPTY: Draft = {
  name: "",
  permissions: ["products:read", "purchases:read", "analytics:read"],
  days: 30,
};

export function CreateKey({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState<Draft>(() => takeDraft<Draft>(DRAFT) ?? EMPTY);
  const [created, setCreated] = useState<NewApiKey | null>(null);
  // Counted from here, so that a repeat sends the same time under the same idempotency key.
  const [openedAt] = useState(() => Date.now());
  const endAfter = (days: number) => new Date(openedAt + days * DAY_MS).toISOString();
  const create = useAction({
    run: async ({ name, permissions, days }: Draft, idempotencyKey) => {
      const body = {
        name,
        permissions: Object.fromEntries(permissions.map((permission) => [permission, true])),
        expiresAt: days === null ? null : endAfter(days),
      };
      return await stoa.apiKeys.create(body, { idempotencyKey });
    },
    onSuccess: setCreated,
    onSettled: () => client.invalidateQueries({ queryKey: ["api-keys"] }),
  });
  if (created) return <NewKey title="Your new key, shown once" apiKey={created} onDone={onClose} />;
  const errors = fieldErrors(create.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.start(draft);
  };
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError
          error={create.error}
          title="The key was not created"
          draft={{ name: DRAFT, value: draft }}
        />
        <Field label="Name" hint="Where it is used, such as invoice-sync." error={errors["name"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              autoComplete="off"
              dir="auto"
              maxLength={100}
              value={draft.name}
              onChange={(event) => setDraft({ ...draft, name: event.target.value })}
            />
          )}
        </Field>
        <PermissionPicker
          label="Allows"
          chosen={draft.permissions}
          onChange={(permissions) => setDraft({ ...draft, permissions })}
          error={errors["permissions"]}
        />
        <Field label="Ends" error={errors["expiresAt"]}>
          {(control) => (
            <select
              {...control}
              className="input"
              value={draft.days ?? ""}
              onChange={({ target }) =>
                setDraft({ ...draft, days: target.value === "" ? null : Number(target.value) })
              }
            >
              {LIFETIMES.map((days) => (
                <option key={days} value={days ?? ""}>
                  {days === null ? "No end" : `In ${days} days, ${formatDate(endAfter(days))}`}
                </option>
              ))}
            </select>
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button
            type="submit"
            className="btn primary"
            disabled={create.isPending || draft.name.trim() === ""}
          >
            Create key
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
