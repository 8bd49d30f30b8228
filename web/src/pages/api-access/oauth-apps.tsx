import "./api-access.css";
import type { NewOAuthClient, OAuthClient } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PlusIcon } from "../../components/icons.tsx";
import { Id } from "../../components/id.tsx";
import { Pager } from "../../components/pager.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { permissionLabel } from "../../lib/permissions.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { oauthClientsQuery } from "../../queries/api-access.ts";
import { CreateOauthApp } from "./create-oauth-app.tsx";
import { NewClientSecret } from "./new-client-secret.tsx";

const route = getRouteApi("/api-access/settings/oauth-apps");

const NEW_APP = { name: "Prompt sync", redirectUris: ["https://sync.example/callback"] };

type Action = { kind: "rotate" | "delete"; app: OAuthClient };

export default function OauthApps() {
  useTitle("OAuth apps");
  const { page, create = false } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useSuspenseQuery(oauthClientsQuery(page));
  const [action, setAction] = useState<Action | null>(null);
  const endAction = () => setAction(null);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <div>
          <h1 className="page-title">OAuth apps</h1>
          <p className="soft">
            With an app, other people let your program act for them, without giving you a key.
          </p>
        </div>
        <Link to="." search={{ page, create: true }} className="btn primary">
          <PlusIcon /> Create app
        </Link>
      </div>
      {data.data.length === 0 && page === undefined ? (
        <EmptyState
          title="No OAuth apps yet"
          curl={`curl "${location.origin}/.well-known/oauth-authorization-server"`}
          action={
            <Link to="." search={{ create: true }} className="btn">
              Create app
            </Link>
          }
        >
          An app has a client id and a secret. People sign in here, agree to what it may do, and come back to
          you.
        </EmptyState>
      ) : (
        <table className="keys">
          <thead>
            <tr>
              <th>Name</th>
              <th>Client id</th>
              <th>May request</th>
              <th>Sends people to</th>
              <th>Created</th>
              <th>
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.data.map((app) => (
              <AppRow key={app.clientId} app={app} onAction={setAction} />
            ))}
          </tbody>
        </table>
      )}
      <Pager page={page} hasMore={data.hasMore} />
      <section className="beam thin try flush">
        <h2 className="h3">How a program signs people in</h2>
        <p className="soft">
          Any OAuth 2.0 library works: authorization code with PKCE, with the addresses of{" "}
          <a className="link" href="/.well-known/oauth-authorization-server">
            the server's metadata
          </a>
          . The{" "}
          <a className="link" href="/docs/guides/authentication">
            guide
          </a>{" "}
          has every step. Programs that cannot hold a secret register themselves.
        </p>
        <ShowAsCode
          curl={curlOf("POST", "/oauth-clients", NEW_APP)}
          sdk={`const { clientSecret } = await stoa.oauth.clients.create(${JSON.stringify(NEW_APP)});`}
        />
      </section>
      {create && <CreateOauthApp onClose={() => void navigate({ search: { page }, replace: true })} />}
      {action?.kind === "rotate" && <RotateSecret app={action.app} onClose={endAction} />}
      {action?.kind === "delete" && <DeleteApp app={action.app} onClose={endAction} />}
    </main>
  );
}

function AppRow({ app, onAction }: { app: OAuthClient; onAction: (action: Action) => void }) {
  const { clientId, name, scopes, redirectUris, grantTypes, createdAt } = app;
  return (
    <tr>
      <td className="name">
        <b dir="auto">{name}</b>
      </td>
      <td>
        <Id id={clientId} />
      </td>
      <td>
        <span className="scopes">
          {scopes.map((scope) => (
            <span className="tag" key={scope} title={scope}>
              {permissionLabel(scope)}
            </span>
          ))}
        </span>
      </td>
      <td className="uris">
        {redirectUris.map((uri) => (
          <code key={uri}>{uri}</code>
        ))}
        {grantTypes.includes("client_credentials") && (
          <span className="soft sm">also acts as you, by its secret</span>
        )}
      </td>
      <td className="soft">
        <Time iso={createdAt} isDay />
      </td>
      <td className="r">
        <RowMenu
          label={`More for ${name}`}
          actions={[
            { label: "New secret", onSelect: () => onAction({ kind: "rotate", app }) },
            { label: "Delete app", isDestructive: true, onSelect: () => onAction({ kind: "delete", app }) },
          ]}
        />
      </td>
    </tr>
  );
}

interface AppActionProps {
  app: OAuthClient;
  onClose: () => void;
}

function RotateSecret({ app: { clientId, name }, onClose }: AppActionProps) {
  const [renewed, setRenewed] = useState<NewOAuthClient | null>(null);
  const rotate = useAction({
    run: async (_, idempotencyKey) => await stoa.oauth.clients.rotateSecret(clientId, { idempotencyKey }),
    onSuccess: setRenewed,
  });
  if (renewed) return <NewClientSecret title="The new secret is active" app={renewed} onDone={onClose} />;
  return (
    <ConfirmDialog
      title={`Create a new secret for “${name}”?`}
      action="Create new secret"
      keep="Keep the old one"
      isPending={rotate.isPending}
      onConfirm={() => rotate.start()}
      onClose={onClose}
    >
      <p className="soft">
        The old secret ends at once. Tokens that people already granted stay valid; your program needs the new
        secret for its next sign-in.
      </p>
      <FormError error={rotate.error} title="The secret was not changed" />
    </ConfirmDialog>
  );
}

function DeleteApp({ app: { clientId, name }, onClose }: AppActionProps) {
  const client = useQueryClient();
  const remove = useAction({
    run: async () => await stoa.oauth.clients.delete(clientId),
    onSuccess: () => {
      onClose();
      showToast(`The app ${name} is deleted`);
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["oauth-clients"] }),
  });
  return (
    <ConfirmDialog
      title={`Delete “${name}”?`}
      action="Delete app"
      keep="Keep it"
      typedName={name}
      isPending={remove.isPending}
      onConfirm={() => remove.start()}
      onClose={onClose}
    >
      <p className="soft">
        It is disconnected from each of its users at once: all its grants and tokens end. This cannot be
        undone.
      </p>
      <FormError error={remove.error} title="The app was not deleted" />
    </ConfirmDialog>
  );
}
