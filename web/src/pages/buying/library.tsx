import "./library.css";
import type { Execution, Purchase } from "@stoa/sdk";
import { useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Cover } from "../../components/cover.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ReceiptIcon } from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { runStatus } from "../../lib/runs.ts";
import { useTitle } from "../../lib/use-title.ts";
import { libraryQuery, recentRunsQuery } from "../../queries/buying.ts";
import { LibraryFilters, NoMatches } from "./library-filters.tsx";
import {
  costOf,
  filterAndSort,
  lastRunByProduct,
  matchesFilter,
  ownedProducts,
  useDetails,
} from "./library-items.ts";
import { LibraryRows } from "./library-rows.tsx";

const route = getRouteApi("/library");

const ROWS = 20;

export default function Library() {
  useTitle("Library");
  const search = route.useSearch();
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage, error } =
    useSuspenseInfiniteQuery(libraryQuery);
  const { data: runs } = useSuspenseQuery(recentRunsQuery);
  const purchases = useMemo(() => ownedProducts(data.pages.flatMap((page) => page.data)), [data]);
  const [shownRows, setShownRows] = useState(ROWS);
  const lastRuns = useMemo(() => lastRunByProduct(runs.data), [runs]);
  const chosen = filterAndSort(purchases, search, lastRuns);
  const needsAll = search.show === "updates" || search.show === "refundable";
  const wanted = needsAll ? chosen : chosen.slice(0, shownRows);
  const { details, isLoading, error: detailError, retry } = useDetails(wanted);
  const items = wanted
    .map((purchase) => ({
      purchase,
      detail: details.get(purchase.orderId),
      lastRun: lastRuns.get(purchase.product.id),
    }))
    .filter(({ detail }) => !needsAll || (detail !== undefined && matchesFilter(detail, search.show)));
  const shown = items.slice(0, shownRows);
  const total = needsAll ? items.length : chosen.length;
  if (purchases.length === 0 && !hasNextPage) return <EmptyLibrary />;
  return (
    <main className="library" id="content">
      <Head />
      <RecentRuns runs={runs.data} purchases={purchases} />
      <LibraryFilters purchases={purchases} isPart={hasNextPage} />
      {shown.length === 0 ? (
        <NoMatches isLoading={isLoading} />
      ) : (
        <LibraryRows items={shown} allRunsKnown={!runs.hasMore} />
      )}
      {error && <ErrorStrip error={error} onRetry={() => void fetchNextPage()} />}
      {detailError && <ErrorStrip error={detailError} onRetry={retry} />}
      <p className="sm soft row wrap" role="status">
        {shown.length < total && (
          <>
            {formatCount(shown.length)} of {formatCount(total)}
            {hasNextPage ? "+" : ""} shown.{" "}
            <button type="button" className="link plain" onClick={() => setShownRows(shownRows + ROWS)}>
              Show {formatCount(Math.min(ROWS, total - shown.length))} more
            </button>
          </>
        )}
        {shown.length >= total && hasNextPage && (
          <button
            type="button"
            className="btn"
            disabled={isFetchingNextPage}
            onClick={() => {
              setShownRows(shownRows + ROWS);
              void fetchNextPage();
            }}
          >
            {isFetchingNextPage ? "Loading" : "Show older purchases"}
          </button>
        )}
      </p>
    </main>
  );
}

const Head = () => (
  <div className="row between wrap">
    <h1 className="title">Library</h1>
    <Link to="/orders" className="btn">
      <ReceiptIcon /> Orders and receipts
    </Link>
  </div>
);

function EmptyLibrary() {
  return (
    <main className="library" id="content">
      <Head />
      <div className="mini-colonnade" aria-hidden="true">
        {["stone", "panel", "arch"].map((id) => (
          <Cover key={id} product={{ id, type: id === "arch" ? "WORKFLOW" : "PROMPT" }} />
        ))}
      </div>
      <EmptyState
        title="Your library is empty"
        action={
          <Link to="/search" className="btn primary">
            Search products
          </Link>
        }
      >
        What you buy is here: you run it, read it, and get its updates and receipts.
      </EmptyState>
    </main>
  );
}

/** The newest run of each of three products, to go on with. */
function RecentRuns({ runs, purchases }: { runs: Execution[]; purchases: Purchase[] }) {
  const newest = [...lastRunByProduct(runs).values()].toSorted((one, other) =>
    one.createdAt < other.createdAt ? 1 : -1,
  );
  const known = newest.flatMap((run) => {
    const purchase = purchases.find(({ product }) => product.id === run.productId);
    return purchase ? [{ run, product: purchase.product }] : [];
  });
  if (known.length === 0) return null;
  return (
    <section aria-label="Recent runs">
      <ul className="recent">
        {known.slice(0, 3).map(({ run, product }) => (
          <li key={run.id}>
            <Link className="panel" to="/runs/$executionId" params={{ executionId: run.id }}>
              <Cover product={product} className="t" />
              <span className="stack">
                <b className="cut" dir="auto">
                  {product.title}
                </b>
                <span className="sm soft cut">
                  {run.model ?? "Workflow"}, <Time iso={run.createdAt} />
                </span>
                <span className="row xs">
                  <RunTag run={run} />
                  <span className="num soft">{costOf(run)}</span>
                </span>
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function RunTag({ run }: { run: Execution }) {
  const [tone, label] = runStatus(run);
  return <StatusTag tone={tone}>{label}</StatusTag>;
}
