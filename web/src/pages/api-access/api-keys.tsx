import "./api-access.css";
import type { ApiKey } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PlusIcon, RotateIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatMoment } from "../../lib/format.ts";
import { PERMISSIONS, PRESETS, permissionLabel } from "../../lib/permissions.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { apiKeysQuery } from "../../queries/api-access.ts";
import { CallbackSecret } from "./callback-secret.tsx";
import { CreateKey } from "./create-key.tsx";
import { RenameKey } from "./rename-key.tsx";
import { RotateKey } from "./rotate-key.tsx";

const route = getRouteApi("/api-access/settings/api");

type Action = { kind: "rename" | "rotate" | "revoke"; apiKey: ApiKey };

export default function ApiKeys() {
  useTitle("API keys");
  const { page, create = false } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useSuspenseQuery(apiKeysQuery(page));
  const [action, setAction] = useState<Action | null>(null);
  const rows = withoutReplaced(data.data);
  const endAction = () => setAction(null);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <div>
          <h1 className="page-title">API keys</h1>
          <p className="soft">A key acts as you. It does only what it allows, and it is shown once.</p>
        </div>
        <Link to="." search={{ page, create: true }} className="btn primary">
          <PlusIcon /> Create key
        </Link>
      </div>
      {rows.length === 0 && page === undefined ? (
        <EmptyState
          title="No API keys yet"
          curl={TRY_A_KEY}
          action={
            <Link to="." search={{ create: true }} className="btn">
              Create key
            </Link>
          }
        >
          Programs use a key to call the API as you. Choose what it may do, and when it ends.
        </EmptyState>
      ) : (
        <table className="keys">
          <thead>
            <tr>
              <th>Name</th>
              <th>Key</th>
              <th>Allows</th>
              <th>Last used</th>
              <th>Ends</th>
              <th>
                <span className="hidden">Actions</span>
              </th>
            </tr>
          </thead>
          {rows.map(({ apiKey, replaced }) => (
            <KeyRow key={apiKey.id} apiKey={apiKey} replaced={replaced} onAction={setAction} />
          ))}
        </table>
      )}
      <Pager page={page} hasMore={data.hasMore} />
      {rows.length > 0 && (
        <section className="beam thin try flush">
          <div className="row between">
            <h2 className="h3">Try a key</h2>
            <CopyButton text={TRY_A_KEY} />
          </div>
          <pre className="codeblock wrap">{TRY_A_KEY}</pre>
          <ShowAsCode
            curl={curlOf("POST", "/api-keys", NEW_KEY)}
            sdk={`const { key } = await stoa.apiKeys.create(${JSON.stringify(NEW_KEY)});`}
          />
        </section>
      )}
      <CallbackSecret />
      {create && <CreateKey onClose={() => void navigate({ search: { page }, replace: true })} />}
      {action?.kind === "rename" && <RenameKey apiKey={action.apiKey} onClose={endAction} />}
      {action?.kind === "rotate" && <RotateKey apiKey={action.apiKey} onClose={endAction} />}
      {action?.kind === "revoke" && <RevokeKey apiKey={action.apiKey} onClose={endAction} />}
    </main>
  );
}

const NEW_KEY = { name: "invoice-sync", permissions: { "products:read": true, "purchases:read": true } };
const SOON_MS = 7 * 86_400_000;
const TRY_A_KEY = curlOf("GET", "/account");

interface Row {
  apiKey: ApiKey;
  /** The old keys of the same name that still work. */
  replaced: ApiKey[];
}

/** A replaced key stands below the one that follows it: the newest of its name. Keys are listed newest first; those that ended stand last. */
function withoutReplaced(keys: ApiKey[]): Row[] {
  const successorOf = (key: ApiKey) =>
    key.status === "replaced"
      ? keys.slice(0, keys.indexOf(key)).find(({ name, status }) => name === key.name && status === "active")
      : undefined;
  return keys
    .filter((key) => successorOf(key) === undefined)
    .map((apiKey) => ({ apiKey, replaced: keys.filter((key) => successorOf(key) === apiKey) }))
    .sort((a, b) => Number(works(b.apiKey)) - Number(works(a.apiKey)));
}

const works = ({ status }: ApiKey): boolean => status === "active" || status === "replaced";

interface KeyRowProps extends Row {
  onAction: (action: Action) => void;
}

