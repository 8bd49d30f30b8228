import type { Session } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { FormError } from "../../components/form-error.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { describeUserAgent } from "../../lib/user-agent.ts";
import { sessionsQuery } from "../../queries/account.ts";

const route = getRouteApi("/account/security");

const VIA: Record<string, string> = {
  "magic-link": "emailed link",
  password: "password",
  github: "GitHub",
  google: "Google",
  operator: "the operator",
};

export function Sessions() {
  const { page } = route.useSearch();
  const { data } = useSuspenseQuery(sessionsQuery(page));
  const [isEndingOthers, setEndingOthers] = useState(false);
  const others = data.meta.total - 1;
  return (
    <section className="beam thin">
      <div className="row between wrap">
        <h2 className="h3">Sessions</h2>
        <button type="button" className="btn s" disabled={others < 1} onClick={() => setEndingOthers(true)}>
          End all others
        </button>
      </div>
      <ul className="rows">
        {data.data.map((session) => (
          <SessionRow key={session.id} session={session} />
        ))}
      </ul>
      <Pager page={page} hasMore={data.hasMore} />
      <div className="flush">
        <ShowAsCode
          curl={curlOf("GET", "/account/sessions")}
          sdk="for await (const session of stoa.account.sessions.list()) console.log(session.ip, session.lastSeenAt);"
        />
      </div>
      {isEndingOthers && <EndOthers others={others} onClose={() => setEndingOthers(false)} />}
    </section>
  );
}

function SessionRow({ session }: { session: Session }) {
  const { id, via, secondFactor, ip, userAgent, createdAt, lastSeenAt, current } = session;
  const client = useQueryClient();
  const end = useAction({
    run: async () => await stoa.account.sessions.delete(id),
    onSuccess: () => {
      // The pages of this account are no longer this browser's.
      if (current) location.assign("/");
      else return client.invalidateQueries({ queryKey: ["sessions"] });
    },
    onError: (error) => showError("The session did not end", error),
  });
  return (
    <li className={end.isPending ? "faint" : ""}>
      <div className="grow">
        <b title={userAgent ?? undefined}>{describeUserAgent(userAgent)}</b>{" "}
        {current && <span className="tag accent">This one</span>}
        <p className="sm soft">
          {ip} · by {VIA[via] ?? via}
          {secondFactor && " and a second factor"} · signed in <Time iso={createdAt} /> · last seen{" "}
          <Time iso={lastSeenAt} />
        </p>
      </div>
      <button
        type="button"
        className="btn s"
        disabled={end.isPending}
        aria-label={current ? "Sign out" : `End the session of ${describeUserAgent(userAgent)} at ${ip}`}
        onClick={() => end.start()}
      >
        {current ? "Sign out" : "End"}
      </button>
    </li>
  );
}

function EndOthers({ others, onClose }: { others: number; onClose: () => void }) {
  const client = useQueryClient();
  const end = useAction({
    run: async () => await stoa.account.sessions.deleteOthers(),
    onSuccess: async ({ ended }) => {
      await client.invalidateQueries({ queryKey: ["sessions"] });
      onClose();
      showToast(`${ended} ${ended === 1 ? "session" : "sessions"} ended`);
    },
  });
  return (
    <ConfirmDialog
      title="End all other sessions?"
      action={others === 1 ? "End 1 session" : `End ${others} sessions`}
      keep="Keep them"
      isPending={end.isPending}
      onConfirm={() => end.start()}
      onClose={onClose}
    >
      <p className="soft">
        Every browser and program but this one has to sign in again. API keys are not affected.
      </p>
      <FormError error={end.error} title="The sessions did not end" />
    </ConfirmDialog>
  );
}
