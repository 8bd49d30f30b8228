import type { ApiKey } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { useAction } from "../../lib/use-action.ts";

export function RenameKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState(apiKey.name);
  const rename = useAction({
    run: async () => await stoa.apiKeys.update(apiKey.id, { name }),
    onSuccess: onClose,
    onSettled: () => client.invalidateQueries({ queryKey: ["api-keys"] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rename.start();
  };
  return (
    <Dialog title={`Rename “${apiKey.name}”`} onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError error={rename.error} title="The key was not renamed" />
        <Field label="Name" error={fieldErrors(rename.error)["name"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              maxLength={100}
              value={name}
              onChange={({ target }) => setName(target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep the name
          </button>
          <button type="submit" className="btn primary" disabled={rename.isPending}>
            Rename key
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
