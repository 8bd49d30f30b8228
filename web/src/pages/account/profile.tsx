import "./account.css";
import type { Account, UpdateAccount } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { type FormEvent, useMemo, useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { CloseIcon } from "../../components/icons.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { countries } from "../../lib/countries.ts";
import { curlOf } from "../../lib/curl.ts";
import { hasDraft, takeDraft } from "../../lib/drafts.ts";
import { statusOf } from "../../lib/errors.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { profileQuery } from "../../queries/account.ts";
import { accountQuery } from "../../session.ts";
import { AvatarField } from "./avatar-field.tsx";
import { type ProfileConflict, ProfileConflictStrip } from "./profile-conflict.tsx";
import { changesOf, type Profile, toProfile } from "./profile-fields.ts";

const DRAFT = "profile";
const MAX_LINKS = 5;

interface Base {
  account: Account;
  etag: string;
}

export default function ProfilePage() {
  useTitle("Profile");
  const { data } = useSuspenseQuery(profileQuery);
  return (
    <main className="work" id="content">
      <h1 className="page-title">Profile</h1>
      <p className="soft">What others see beside your products and reviews, and where you buy from.</p>
      <ProfileForm loaded={data} />
    </main>
  );
}

function ProfileForm({ loaded }: { loaded: Base }) {
  const client = useQueryClient();
  /** What the person began with. A later state is taken over only by their choice. */
  const [base, setBase] = useState(loaded);
  const [profile, setProfile] = useState<Profile>(() => ({
    ...toProfile(loaded.account),
    ...takeDraft<Partial<Profile>>(DRAFT),
  }));
  const [conflict, setConflict] = useState<ProfileConflict | null>(null);
  const changes = changesOf(toProfile(base.account), profile);
  const isChanged = Object.keys(changes).length > 0;

  const begin = (next: Base) => {
    setBase(next);
    client.setQueryData(profileQuery.queryKey, next);
    client.setQueryData(accountQuery.queryKey, next.account);
  };
  const fetchPresent = () => client.fetchQuery(profileQuery);
  const save = useAction({
    run: async (ifMatch: string) => {
      const { data, headers } = await stoa.account
        .update(toRequest(changes), { headers: { "if-match": ifMatch } })
        .withResponse();
      return { account: data, etag: headers.get("etag") ?? "" };
    },
    onSuccess: (saved) => {
      begin(saved);
      setProfile(toProfile(saved.account));
      setConflict(null);
      showToast("Profile saved");
    },
    onError: async (error) => {
      if (statusOf(error) === 412) setConflict({ theirs: await fetchPresent() });
    },
  });
  /** The avatar is stored at once, which changes the ETag but no text. */
  const onAvatarChange = async () => {
    const present = await fetchPresent();
    const texts = JSON.stringify(toProfile(base.account));
    if (JSON.stringify(toProfile(present.account)) === texts) begin(present);
    else client.setQueryData(accountQuery.queryKey, present.account);
  };
  const takeTheirs = (theirs: Base) => {
    begin(theirs);
    setProfile(toProfile(theirs.account));
    setConflict(null);
    save.reset();
  };
  const blocker = useBlocker({
    shouldBlockFn: () => isChanged,
    enableBeforeUnload: () => isChanged && !hasDraft(DRAFT),
    withResolver: true,
  });
  const errors = statusOf(save.error) === 412 ? {} : fieldErrors(save.error);
  const change = (part: Partial<Profile>) => setProfile({ ...profile, ...part });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!save.isPending && isChanged) save.start(base.etag);
  };
  return (
    <>
      <section className="beam thin stack">
        <h2 className="h3">Picture</h2>
        <AvatarField account={base.account} onChange={onAvatarChange} />
      </section>
      <form className="beam thin" onSubmit={submit} noValidate>
        <h2 className="h3">Public profile and country</h2>
        <div className="stack form narrow-form">
          {statusOf(save.error) !== 412 && (
            <FormError
              error={save.error}
              title="The profile was not saved"
              draft={{ name: DRAFT, value: changes }}
            />
          )}
          <Field label="Name" error={errors["name"]}>
            {(control) => (
              <input
                {...control}
                className="input"
                autoComplete="name"
                dir="auto"
                maxLength={100}
                value={profile.name}
                onChange={({ target }) => change({ name: target.value })}
              />
            )}
          </Field>
          <Handle
            account={base.account}
            value={profile.handle}
            error={errors["handle"]}
            onChange={(handle) => change({ handle })}
          />
          <Field
            label="About you"
            hint="Shown on your public page. At most 2,000 characters."
            error={errors["bio"]}
          >
            {(control) => (
              <textarea
                {...control}
                className="input"
                rows={5}
                dir="auto"
                maxLength={2000}
                value={profile.bio}
                onChange={({ target }) => change({ bio: target.value })}
              />
            )}
          </Field>
          <Links links={profile.links} errors={errors} onChange={(links) => change({ links })} />
          <Country
            value={profile.country}
            error={errors["country"]}
            onChange={(country) => change({ country })}
          />
          <p className="field">
            <span className="m">Email address</span>
            <span dir="auto">{base.account.email}</span>
          </p>
          <div className="flush">
            <ShowAsCode
              curl={curlOf("PATCH", "/account", isChanged ? toRequest(changes) : { bio: "…" })}
              sdk={`await stoa.account.update(${JSON.stringify(isChanged ? toRequest(changes) : { bio: "…" })});`}
            />
          </div>
          {conflict && (
            <ProfileConflictStrip
              mine={changes}
              before={toProfile(base.account)}
              theirs={toProfile(conflict.theirs.account)}
              isPending={save.isPending}
              onKeepMine={() => save.start(conflict.theirs.etag)}
              onTakeTheirs={() => takeTheirs(conflict.theirs)}
            />
          )}
        </div>
        <div className={isChanged ? "row wrap save-bar changed" : "row wrap save-bar"}>
          <button
            type="submit"
            className="btn primary"
            disabled={!isChanged || save.isPending || conflict !== null}
          >
            Save changes
          </button>
          <button
            type="button"
            className="btn"
            disabled={!isChanged || save.isPending}
            onClick={() => {
              setProfile(toProfile(base.account));
              save.reset();
              setConflict(null);
            }}
          >
            Discard changes
          </button>
        </div>
      </form>
      {blocker.status === "blocked" && (
        <ConfirmDialog
          title="Leave without saving?"
          action="Leave"
          keep="Stay here"
          onConfirm={blocker.proceed}
          onClose={blocker.reset}
        >
          <p className="soft">Your changes to {Object.keys(changes).join(", ")} are not saved.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** Empty rows of links are no links. */
const toRequest = ({ links, country, handle, ...texts }: Partial<Profile>): UpdateAccount => ({
  ...texts,
  ...(handle !== undefined && { handle }),
  ...(country !== undefined && { country: country === "" ? null : country }),
  ...(links && {
    links: links
      .filter(({ url, label }) => url.trim() !== "" || label.trim() !== "")
      .map(({ label, url }) => ({ url, label: label.trim() === "" ? null : label })),
  }),
});

interface HandleProps {
  account: Account;
  value: string;
  error: string | undefined;
  onChange: (handle: string) => void;
}

function Handle({ account, value, error, onChange }: HandleProps) {
  const address = `${location.host}/u/`;
  if (account.handle !== null)
    return (
      <p className="field">
        <span className="m">Public page</span>
        <a className="link" href={`/u/${account.handle}`}>
          {address}
          {account.handle}
        </a>
      </p>
    );
  return (
    <Field
      label="Handle"
      hint={`Your page is ${address}${value.toLowerCase() || "…"} You choose the handle once: it cannot be changed later.`}
      error={error}
    >
      {(control) => (
        <input
          {...control}
          className="input"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={30}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

interface LinksProps {
  links: Profile["links"];
  errors: Record<string, string>;
  onChange: (links: Profile["links"]) => void;
}

function Links({ links, errors, onChange }: LinksProps) {
  const change = (index: number, part: Partial<Profile["links"][number]>) =>
    onChange(links.map((link, at) => (at === index ? { ...link, ...part } : link)));
  return (
    <fieldset className="plain stack">
      <legend className="m">Links</legend>
      {links.map((link, index) => {
        const error = errors[`links[${index}].url`] ?? errors[`links[${index}].label`];
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a link has no id, and rows are only added at the end
          <div key={index} className="field">
            <div className="profile-link">
              <input
                className="input"
                aria-label={`Text of link ${index + 1}`}
                placeholder="Text"
                dir="auto"
                maxLength={60}
                value={link.label}
                onChange={({ target }) => change(index, { label: target.value })}
              />
              <input
                className="input"
                aria-label={`Address of link ${index + 1}`}
                aria-invalid={error === undefined ? undefined : true}
                placeholder="https://"
                type="url"
                maxLength={500}
                value={link.url}
                onChange={({ target }) => change(index, { url: target.value })}
              />
              <button
                type="button"
                className="iconb"
                aria-label={`Remove link ${index + 1}`}
                onClick={() => onChange(links.filter((_, at) => at !== index))}
              >
                <CloseIcon />
              </button>
            </div>
            {error !== undefined && <p className="ferr">{error}</p>}
          </div>
        );
      })}
      {links.length < MAX_LINKS && (
        <div>
          <button
            type="button"
            className="btn s"
            onClick={() => onChange([...links, { label: "", url: "" }])}
          >
            Add a link
          </button>
        </div>
      )}
    </fieldset>
  );
}

interface CountryProps {
  value: string;
  error: string | undefined;
  onChange: (country: string) => void;
}

function Country({ value, error, onChange }: CountryProps) {
  const options = useMemo(countries, []);
  return (
    <Field
      label="Country"
      hint="Where you buy from. It decides about taxes; orders keep theirs."
      error={error}
    >
      {(control) => (
        <select
          {...control}
          className="input"
          autoComplete="country"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        >
          <option value="">Not set</option>
          {options.map(({ code, name }) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