function KeyRow({ apiKey, replaced, onAction }: KeyRowProps) {
  const { name, prefix, status, lastUsedAt } = apiKey;
  return (
    <tbody>
      <tr className={`${works(apiKey) ? "" : "off"} ${replaced.length > 0 ? "rotated" : ""}`}>
        <td className="name">
          <b dir="auto">{name}</b>
        </td>
        <td>
          <code>{prefix}…</code>
        </td>
        <td>
          <Allows apiKey={apiKey} />
        </td>
        <td>
          <span className="phone soft">Last used: </span>
          {lastUsedAt === null ? <span className="soft">never</span> : <Time iso={lastUsedAt} />}
        </td>
        <td className="soft">
          <span className="phone">Ends: </span>
          <Ends apiKey={apiKey} />
        </td>
        <td className="r">
          {works(apiKey) && (
            <RowMenu
              label={`More for ${name}`}
              actions={[
                { label: "Rename key", onSelect: () => onAction({ kind: "rename", apiKey }) },
                {
                  label: "Rotate key",
                  isDisabled: status !== "active",
                  onSelect: () => onAction({ kind: "rotate", apiKey }),
                },
                {
                  label: "Revoke key",
                  isDestructive: true,
                  onSelect: () => onAction({ kind: "revoke", apiKey }),
                },
              ]}
            />
          )}
        </td>
      </tr>
      {replaced.map((old) => (
        <tr className="grace-row" key={old.id}>
          <td colSpan={6}>
            <div className="grace">
              <RotateIcon />
              <span>
                <b>Rotated.</b> The old key <code>{old.prefix}…</code> works until{" "}
                {formatMoment(old.expiresAt ?? "")}.{" "}
                {old.lastUsedAt === null ? (
                  "It was never used."
                ) : (
                  <>
                    Last used <Time iso={old.lastUsedAt} />.
                  </>
                )}
              </span>
              <button
                type="button"
                className="btn s"
                onClick={() => onAction({ kind: "revoke", apiKey: old })}
              >
                End it now
              </button>
            </div>
          </td>
        </tr>
      ))}
    </tbody>
  );
}

function Allows({ apiKey }: { apiKey: ApiKey }) {
  const granted = PERMISSIONS.filter(({ name }) => apiKey.permissions[name]);
  const preset = PRESETS.find(
    ({ permissions }) =>
      permissions.length === granted.length && granted.every(({ name }) => permissions.includes(name)),
  );
  if (preset?.label === "All") return <span className="tag">Everything</span>;
  return (
    <span className="scopes">
      {granted.length === 0 && <span className="tag">Nothing</span>}
      {granted.map(({ name }) => (
        <span className="tag" key={name} title={name}>
          {permissionLabel(name)}
        </span>
      ))}
    </span>
  );
}

function Ends({ apiKey: { status, expiresAt, revokedAt } }: { apiKey: ApiKey }) {
  if (status === "expired") return <StatusTag tone="bad">Expired</StatusTag>;
  if (status === "revoked")
    return (
      <>
        <StatusTag tone="bad">Revoked</StatusTag> {revokedAt && <Time iso={revokedAt} isDay />}
      </>
    );
  if (status === "replaced" && expiresAt)
    return <StatusTag tone="warning">Rotated, until {formatMoment(expiresAt)}</StatusTag>;
  if (expiresAt === null) return <>no end</>;
  if (new Date(expiresAt).getTime() - Date.now() < SOON_MS)
    return <StatusTag tone="warning">Soon, {formatMoment(expiresAt)}</StatusTag>;
  return <Time iso={expiresAt} isDay />;
}

function RevokeKey({
  apiKey: { id, name, prefix, lastUsedAt },
  onClose,
}: {
  apiKey: ApiKey;
  onClose: () => void;
}) {
  const client = useQueryClient();
  const revoke = useAction({
    run: async () => await stoa.apiKeys.revoke(id),
    onSuccess: () => {
      onClose();
      showToast(`The key ${prefix}… of ${name} ended`);
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["api-keys"] }),
  });
  return (
    <ConfirmDialog
      title={`Revoke “${name}”?`}
      action="Revoke key"
      keep="Keep it"
      isPending={revoke.isPending}
      onConfirm={() => revoke.start()}
      onClose={onClose}
    >
      <p className="soft">
        Programs that send <code>{prefix}…</code> are refused at once. This cannot be undone.{" "}
        {lastUsedAt === null ? (
          "The key was never used."
        ) : (
          <>
            It was last used <Time iso={lastUsedAt} />.
          </>
        )}
      </p>
      <FormError error={revoke.error} title="The key was not revoked" />
    </ConfirmDialog>
  );
}
