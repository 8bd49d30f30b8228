import "./library.css";
import type { Execution, Purchase, PurchaseDetail } from "@stoa/sdk";
import { useQueries, useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { DownloadDialog } from "../../components/buying/download-dialog.tsx";
import { RefundDialog } from "../../components/buying/refund-dialog.tsx";
import { ReviewDialog } from "../../components/buying/review-dialog.tsx";
import { Cover } from "../../components/cover.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import {
  ArrowUpIcon,
  PlayIcon,
  PromptIcon,
  ReceiptIcon,
  SearchIcon,
  WorkflowIcon,
} from "../../components/icons.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { RowMenu } from "../../components/row-menu.tsx";
import { SortSelect } from "../../components/sort-select.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCost, formatCount, formatDate } from "../../lib/format.ts";
import { isUnopened, openRefund, timeLeft } from "../../lib/orders.ts";
import { runStatus } from "../../lib/runs.ts";
import { useNow } from "../../lib/use-now.ts";
import { useTitle } from "../../lib/use-title.ts";
import { isOwned, libraryQuery, purchaseQuery, recentRunsQuery } from "../../queries/buying.ts";
import type { LibrarySearch } from "../../routes/buying.tsx";

const route = getRouteApi("/library");

const SORTS = [
  { value: "newest", label: "Newest" },
  { value: "run", label: "Last run" },
  { value: "title", label: "Title" },
] as const;
const ROWS = 20;
/** Shorter lists are read faster than searched. */
const SEARCHABLE_FROM = 9;
/** The longest window that sellers can offer, and a day for clocks that differ. */
const REFUND_DAYS = 31;

/** A purchase with what is known about it. */
interface Item {
  purchase: Purchase;
  /** undefined: not loaded. */
  detail: PurchaseDetail | undefined;
  lastRun: Execution | undefined;
}

