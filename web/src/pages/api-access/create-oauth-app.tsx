import type { NewOAuthClient } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PermissionPicker } from "../../components/permission-picker.tsx";
import { takeDraft } from "../../lib/drafts.ts";
import type { Permission } from "../../lib/permissions.ts";
import { useAction } from "../../lib/use-action.ts";
import { NewClientSecret } from "./new-client-secret.tsx";

const DRAFT = "oauth-app";

interface Draft {
  name: string;
  /** One a line. */
  redirectUris: string;
  scopes: Permission[];
  signsPeopleIn: boolean;
  actsAsOwner: boolean;
}

const EMPTY: Draft = {
  name: "",
  redirectUris: "",
  scopes: ["products:read"],
  signsPeopleIn: true,
  actsAsOwner: false,
};

const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** The API names `redirectUris[1]`; the person sees one field with lines. */
function redirectError(errors: Record<string, string>, lines: string[]): string | undefined {
  const found = Object.entries(errors).find(([field]) => field.startsWith("redirectUris"));
  if (!found) return undefined;
  const [field, sentence] = found;
  const line = lines[Number(/\[(\d+)\]/.exec(field)?.[1])];
  return line === undefined ? sentence : `${line}: ${sentence}`;
}

export function CreateOauthApp({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState<Draft>(() => takeDraft<Draft>(DRAFT) ?? EMPTY);
  const [created, setCreated] = useState<NewOAuthClient | null>(null);
  const create = useAction({
    run: async ({ name, redirectUris, scopes, signsPeopleIn, actsAsOwner }: Draft, idempotencyKey) => {
      const body = {
        name,
        redirectUris: linesOf(redirectUris),
        scopes,
        grantTypes: [
          ...(signsPeopleIn ? (["authorization_code", "refresh_token"] as const) : []),
          ...(actsAsOwner ? (["client_credentials"] as const) : []),
        ],
      };
      return await stoa.oauth.clients.create(body, { idempotencyKey });
    },
    onSuccess: setCreated,
    onSettled: () => client.invalidateQueries({ queryKey: ["oauth-clients"] }),
  });
  if (created) return <NewClientSecret title="Your new app" app={created} onDone={onClose} />;
  const errors = fieldErrors(create.error);
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.start(draft);
  };
  return (
    <Dialog title="Create an OAuth app" onClose={onClose}>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError
          error={create.error}
          title="The app was not created"
          draft={{ name: DRAFT, value: draft }}
        />
        <Field label="Name" hint="People see it when they are asked to agree." error={errors["name"]}>
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
        <fieldset className="field plain">
          <legend className="m">What it does</legend>
          <label className="choice">
            <input
              type="checkbox"
              className="check"
              checked={draft.signsPeopleIn}
              onChange={() => change({ signsPeopleIn: !draft.signsPeopleIn })}
            />
            <span>
              <span className="m">Acts for people</span>{" "}
              <span className="soft sm">each signs in here and agrees</span>
            </span>
          </label>
          <label className="choice">
            <input
              type="checkbox"
              className="check"
              checked={draft.actsAsOwner}
              onChange={() => change({ actsAsOwner: !draft.actsAsOwner })}
            />
            <span>
              <span className="m">Acts as you</span>{" "}
              <span className="soft sm">by its secret alone, without anyone agreeing</span>
            </span>
          </label>
          {errors["grantTypes"] && <p className="ferr">{errors["grantTypes"]}</p>}
        </fieldset>
        {draft.signsPeopleIn && (
          <Field
            label="Redirect addresses"
            hint="One per line. People return there after they agree. https, or http on localhost."
            error={redirectError(errors, linesOf(draft.redirectUris))}
          >
            {(control) => (
              <textarea
                {...control}
                className="input mono"
                rows={3}
                spellCheck={false}
                placeholder="https://app.example/callback"
                value={draft.redirectUris}
                onChange={({ target }) => change({ redirectUris: target.value })}
              />
            )}
          </Field>
        )}
        <PermissionPicker
          label="May request"
          chosen={draft.scopes}
          onChange={(scopes) => change({ scopes })}
          error={errors["scopes"]}
        />
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Discard
          </button>
          <button
            type="submit"
            className="btn primary"
            disabled={create.isPending || draft.name.trim() === ""}
          >
            Create app
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
