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
import {
  changesOf,
  draftAfterSave,
  type EditedUser,
  isEdited,
  parseQuota,
  rebaseDraft,
  replacedFields,
  toDraft,
  type UserDraft,
  type UserField,
} from "./user-draft.ts";

const LABELS: Record<UserField, string> = {
  role: "Role",
  plan: "Plan",
  quota: "Own quota",
  verified: "Verified seller",
  reason: "Reason",
};

const QUOTA_FORMAT = "Write requests/seconds, such as 1000/3600, with commas between several.";

export function UserForm({ user }: { user: EditedUser }) {
  const client = useQueryClient();
  /** The last prop. After a save, `base` is ahead of the prop until the query's data arrives, so the two cannot be compared. */
  const [loaded, setLoaded] = useState(user);
  /** The state of the account that the draft changes. */
  const [base, setBase] = useState(user);
  const [draft, setDraft] = useState(() => toDraft(user));
  const [replaced, setReplaced] = useState<UserField[]>([]);
  /** The last submitted values. A message about one of them goes when its field has another value. */
  const [submitted, setSubmitted] = useState<UserDraft>();
  if (user !== loaded) {
    setLoaded(user);
    // A save has set its own state already.
    if (user.etag !== base.etag) {
      setBase(user);
      setDraft(rebaseDraft(draft, base, user));
      setReplaced([...new Set([...replaced, ...replacedFields(draft, base, user)])]);
    }
  }
  const isSelf = useAccount()?.id === user.id;
  const change = (fields: Partial<UserDraft>) => {
    setDraft((old) => ({ ...old, ...fields }));
    setReplaced((old) => old.filter((field) => !(field in fields)));
  };
  const isChanged = isEdited(base, draft);
  const { queryKey } = userQuery(user.id);
  const refreshLists = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: historyQuery(user.id).queryKey }),
      client.invalidateQueries({ queryKey: ["admin", "users"] }),
    ]);
  const save = useAction({
    run: async (sent: UserDraft) => {
      const reason = sent.reason.trim();
      const { data, headers } = await stoa.admin.users
        .update(
          user.id,
          { ...changesOf(base, sent), ...(reason !== "" && { reason }) },
          { headers: base.etag === null ? {} : { "if-match": base.etag } },
        )
        .withResponse();
      return { ...data, etag: headers.get("etag") };
    },
    onSuccess: async (saved, sent) => {
      setBase(saved);
      setDraft((now) => draftAfterSave(now, sent, saved));
      client.setQueryData(queryKey, saved);
      showToast("The account was changed.");
      await Promise.all([client.invalidateQueries({ queryKey }), refreshLists()]);
    },
  });
  const reload = useAction({
    run: () => client.invalidateQueries({ queryKey }, { throwOnError: true }),
    onSuccess: async () => {
      save.reset();
      await refreshLists();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSubmitted(draft);
    if (parseQuota(draft.quota) === undefined) return;
    setReplaced([]);
    reload.reset();
    save.start(draft);
  };
  const discard = () => {
    setDraft(toDraft(base));
    setReplaced([]);
    setSubmitted(undefined);
  };
  const refusals = fieldErrors(save.error);
  const errorOf = (field: UserField) => {
    if (draft[field] !== submitted?.[field]) return undefined;
    return field === "quota" && parseQuota(draft.quota) === undefined ? QUOTA_FORMAT : refusals[field];
  };
  return (
    <form className="stack form" onSubmit={submit} noValidate>
      {statusOf(save.error) === 412 ? (
        <>
          <FormError error={reload.error} title="The account was not loaded" />
          <Changed isPending={reload.isPending} onReload={() => reload.start()} />
        </>
      ) : (
        <FormError error={save.error} title="The account was not changed" />
      )}
      {replaced.length > 0 && <Replaced fields={replaced} onDismiss={() => setReplaced([])} />}
      <div className="admin-fields">
        <Field
          label={LABELS.role}
          error={errorOf("role")}
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
        <Field label={LABELS.plan} error={errorOf("plan")} hint="An override: nothing is charged for it.">
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
        label={LABELS.quota}
        error={errorOf("quota")}
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
          <b className="m">{LABELS.verified}</b>
          <span className="sm soft"> The badge beside the name. Products are sold without a review.</span>
        </span>
      </label>
      <Field label={LABELS.reason} error={errorOf("reason")} hint="For the audit log.">
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
          <button type="button" className="btn" onClick={discard}>
            Discard
          </button>
        )}
      </div>
    </form>
  );
}

const Changed = ({ isPending, onReload }: { isPending: boolean; onReload: () => void }) => (
  <div className="strip warning" role="alert">
    <span className="grow">
      <b>Someone else changed this account meanwhile.</b> Load it again, then check your change and save it.
    </span>
    <button type="button" className="btn s" disabled={isPending} onClick={onReload}>
      Load again
    </button>
  </div>
);

const Replaced = ({ fields, onDismiss }: { fields: UserField[]; onDismiss: () => void }) => (
  <div className="strip warning" role="alert">
    <span className="grow">
      <b>Another administrator changed fields that you edited.</b>{" "}
      {new Intl.ListFormat("en").format(fields.map((field) => LABELS[field]))}{" "}
      {fields.length === 1 ? "now has the stored value" : "now have the stored values"}. Enter your change
      again if you still want it.
    </span>
    <button type="button" className="btn s" onClick={onDismiss}>
      Dismiss
    </button>
  </div>
);
