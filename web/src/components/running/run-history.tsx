import type { ProductDetail } from "@stoa/sdk";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { executionsQuery } from "../../queries/running.ts";
import { EmptyState } from "../empty-state.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { Pager } from "../pager.tsx";
import { SkeletonRows } from "../skeleton.tsx";
import { RunTable } from "./run-table.tsx";
import { STATUS_FILTERS } from "./status-filters.ts";

const route = getRouteApi("/run/$productId");

const SHORT = 5;
const PER_PAGE = 25;
export const MOST_COMPARED = 4;

interface RunHistoryProps {
  product: ProductDetail;
  /** The last few, below an output. */
  isShort?: boolean;
  /** The run that is in view. */
  except?: string | undefined;
}

/** The runs of a product. Two to four of a prompt can be compared. */
export const RunHistory = (props: RunHistoryProps) =>
  props.isShort ? <EarlierRuns {...props} /> : <FullHistory {...props} />;

function EarlierRuns({ product, except }: RunHistoryProps) {
  const { data } = useQuery(executionsQuery({ productId: product.id, limit: SHORT }));
  const runs = data?.data.filter(({ id }) => id !== except) ?? [];
  if (runs.length === 0) return null;
  const newest = runs.find(({ status, type }) => status === "completed" && type === "PROMPT");
  return (
    <section className="hist beam thin">
      <div className="row between">
        <h2 className="h3">Earlier runs</h2>
        {except !== undefined && newest && (
          <Link
            to="."
            search={(old: object) => ({ ...old, tab: "compare" as const, runs: `${except},${newest.id}` })}
            className="link sm"
          >
            Compare side by side
          </Link>
        )}
      </div>
      <RunTable runs={runs} />
    </section>
  );
}

function FullHistory({ product }: RunHistoryProps) {
  const { page = 1, status } = route.useSearch();
  const navigate = route.useNavigate();
  const [chosen, choose] = useState<string[]>([]);
  const { data, error, refetch } = useQuery({
    ...executionsQuery({
      productId: product.id,
      limit: PER_PAGE,
      page,
      ...(status !== undefined && { status }),
    }),
    placeholderData: keepPreviousData,
  });
  const toggle = (id: string) =>
    choose((old) =>
      old.includes(id) ? old.filter((one) => one !== id) : [...old, id].slice(-MOST_COMPARED),
    );
  return (
    <section className="run-list">
      <div className="row wrap between">
        <h2>History</h2>
        <StatusFilter
          value={status}
          onChange={(next) => void navigate({ search: (old) => ({ ...old, status: next, page: undefined }) })}
        />
      </div>
      {product.type === "PROMPT" && (
        <p className="row wrap soft sm">
          Choose 2 to 4 runs to see them side by side.
          <Link
            to="."
            search={(old: object) => ({ ...old, tab: "compare" as const, runs: chosen.join(",") })}
            className="btn s"
            disabled={chosen.length < 2}
            aria-disabled={chosen.length < 2}
          >
            Compare {chosen.length > 0 && chosen.length}
          </Link>
        </p>
      )}
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows />}
      {data && data.data.length === 0 && (
        <EmptyState
          title={status === undefined ? "No runs yet" : `No ${status} runs`}
          action={
            <Link
              to="."
              search={(old: object) => ({ ...old, tab: undefined, status: undefined })}
              className="btn"
            >
              Run it
            </Link>
          }
        >
          Each run of this product shows here with its cost. Its texts are stored for 30 days.
        </EmptyState>
      )}
      {data && data.data.length > 0 && (
        <div className="beam rows run-rows">
          <RunTable runs={data.data} {...(product.type === "PROMPT" && { chosen, onChoose: toggle })} />
        </div>
      )}
      <Pager page={page} hasMore={data?.hasMore ?? false} />
    </section>
  );
}

export const StatusFilter = ({
  value,
  onChange,
}: {
  value: string | undefined;
  onChange: (status: (typeof STATUS_FILTERS)[number] | undefined) => void;
}) => (
  <label className="row sm soft">
    Status
    <select
      className="input status-filter"
      value={value ?? ""}
      onChange={(event) => onChange(STATUS_FILTERS.find((status) => status === event.target.value))}
    >
      <option value="">All</option>
      {STATUS_FILTERS.map((status) => (
        <option key={status} value={status}>
          {STATUS_WORDS[status]}
        </option>
      ))}
    </select>
  </label>
);

const STATUS_WORDS: Record<(typeof STATUS_FILTERS)[number], string> = {
  running: "Running",
  waiting: "Waiting for you",
  completed: "Completed",
  failed: "Failed",
  canceled: "Canceled",
};
