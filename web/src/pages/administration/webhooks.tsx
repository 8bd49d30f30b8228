import type { AdminWebhookEndpoint } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { PersonLink } from "../../components/administration/links.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import { allWebhooksQuery, parseWebhooksSearch, webhookFilters } from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/webhooks");

const OTHER_STATUSES = [
  ["enabled", "Enabled"],
  ["disabled", "Disabled"],
  ["all", "Any status"],
] as const;

export default function Webhooks() {
  const search = parseWebhooksSearch({ ...route.useSearch() });
  const change = useFilters();
  const { data, isFetching } = useListQuery(allWebhooksQuery(search));
  const isFailing = search.status === undefined;
  return (
    <AdminList
      title="Webhooks"
      intro="Endpoints of all accounts. The service disables one that fails for 5 days, and its owner gets an email before."
      code={listCode("/admin/webhooks", "admin.webhooks.list", webhookFilters(search))}
      filters={
        <>
          <FilterSelect
            label="Status"
            none="Failing"
            value={search.status}
            options={OTHER_STATUSES}
            onChange={(status) => change({ status })}
          />
          <FilterText
            label="Owner"
            placeholder="Owner's id"
            value={search.owner}
            onChange={(owner) => change({ owner })}
          />
        </>
      }
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["endpoint", "endpoints"]}
      empty={
        isFailing
          ? {
              title: "No endpoint fails",
              text: "An endpoint shows here from its first failed attempt until a success.",
            }
          : { title: "No such endpoints", text: "No endpoint fits the filters." }
      }
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Endpoint</th>
            <th>Status</th>
            <th>Owner</th>
            <th className="r">Given up</th>
            <th className="r">Failing since</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((endpoint) => (
            <EndpointRow key={endpoint.id} endpoint={endpoint} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

function StateTag({ endpoint: { enabled, failingSince } }: { endpoint: AdminWebhookEndpoint }) {
  if (!enabled) return <StatusTag tone="neutral">Disabled</StatusTag>;
  return failingSince === null ? (
    <StatusTag tone="good">Enabled</StatusTag>
  ) : (
    <StatusTag tone="bad">Failing</StatusTag>
  );
}

const EndpointRow = ({ endpoint }: { endpoint: AdminWebhookEndpoint }) => (
  <tr>
    <td className="main-cell">
      <code>{endpoint.url}</code>
      {endpoint.description && (
        <span className="second soft sm" dir="auto">
          {endpoint.description}
        </span>
      )}
    </td>
    <td>
      <StateTag endpoint={endpoint} />
    </td>
    <td className="wraps">
      <PersonLink person={endpoint.owner} />
    </td>
    <td className="r">{endpoint.failedDeliveries > 0 ? formatCount(endpoint.failedDeliveries) : ""}</td>
    <td className="r soft">{endpoint.failingSince && <Time iso={endpoint.failingSince} />}</td>
  </tr>
);
