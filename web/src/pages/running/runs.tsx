import "./run.css";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { Pager } from "../../components/pager.tsx";
import { StatusFilter } from "../../components/running/run-history.tsx";
import { RunTable } from "../../components/running/run-table.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { executionsQuery, runnableTitlesQuery, toRunFilters } from "../../queries/running.ts";

const route = getRouteApi("/runs");

/** The runs of all products. */
export default function Runs() {
  useTitle("Runs");
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useSuspenseQuery(executionsQuery(toRunFilters(search)));
  const { data: titles } = useSuspenseQuery(runnableTitlesQuery);
  const isFiltered = search.status !== undefined || search.type !== undefined;
  return (
    <main id="content" className="run-list">
      <div className="row wrap between">
        <h1 className="page-title">
          Runs {data.meta.total > 0 && <span className="faint num">{formatCount(data.meta.total)}</span>}
        </h1>
        <ShowAsCode
          curl={curlOf("GET", "/ai/executions")}
          sdk="for await (const run of stoa.ai.executions.list()) console.log(run.id, run.status);"
        />
      </div>
      <div className="row wrap">
        <nav className="seg s" aria-label="Type">
          <TypeLink>All</TypeLink>
          <TypeLink type="prompt">Prompts</TypeLink>
          <TypeLink type="workflow">Workflows</TypeLink>
        </nav>
        <StatusFilter
          value={search.status}
          onChange={(status) => void navigate({ search: (old) => ({ ...old, status, page: undefined }) })}
        />
      </div>
      {data.data.length > 0 && (
        <div className="beam rows run-rows">
          <RunTable runs={data.data} titles={titles} />
        </div>
      )}
      {data.data.length === 0 && (
        <EmptyState
          title={isFiltered ? "No such runs" : "No runs yet"}
          action={
            isFiltered ? (
              <Link to="/runs" className="btn">
                Show all runs
              </Link>
            ) : (
              <Link to="/search" className="btn">
                Find something to run
              </Link>
            )
          }
        >
          Every run shows here with its cost. Its texts are stored for 30 days.
        </EmptyState>
      )}
      <Pager page={search.page} hasMore={data.hasMore} />
    </main>
  );
}

const TypeLink = ({ type, children }: { type?: "prompt" | "workflow"; children: string }) => (
  <Link
    to="/runs"
    search={(old: object) => ({ ...old, type, page: undefined })}
    activeOptions={{ exact: true, includeSearch: true }}
  >
    {children}
  </Link>
);
