import type { AdminUserDetail, UpdateUser } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { statusOf } from "../../lib/errors.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import {
  historyQuery,
  PLAN_NAMES,
  PLANS,
  ROLE_NAMES,
  ROLES,
  userQuery,
} from "../../queries/administration.ts";
import { useAccount } from "../../session.ts";

export type EditedUser = AdminUserDetail & { etag: string | null };

interface Draft {
  role: string;
  plan: string;
  verified: boolean;
  /** "1000/3600, 50/60": requests per seconds; empty: the plan's. */
  quota: string;
  reason: string;
}

const quotaText = (quota: AdminUserDetail["quota"]): string =>
  (quota ?? []).map(({ requests, seconds }) => `${requests}/${seconds}`).join(", ");

const QUOTA = /^\d{1,9}\/\d{1,9}$/;

/** undefined: the text cannot be read. */
function parseQuota(text: string): UpdateUser["quota"] | undefined {
  if (text.trim() === "") return null;
  const parts = text.split(",").map((part) => part.trim());
  if (!parts.every((part) => QUOTA.test(part))) return undefined;
  return parts.map((part) => {
    const [requests, seconds] = part.split("/").map(Number);
    return { requests: requests ?? 0, seconds: seconds ?? 0 };
  });
}

const toDraft = (user: EditedUser): Draft => ({
  role: user.role,
  plan: user.plan,
  verified: user.verified,
  quota: quotaText(user.quota),
  reason: "",
});

/** The fields that differ; the service changes no other. */
function changesOf(user: EditedUser, draft: Draft): UpdateUser {
  const quota = parseQuota(draft.quota);
  return {
    ...(draft.role !== user.role && { role: draft.role as (typeof ROLES)[number] }),
    ...(draft.plan !== user.plan && { plan: draft.plan as (typeof PLANS)[number] }),
    ...(draft.verified !== user.verified && { verified: draft.verified }),
    ...(quota !== undefined && draft.quota.trim() !== quotaText(user.quota) && { quota }),
  };
}

export function UserForm({ user }: { user: EditedUser }) {
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => toDraft(user));
  const [problem, setProblem] = useState<string>();
  const isSelf = useAccount()?.id === user.id;
  const change = (fields: Partial<Draft>) => setDraft((old) => ({ ...old, ...fields }));
  const changes = changesOf(user, draft);
  const isChanged = Object.keys(changes).length > 0;
  const refresh = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: userQuery(user.id).queryKey }),
      client.invalidateQueries({ queryKey: historyQuery(user.id).queryKey }),
      client.invalidateQueries({ queryKey: ["admin", "users"] }),
    ]);
  const save = useAction({
    run: async (body: UpdateUser) =>
      await stoa.admin.users.update(user.id, body, {
        headers: user.etag === null ? {} : { "if-match": user.etag },
      }),
    onSuccess: async () => {
      showToast("The account was changed.");
      await refresh();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const isReadable = parseQuota(draft.quota) !== undefined;
    setProblem(
      isReadable ? undefined : "Write requests/seconds, such as 1000/3600, with commas between several.",
    );
    const reason = draft.reason.trim();
    if (isReadable) save.start({ ...changes, ...(reason !== "" && { reason }) });
  };
  const errors = fieldErrors(save.error);
  return (
    <form className="stack form" onSubmit={submit} noValidate>
      {statusOf(save.error) === 412 ? (
        <Changed onReload={() => void refresh()} />
      ) : (
        <FormError error={save.error} title="The account was not changed" />
      )}
      <div className="admin-fields">
        <Field
          label="Role"
          error={errors["role"]}
          hint={isSelf ? "Another administrator must change your own role." : undefined}
        >
          {(control) => (
            <select
              {...control}
              className="input"
              value={draft.role}
              disabled={isSelf}
              onChange={(event) => change({ role: event.target.value })}
            >
              {ROLES.map((role) => (
                <option key={role} value={role}>
                  {ROLE_NAMES[role]}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Plan" error={errors["plan"]} hint="An override: nothing is charged for it.">
          {(control) => (
            <select
              {...control}
              className="input"
              value={draft.plan}
              onChange={(event) => change({ plan: event.target.value })}
            >
              {PLANS.map((plan) => (
                <option key={plan} value={plan}>
                  {PLAN_NAMES[plan]}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <Field
        label="Own quota"
        error={problem ?? errors["quota"]}
        hint="Requests per seconds, such as 50000/3600. Empty: the plan's quota."
      >
        {(control) => (
          <input
            {...control}
            className="input mono"
            value={draft.quota}
            onChange={(event) => change({ quota: event.target.value })}
          />
        )}
      </Field>
      <label className="choice">
        <input
          type="checkbox"
          className="check"
          checked={draft.verified}
          onChange={(event) => change({ verified: event.target.checked })}
        />
        <span>
          <b className="m">Verified seller</b>
          <span className="sm soft"> The badge beside the name. Products are sold without a review.</span>
        </span>
      </label>
      <Field label="Reason" error={errors["reason"]} hint="For the audit log.">
        {(control) => (
          <input
            {...control}
            className="input"
            maxLength={500}
            value={draft.reason}
            onChange={(event) => change({ reason: event.target.value })}
          />
        )}
      </Field>
      <div className="row wrap">
        <button type="submit" className="btn primary" disabled={!isChanged || save.isPending}>
          Save changes
        </button>
        {isChanged && (
          <button type="button" className="btn" onClick={() => setDraft(toDraft(user))}>
            Discard
          </button>
        )}
      </div>
    </form>
  );
}

const Changed = ({ onReload }: { onReload: () => void }) => (
  <div className="strip warning" role="alert">
    <span className="grow">
      <b>Someone else changed this account meanwhile.</b> Load it again, then repeat your change.
    </span>
    <button type="button" className="btn s" onClick={onReload}>
      Load again
    </button>
  </div>
);