export default function Library() {
  useTitle("Library");
  const search = route.useSearch();
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage, error } =
    useSuspenseInfiniteQuery(libraryQuery);
  const { data: runs } = useSuspenseQuery(recentRunsQuery);
  const purchases = useMemo(() => ownedProducts(data.pages.flatMap((page) => page.data)), [data]);
  const [shownRows, setShownRows] = useState(ROWS);
  const lastRuns = useMemo(() => lastRunByProduct(runs.data), [runs]);
  const chosen = arrange(purchases, search, lastRuns);
  const needsAll = search.show === "updates" || search.show === "refundable";
  const wanted = needsAll ? chosen : chosen.slice(0, shownRows);
  const { details, isLoading, error: detailError, retry } = useDetails(wanted);
  const items = wanted
    .map((purchase) => ({
      purchase,
      detail: details.get(purchase.orderId),
      lastRun: lastRuns.get(purchase.product.id),
    }))
    .filter(({ detail }) => !needsAll || (detail !== undefined && matches(detail, search.show)));
  const shown = items.slice(0, shownRows);
  const total = needsAll ? items.length : chosen.length;
  if (purchases.length === 0 && !hasNextPage) return <EmptyLibrary />;
  return (
    <main className="library" id="content">
      <Head />
      <RecentRuns runs={runs.data} purchases={purchases} />
      <Filters purchases={purchases} isPart={hasNextPage} />
      {shown.length === 0 ? (
        <NoMatches isLoading={isLoading} />
      ) : (
        <Rows items={shown} allRunsKnown={!runs.hasMore} />
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

/** The newest purchase of each product that the buyer has. */
function ownedProducts(purchases: Purchase[]): Purchase[] {
  const seen = new Set<string>();
  return purchases.filter((purchase) => {
    const isNew = isOwned(purchase) && !seen.has(purchase.product.id);
    if (isNew) seen.add(purchase.product.id);
    return isNew;
  });
}

const lastRunByProduct = (runs: Execution[]): Map<string, Execution> =>
  new Map(runs.toReversed().map((run) => [run.productId, run]));

const isWorkflow = ({ product }: Purchase) => product.type === "WORKFLOW";

function arrange(
  purchases: Purchase[],
  { show, sort, q }: LibrarySearch,
  lastRuns: Map<string, Execution>,
): Purchase[] {
  const words = q?.toLocaleLowerCase() ?? "";
  const since = Date.now() - REFUND_DAYS * 86_400_000;
  const found = purchases.filter((purchase) => {
    const { title, author } = purchase.product;
    if (words !== "" && !`${title} ${author.name}`.toLocaleLowerCase().includes(words)) return false;
    if (show === "prompts") return !isWorkflow(purchase);
    if (show === "workflows") return isWorkflow(purchase);
    if (show === "refundable") return Date.parse(purchase.completedAt ?? purchase.createdAt) > since;
    return true;
  });
  if (sort === "title")
    return found.toSorted((one, other) => one.product.title.localeCompare(other.product.title));
  if (sort === "run") {
    const ranAt = ({ product }: Purchase) => lastRuns.get(product.id)?.createdAt ?? "";
    return found.toSorted((one, other) => (ranAt(one) < ranAt(other) ? 1 : -1));
  }
  return found;
}

function matches(detail: PurchaseDetail, show: LibrarySearch["show"]): boolean {
  return show === "updates"
    ? updateOf(detail) !== null
    : detail.refundable.amount > 0 || openRefund(detail) !== undefined;
}

/** The purchases in full, by order; those that are not loaded yet are missing. */
const useDetails = (purchases: Purchase[]) =>
  useQueries({
    queries: purchases.map(({ orderId }) => purchaseQuery(orderId)),
    combine: (results) => ({
      details: new Map(results.flatMap(({ data }) => (data ? [[data.orderId, data] as const] : []))),
      isLoading: results.some(({ isPending }) => isPending),
      error: results.find(({ data, error }) => !data && error)?.error ?? null,
      retry: () => {
        for (const { error, refetch } of results) if (error) void refetch();
      },
    }),
  });

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

const costOf = ({ usage }: Execution): string =>
  usage === null ? "" : usage.costKnown ? formatCost(usage.estimatedCost) : "cost unknown";

function Filters({ purchases, isPart }: { purchases: Purchase[]; isPart: boolean }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const workflows = purchases.filter(isWorkflow).length;
  const count = (n: number) => `${formatCount(n)}${isPart ? "+" : ""}`;
  return (
    <div className="row wrap bars">
      <nav className="row wrap" aria-label="Filters">
        <Chip label="All" count={count(purchases.length)} />
        <Chip
          show="prompts"
          label="Prompts"
          icon={<PromptIcon />}
          count={count(purchases.length - workflows)}
        />
        <Chip show="workflows" label="Workflows" icon={<WorkflowIcon />} count={count(workflows)} />
        <Chip show="updates" label="Updates" />
        <Chip show="refundable" label="Refundable" />
      </nav>
      <span className="row wrap end">
        {(purchases.length >= SEARCHABLE_FROM || search.q !== undefined) && (
          <label className="input narrow-find">
            <SearchIcon />
            <input
              type="search"
              aria-label="Search your library"
              placeholder="Search your library"
              maxLength={200}
              value={search.q ?? ""}
              onChange={({ target }) =>
                void navigate({
                  search: (old) => ({ ...old, q: target.value || undefined }),
                  replace: true,
                  resetScroll: false,
                })
              }
            />
          </label>
        )}
        <SortSelect
          sorts={SORTS}
          value={search.sort ?? "newest"}
          onChange={(sort) =>
            void navigate({
              search: (old) => ({ ...old, sort: sort === "newest" ? undefined : sort }),
              replace: true,
              resetScroll: false,
            })
          }
        />
      </span>
    </div>
  );
}

interface ChipProps {
  show?: LibrarySearch["show"];
  label: string;
  icon?: ReactNode;
  count?: string;
}

function Chip({ show, label, icon, count }: ChipProps) {
  const isOn = route.useSearch().show === show;
  return (
    <Link
      from="/library"
      to="/library"
      search={(old) => ({ ...old, show })}
      className={isOn ? "chip on" : "chip"}
      aria-current={isOn ? "true" : undefined}
      resetScroll={false}
    >
      {icon}
      {label} {count !== undefined && <b className="num">{count}</b>}
    </Link>
  );
}

function NoMatches({ isLoading }: { isLoading: boolean }) {
  const { show, q } = route.useSearch();
  if (isLoading) return <div className="beam skeleton-row" aria-busy="true" />;
  const title =
    q !== undefined
      ? `Nothing matches “${q}”`
      : show === "updates"
        ? "No updates"
        : show === "refundable"
          ? "Nothing can be refunded now"
          : "None yet";
  return (
    <div className="beam">
      <EmptyState
        title={title}
        action={
          <Link to="/library" className="btn">
            Show all
          </Link>
        }
      >
        {show === "updates"
          ? "New versions of what you bought show here."
          : show === "refundable"
            ? "Each seller sets for how many days a purchase can be refunded."
            : "Other purchases may be under another filter."}
      </EmptyState>
    </div>
  );
}

type OpenDialog = { kind: "refund" | "review" | "download"; purchase: PurchaseDetail };

function Rows({ items, allRunsKnown }: { items: Item[]; allRunsKnown: boolean }) {
  const [dialog, open] = useState<OpenDialog | null>(null);
  const close = () => open(null);
  const firstNeverRun = allRunsKnown ? items.find(({ lastRun }) => !lastRun)?.purchase.orderId : undefined;
  return (
    <>
      <ul className="beam list">
        {items.map((item) => (
          <Row
            key={item.purchase.orderId}
            item={item}
            allRunsKnown={allRunsKnown}
            isNext={item.purchase.orderId === firstNeverRun}
            onOpen={open}
          />
        ))}
      </ul>
      {dialog?.kind === "refund" && <RefundDialog purchase={dialog.purchase} onClose={close} />}
      {dialog?.kind === "review" && <ReviewDialog product={dialog.purchase.product} onClose={close} />}
      {dialog?.kind === "download" && <DownloadDialog purchase={dialog.purchase} onClose={close} />}
    </>
  );
}

interface RowProps {
  item: Item;
  allRunsKnown: boolean;
  /** Bought and never run: the next thing to do. */
  isNext: boolean;
  onOpen: (dialog: OpenDialog) => void;
}

function Row({ item: { purchase, detail, lastRun }, allRunsKnown, isNext, onOpen }: RowProps) {
  const { product, orderId } = purchase;
  const isHeld = detail?.entitlement?.status === "held";
  return (
    <li>
      <Cover product={product} className="t" />
      <div className="stack names">
        <Link to="/orders/$orderId" params={{ orderId }} className="name" dir="auto">
          {product.title}
        </Link>
        <span className="row sm soft wrap">
          <span className="row who">
            {isWorkflow(purchase) ? <WorkflowIcon size={14} /> : <PromptIcon size={14} />}
            <span className="cut" dir="auto">
              {isWorkflow(purchase) ? "Workflow" : "Prompt"} by {product.author.name}
            </span>
          </span>
          <span className="num faint">{detail?.entitlement?.version ?? product.version}</span>
          {detail && <UpdateTag detail={detail} />}
        </span>
      </div>
      <LastRun run={lastRun} isKnown={allRunsKnown} />
      <div className="sm">{detail && <RefundState purchase={detail} />}</div>
      <span className="row actions">
        {isHeld ? (
          <button type="button" className="btn" disabled>
            Run
          </button>
        ) : (
          <Link
            className={isNext ? "btn primary" : "btn"}
            to="/run/$productId"
            params={{ productId: product.id }}
            aria-label={`Run ${product.title}`}
          >
            <PlayIcon /> <span className="wide-only">Run</span>
          </Link>
        )}
        <Actions purchase={purchase} detail={detail} onOpen={onOpen} />
      </span>
    </li>
  );
}

const majorOf = (version: string) => Number(version.split(".")[0]);

/** What is newer than the version that was bought; null: nothing. */
function updateOf({ product, entitlement }: PurchaseDetail): string | null {
  if (entitlement === null) return null;
  const { version, latestVersion } = entitlement;
  if (majorOf(latestVersion) > majorOf(version)) return `${latestVersion}, new major`;
  return version === product.version ? null : `updated from ${product.version}`;
}

function UpdateTag({ detail }: { detail: PurchaseDetail }) {
  const update = updateOf(detail);
  return (
    update !== null && (
      <span className="tag accent">
        <ArrowUpIcon /> {update}
      </span>
    )
  );
}

function LastRun({ run, isKnown }: { run: Execution | undefined; isKnown: boolean }) {
  if (!run) return <div className="sm">{isKnown && <span className="faint">Never run</span>}</div>;
  return (
    <div className="ran">
      <Time iso={run.createdAt} />
      <span className="sm soft num">{costOf(run)}</span>
    </div>
  );
}

function RefundState({ purchase }: { purchase: PurchaseDetail }) {
  const now = useNow();
  const refund = openRefund(purchase);
  if (refund) {
    const isUndecided = refund.status === "pending";
    return (
      <span className="stack refund-state">
        <StatusTag tone="warning">{isUndecided ? "Refund requested" : "Refund on its way"}</StatusTag>
        {isUndecided && refund.decideBy && (
          <span className="soft">answer by {formatDate(refund.decideBy)}</span>
        )}
      </span>
    );
  }
  if (purchase.status === "disputed") return <StatusTag tone="warning">Disputed at the bank</StatusTag>;
  const { until, amount } = purchase.refundable;
  if (amount === 0 || until === null) return null;
  return (
    <span className="stack refund-state">
      <span className="m">Refund until {formatDate(until)}</span>
      <span className="soft">{isUnopened(purchase) ? "not opened yet" : timeLeft(until, now)}</span>
    </span>
  );
}

interface ActionsProps {
  purchase: Purchase;
  detail: PurchaseDetail | undefined;
  onOpen: (dialog: OpenDialog) => void;
}

function Actions({ purchase, detail, onOpen }: ActionsProps) {
  const navigate = route.useNavigate();
  const { orderId, product } = purchase;
  const openIn = (kind: OpenDialog["kind"]) => () => detail && onOpen({ kind, purchase: detail });
  const canRefund = detail !== undefined && detail.refundable.amount > 0;
  return (
    <RowMenu
      label={`More for ${product.title}`}
      actions={[
        {
          label: "Order and receipt",
          onSelect: () => void navigate({ to: "/orders/$orderId", params: { orderId } }),
        },
        { label: "Download", isDisabled: !detail?.downloadUrl, onSelect: openIn("download") },
        { label: "Write a review", isDisabled: !detail, onSelect: openIn("review") },
        { label: "Refund", isDestructive: true, isDisabled: !canRefund, onSelect: openIn("refund") },
      ]}
    />
  );
}
