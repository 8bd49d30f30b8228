import type { AdminOAuthClient } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { PersonLink } from "../../components/administration/links.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { Id } from "../../components/id.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import { clientsQuery, parseClientsSearch } from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/oauth-clients");

export default function OAuthClients() {
  const search = parseClientsSearch({ ...route.useSearch() });
  const change = useFilters();
  const { data, isFetching } = useListQuery(clientsQuery(search));
  const isOwners = search.owner !== undefined && search.owner !== "none";
  return (
    <AdminList
      title="OAuth clients"
      intro="Apps that ask people for access to their accounts. An AI client can register itself; it then has no owner here."
      code={listCode("/admin/oauth-clients", "admin.oauthClients.list", { ...search })}
      filters={
        <>
          <FilterText
            label="Search clients"
            placeholder="Name or id"
            value={search.search}
            onChange={(text) => change({ search: text })}
          />
          <FilterSelect
            label="Owner"
            none="Any owner"
            value={search.owner}
            options={[
              ["none", "Registered themselves"],
              ...(isOwners ? [[search.owner ?? "", "One owner"] as const] : []),
            ]}
            onChange={(owner) => change({ owner })}
          />
        </>
      }
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["client", "clients"]}
      empty={{ title: "No such clients", text: "No OAuth client fits the search and the filters." }}
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Owner</th>
            <th className="wide-cell">Scopes</th>
            <th className="r">People</th>
            <th className="r">Created</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((client) => (
            <ClientRow key={client.clientId} client={client} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

const ClientRow = ({ client }: { client: AdminOAuthClient }) => (
  <tr>
    <td className="main-cell">
      <b className="m" dir="auto">
        {client.name}
      </b>
      <span className="second">
        <Id id={client.clientId} />
      </span>
      {client.redirectUris.map((uri) => (
        <code key={uri} className="second soft">
          {uri}
        </code>
      ))}
    </td>
    <td className="wraps">
      {client.owner ? (
        <PersonLink person={client.owner} />
      ) : (
        <span className="soft">
          registered itself{client.registeredFrom && ` from ${client.registeredFrom}`}
        </span>
      )}
    </td>
    <td className="wide-cell wraps soft sm">{client.scopes.join(", ")}</td>
    <td className="r">{formatCount(client.grants)}</td>
    <td className="r soft">
      <Time iso={client.createdAt} />
    </td>
  </tr>
);
