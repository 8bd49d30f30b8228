import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

const count = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`;

export function PasswordForm() {
  const client = useQueryClient();
  const [password, setPassword] = useState("");
  const [currentPassword, setCurrentPassword] = useState("");
  const [revokeAccess, setRevokeAccess] = useState(false);
  const change = useAction({
    run: async () =>
      await stoa.account.password.update({
        password,
        ...(currentPassword !== "" && { currentPassword }),
        revokeAccess,
      }),
    onSuccess: ({ sessionsEnded, keysRevoked, grantsRevoked }) => {
      setPassword("");
      setCurrentPassword("");
      setRevokeAccess(false);
      void client.invalidateQueries();
      showToast(
        [
          "Password changed.",
          `${count(sessionsEnded, "other session", "other sessions")} ended.`,
          revokeAccess &&
            `${count(keysRevoked, "key", "keys")} and ${count(grantsRevoked, "app", "apps")} revoked.`,
        ]
          .filter(Boolean)
          .join(" "),
      );
    },
  });
  const errors = fieldErrors(change.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.start();
  };
  return (
    <section className="beam thin">
      <h2 className="h3">Password</h2>
      <p className="soft">Set one, or change it. Signing in by an emailed link always works, too.</p>
      <form className="stack form narrow-form" onSubmit={submit} noValidate>
        <FormError error={change.error} title="The password was not changed" />
        <Field
          label="Current password"
          hint="Leave it empty if you have none, or signed in within the last 15 minutes."
          error={errors["currentPassword"]}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              type="password"
              autoComplete="current-password"
              maxLength={200}
              value={currentPassword}
              onChange={({ target }) => setCurrentPassword(target.value)}
            />
          )}
        </Field>
        <Field
          label="New password"
          hint="At least 8 characters, and no common one."
          error={errors["password"]}
        >
          {(control) => (
            <input
              {...control}
              className="input"
              type="password"
              autoComplete="new-password"
              maxLength={200}
              value={password}
              onChange={({ target }) => setPassword(target.value)}
            />
          )}
        </Field>
        <label className="choice">
          <input
            type="checkbox"
            className="check"
            checked={revokeAccess}
            onChange={() => setRevokeAccess(!revokeAccess)}
          />
          <span>
            <span className="m">Also revoke all API keys and connected apps</span>{" "}
            <span className="soft sm">if another person may have had access to your account</span>
          </span>
        </label>
        <div className="row wrap">
          <button type="submit" className="btn" disabled={password === "" || change.isPending}>
            Change password
          </button>
          <span className="sm soft">All your other sessions end.</span>
        </div>
      </form>
    </section>
  );
}
