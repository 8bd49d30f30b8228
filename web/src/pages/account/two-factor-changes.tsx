import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { BackupCodes } from "./backup-codes.tsx";
import { CodeField } from "./code-field.tsx";

const HINT = "The six digits that the app shows now, or a backup code.";

export function RenewBackupCodes({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [code, setCode] = useState("");
  const renew = useAction({
    run: async (body: { code: string }, idempotencyKey) =>
      await stoa.twoFactor.renewBackupCodes(body, { idempotencyKey }),
    onSettled: () => client.invalidateQueries({ queryKey: ["two-factor"] }),
  });
  if (renew.data)
    return (
      <BackupCodes title="Your new backup codes" codes={renew.data.backupCodes} onDone={onClose}>
        Those that you had before no longer work.
      </BackupCodes>
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    renew.start({ code });
  };
  return (
    <Dialog title="New backup codes" onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <p className="soft">
          Ten new codes replace the old ones. Do this if few are left, or if someone saw them.
        </p>
        <FormError error={renew.error} title="The codes were not replaced" />
        <CodeField code={code} hint={HINT} error={fieldErrors(renew.error)["code"]} onChange={setCode} />
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep the old ones
          </button>
          <button type="submit" className="btn primary" disabled={code.trim() === "" || renew.isPending}>
            Replace the codes
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

export function DisableTwoFactor({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [code, setCode] = useState("");
  const [password, setPassword] = useState("");
  const disable = useAction({
    run: async () => await stoa.twoFactor.disable({ code, ...(password !== "" && { password }) }),
    onSuccess: async () => {
      await client.invalidateQueries();
      onClose();
      showToast("Two-factor authentication is off");
    },
  });
  const errors = fieldErrors(disable.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    disable.start();
  };
  return (
    <Dialog title="Turn off two-factor authentication?" onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <p className="soft">
          Your email or password alone is then enough to sign in. For a new phone, turn it off here and on
          again.
        </p>
        <FormError error={disable.error} title="It is still on" />
        <CodeField code={code} hint={HINT} error={errors["code"]} onChange={setCode} />
        <Field
          label="Password"
          hint="Leave it empty if you signed in within the last 15 minutes."
          error={errors["password"]}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              type="password"
              autoComplete="current-password"
              maxLength={200}
              value={password}
              onChange={({ target }) => setPassword(target.value)}
            />
          )}
        </Field>
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep it on
          </button>
          <button type="submit" className="btn destroy" disabled={code.trim() === "" || disable.isPending}>
            Turn off
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
