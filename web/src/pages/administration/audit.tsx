import { getRouteApi, Link } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { AuditEntries } from "../../components/administration/audit-entries.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { DayFilter } from "../../components/day-filter.tsx";
import { FilterText } from "../../components/filters.tsx";
import { listCode } from "../../lib/list-code.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import {
  type AuditSearch,
  auditFilters,
  auditQuery,
  parseAuditSearch,
} from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/audit");

export default function Audit() {
  const search = parseAuditSearch({ ...route.useSearch() });
  const { data, isFetching } = useListQuery(auditQuery(search));
  return (
    <AdminList
      title="Audit log"
      intro="What people and the service did that matters. Nobody can change or delete an entry."
      code={listCode("/admin/audit", "admin.audit.list", auditFilters(search))}
      filters={<Filters search={search} />}
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["entry", "entries"]}
      empty={{
        title: "No such entries",
        text: "No entry fits the filters.",
        action: (
          <Link to="/admin/audit" className="btn">
            Show all entries
          </Link>
        ),
      }}
    >
      <AuditEntries entries={data.data} />
    </AdminList>
  );
}

const TEXT_FILTERS = [
  ["action", "Action", "user.banned or user.*"],
  ["actor", "Acted", "Id of the account that acted"],
  ["target", "Target", "Id of the target"],
] as const;

function Filters({ search }: { search: AuditSearch }) {
  const change = useFilters();
  return (
    <>
      {TEXT_FILTERS.map(([name, label, placeholder]) => (
        <FilterText
          key={name}
          label={label}
          placeholder={placeholder}
          value={search[name]}
          onChange={(text) => change({ [name]: text })}
        />
      ))}
      <DayFilter label="From" value={search.from} max={search.to} onChange={(from) => change({ from })} />
      <DayFilter label="To" value={search.to} min={search.from} onChange={(to) => change({ to })} />
    </>
  );
}
