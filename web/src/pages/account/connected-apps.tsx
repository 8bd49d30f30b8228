import "./account.css";
import type { Grant } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { permissionLabel } from "../../lib/permissions.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { grantsQuery } from "../../queries/account.ts";

const route = getRouteApi("/account/connected-apps");

export default function ConnectedApps() {
  useTitle("Connected apps");
  const { page } = route.useSearch();
  const { data } = useSuspenseQuery(grantsQuery(page));
  const [revoking, setRevoking] = useState<Grant | null>(null);
  return (
    <main className="work" id="content">
      <h1 className="page-title">Connected apps</h1>
      <p className="soft">Programs that act for you because you agreed. Each does only what is listed.</p>
      <section className="beam stack">
        {data.data.length === 0 && page === undefined ? (
          <EmptyState
            title="No connected apps"
            action={
              <a className="btn" href="/docs/guides/mcp">
                Connect an assistant
              </a>
            }
          >
            When you sign in to another program with this account and agree to what it may do, it is listed
            here.
          </EmptyState>
        ) : (
          <ul className="rows">
            {data.data.map((grant) => (
              <GrantRow key={grant.id} grant={grant} onRevoke={() => setRevoking(grant)} />
            ))}
          </ul>
        )}
        <Pager page={page} hasMore={data.hasMore} />
        <div className="flush">
          <ShowAsCode
            curl={curlOf("GET", "/account/grants")}
            sdk="for await (const grant of stoa.oauth.grants.list()) console.log(grant.client.name, grant.scopes);"
          />
        </div>
      </section>
      {revoking && <RevokeGrant grant={revoking} onClose={() => setRevoking(null)} />}
    </main>
  );
}

function GrantRow({ grant, onRevoke }: { grant: Grant; onRevoke: () => void }) {
  const { client, scopes, createdAt, lastUsedAt, expiresAt } = grant;
  return (
    <li>
      <div className="grow stack">
        <div>
          <b dir="auto">{client.name}</b> <span className="soft">{client.redirectHosts.join(", ")}</span>
        </div>
        <div className="row wrap">
          {scopes.map((scope) => (
            <span className="tag" key={scope} title={scope}>
              {permissionLabel(scope)}
            </span>
          ))}
        </div>
        <p className="sm soft">
          Connected <Time iso={createdAt} isDay /> ·{" "}
          {lastUsedAt ? (
            <>
              last used <Time iso={lastUsedAt} />
            </>
          ) : (
            "never used"
          )}{" "}
          · ends <Time iso={expiresAt} isDay />
        </p>
      </div>
      <button type="button" className="btn s" aria-label={`Disconnect ${client.name}`} onClick={onRevoke}>
        Disconnect
      </button>
    </li>
  );
}

function RevokeGrant({ grant: { id, client }, onClose }: { grant: Grant; onClose: () => void }) {
  const queryClient = useQueryClient();
  const revoke = useAction({
    run: async () => await stoa.oauth.grants.revoke(id),
    onSuccess: () => {
      onClose();
      showToast(`${client.name} is disconnected`);
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: ["grants"] }),
  });
  return (
    <ConfirmDialog
      title={`Disconnect “${client.name}”?`}
      action="Disconnect"
      keep="Keep it"
      isPending={revoke.isPending}
      onConfirm={() => revoke.start()}
      onClose={onClose}
    >
      <p className="soft">Its tokens end at once. You can connect it again from there.</p>
      <FormError error={revoke.error} title="It is still connected" />
    </ConfirmDialog>
  );
}
