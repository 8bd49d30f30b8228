import "./account.css";
import type { NotificationPreferences } from "@stoa/sdk";
import { useMutation, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { showError } from "../../lib/toasts.ts";
import { useTitle } from "../../lib/use-title.ts";
import { preferencesQuery } from "../../queries/account.ts";
import { GROUPS } from "./notification-kinds.ts";

type Kinds = NotificationPreferences["kinds"];
type Kind = keyof Kinds;

export default function Preferences() {
  useTitle("Notifications");
  const { data } = useSuspenseQuery(preferencesQuery);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <div>
          <h1 className="page-title">Notifications</h1>
          <p className="soft">Everything is listed here in Stoa. Choose what also comes by email.</p>
        </div>
        <Link to="/notifications" className="btn">
          Show notifications
        </Link>
      </div>
      <div className="preference-groups">
        {groupsOf(data.kinds).map(({ title, kinds }) => (
          <section className="beam thin" key={title}>
            <table className="preferences">
              <thead>
                <tr>
                  <th>
                    <h2 className="h3">{title}</h2>
                  </th>
                  <th>Email</th>
                </tr>
              </thead>
              <tbody>
                {kinds.map(({ kind, label }) => (
                  <PreferenceRow key={kind} kind={kind} label={label} preference={data.kinds[kind]} />
                ))}
              </tbody>
            </table>
          </section>
        ))}
      </div>
      <section className="beam thin flush">
        <ShowAsCode
          curl={curlOf("PATCH", "/account/notifications", {
            kinds: { "payout.completed": { email: false } },
          })}
          sdk={
            'await stoa.account.notifications.update({ kinds: { "payout.completed": { email: false } } });'
          }
        />
      </section>
    </main>
  );
}

interface Group {
  title: string;
  kinds: { kind: Kind; label: string }[];
}

/** Kinds that the service has; those that this client does not know stand in a group of their own. */
function groupsOf(present: Kinds): Group[] {
  const known = new Set(GROUPS.flatMap(({ kinds }) => Object.keys(kinds)));
  const others = Object.keys(present).filter((kind) => !known.has(kind));
  const groups = [
    ...GROUPS,
    { title: "Others", kinds: Object.fromEntries(others.map((kind) => [kind, kind])) },
  ];
  return groups
    .map(({ title, kinds }) => ({
      title,
      kinds: Object.entries(kinds)
        .filter(([kind]) => kind in present)
        .map(([kind, label]) => ({ kind: kind as Kind, label })),
    }))
    .filter(({ kinds }) => kinds.length > 0);
}

interface PreferenceRowProps {
  kind: Kind;
  label: string;
  preference: Kinds[Kind];
}

function PreferenceRow({ kind, label, preference: { email, canChangeEmail } }: PreferenceRowProps) {
  const client = useQueryClient();
  // The box changes at once, and back if the service refuses.
  const [isWanted, want] = useState(email);
  const change = useMutation({
    mutationFn: async (email: boolean) =>
      await stoa.account.notifications.update({ kinds: { [kind]: { email } } }),
    // One after the other, so that the last click wins.
    scope: { id: "notification-preferences" },
    onSuccess: (saved) => client.setQueryData(preferencesQuery.queryKey, saved),
    onError: (error, email) => {
      want(!email);
      showError(`“${label}” did not change`, error);
    },
  });
  return (
    <tr>
      <td>{label}</td>
      <td>
        {canChangeEmail ? (
          <input
            type="checkbox"
            className="check"
            aria-label={`Email: ${label}`}
            checked={isWanted}
            onChange={({ target }) => {
              want(target.checked);
              change.mutate(target.checked);
            }}
          />
        ) : (
          <span className="sm soft">{email ? "always" : "–"}</span>
        )}
      </td>
    </tr>
  );
}
