import "./webhooks.css";
import type { NewWebhookEndpoint, WebhookEndpoint } from "@stoa/sdk";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PlusIcon } from "../../components/icons.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { Time } from "../../components/time.tsx";
import { EndpointStatus } from "../../components/webhooks/endpoint-status.tsx";
import { WebhookSecret } from "../../components/webhooks/webhook-secret.tsx";
import { initialData } from "../../initial-data.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatPercent } from "../../lib/format.ts";
import { useCreateWebhook } from "../../lib/use-create-webhook.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useTitle } from "../../lib/use-title.ts";
import { nameOf, newInboxUrl, successShare } from "../../lib/webhooks.ts";
import { webhookStatsQuery, webhooksQuery } from "../../queries/webhooks.ts";

const LIST_CODE = {
  curl: curlOf("GET", "/webhooks"),
  sdk: "const endpoints = await stoa.webhooks.list().toArray();",
};

export default function Webhooks() {
  useTitle("Webhooks");
  useListKeys();
  const { data } = useSuspenseQuery(webhooksQuery);
  const create = useCreateWebhook();
  const isTest = initialData.environment === "test";
  const useInbox = () => create.start({ url: newInboxUrl(), description: "", eventTypes: null });
  const inboxButton = (className: string) =>
    isTest && (
      <button type="button" className={className} disabled={create.isPending} onClick={useInbox}>
        Use the built-in inbox
      </button>
    );
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Webhooks</h1>
        {data.data.length > 0 && (
          <div className="row wrap">
            <ShowAsCode {...LIST_CODE} />
            {inboxButton("btn")}
            <NewLink />
          </div>
        )}
      </div>
      <p className="soft sm intro">
        Stoa sends your account's events to these addresses, signs each, and tries again for two days if one
        does not answer.
      </p>
      <FormError error={create.error} title="The webhook was not created" />
      {data.data.length === 0 ? (
        <div className="beam">
          <EmptyState
            title="No webhooks yet"
            action={
              <>
                {inboxButton("btn primary")}
                <NewLink isPrimary={!isTest} />
              </>
            }
            curl={curlOf("POST", "/webhooks", { url: "https://example.com/hooks" })}
          >
            Send events to your server.{isTest && " The built-in inbox shows one within seconds."}
          </EmptyState>
        </div>
      ) : (
        <EndpointTable endpoints={data.data} />
      )}
      {create.data && <NewSecret created={create.data} />}
    </main>
  );
}

const NewLink = ({ isPrimary = true }: { isPrimary?: boolean }) => (
  <Link to="/settings/webhooks/new" className={isPrimary ? "btn primary" : "btn"}>
    <PlusIcon /> New webhook
  </Link>
);

function NewSecret({ created }: { created: NewWebhookEndpoint }) {
  const navigate = useNavigate();
  const onDone = () =>
    void navigate({ to: "/settings/webhooks/$webhookId", params: { webhookId: created.id } });
  return <WebhookSecret secret={created.secret} onDone={onDone} />;
}

const EndpointTable = ({ endpoints }: { endpoints: WebhookEndpoint[] }) => (
  <table className="rows-table beam-table">
    <thead>
      <tr>
        <th>Endpoint</th>
        <th>Status</th>
        <th className="r">Succeeded, 24 h</th>
        <th className="r desk-cell">Waiting</th>
        <th className="desk-cell">Events</th>
        <th className="r desk-cell">Created</th>
      </tr>
    </thead>
    <tbody>
      {endpoints.map((endpoint) => (
        <EndpointRow key={endpoint.id} endpoint={endpoint} />
      ))}
    </tbody>
  </table>
);

function EndpointRow({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { data: stats } = useQuery(webhookStatsQuery(endpoint.id));
  const { pending = 0, retrying = 0 } = stats?.deliveries ?? {};
  return (
    <tr>
      <td className="name">
        <Link
          to="/settings/webhooks/$webhookId"
          params={{ webhookId: endpoint.id }}
          className="row-link m"
          data-row
          dir="auto"
        >
          {nameOf(endpoint)}
        </Link>
        <code className="soft url">{endpoint.url}</code>
      </td>
      <td>
        <EndpointStatus endpoint={endpoint} failingSince={stats?.failingSince ?? null} />
      </td>
      <td className="r">{stats ? <Rate rate={successShare(stats)} /> : "…"}</td>
      <td className="r desk-cell soft">{stats ? formatCount(pending + retrying) : "…"}</td>
      <td className="desk-cell soft">{endpoint.eventTypes === null ? "All" : endpoint.eventTypes.length}</td>
      <td className="r desk-cell soft">
        <Time iso={endpoint.createdAt} />
      </td>
    </tr>
  );
}

const Rate = ({ rate }: { rate: number | null }) =>
  rate === null ? <span className="soft">none yet</span> : <span className="m">{formatPercent(rate)}</span>;
