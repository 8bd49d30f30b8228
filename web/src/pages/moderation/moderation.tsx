import "./moderation.css";
import "../../components/administration/admin-list.css";
import type { ModeratedProduct } from "@stoa/sdk";
import { getRouteApi, Link, Outlet, useParams } from "@tanstack/react-router";
import { useFilters } from "../../components/administration/use-filters.ts";
import { Cover } from "../../components/cover.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterText } from "../../components/filters.tsx";
import { FlagIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatCount } from "../../lib/format.ts";
import { productStatus } from "../../lib/product-status.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import { useTitle } from "../../lib/use-title.ts";
import { parseQueueSearch, QUEUES, type Queue, queueQuery } from "../../queries/moderation.ts";

const route = getRouteApi("/admin-shell/admin/moderation");

const QUEUE_NAMES: Record<Queue, string> = {
  waiting: "Waiting",
  reported: "Reported",
  suspended: "Suspended",
  rejected: "Rejected",
};

const EMPTY: Record<Queue, string> = {
  waiting:
    "A product shows here when its seller submits it. With moderation switched off, products are on sale at once.",
  reported: "Users report products on their pages.",
  suspended: "Suspended products are kept here until they are reinstated.",
  rejected: "Their sellers know the reason, and submit them again after a change.",
};

/** The queue, and beside it the product that is open. */
export default function Moderation() {
  const { productId } = useParams({ strict: false }) as { productId?: string };
  useTitle("Moderation");
  useListKeys();
  return (
    <main className={productId === undefined ? "moderation" : "moderation is-open"} id="content">
      <QueuePane openId={productId} />
      {productId === undefined ? (
        <div className="moderation-pane nothing-open">
          <p className="soft">
            Choose a product. <kbd className="kbd">J</kbd> and <kbd className="kbd">K</kbd> move through the
            queue.
          </p>
        </div>
      ) : (
        <div className="moderation-pane">
          <Outlet />
        </div>
      )}
    </main>
  );
}

function QueuePane({ openId }: { openId: string | undefined }) {
  const search = parseQueueSearch({ ...route.useSearch() });
  const { queue = "waiting", seller, page } = search;
  const { data, isFetching } = useListQuery(queueQuery(search));
  const change = useFilters();
  return (
    <section className="queue" aria-label="Queue">
      <header>
        <div className="row between">
          <h1 className="page-title">Moderation</h1>
          <span className="row xs soft desk">
            <kbd className="kbd">J</kbd>
            <kbd className="kbd">K</kbd>
          </span>
        </div>
        <nav className="row wrap" aria-label="Queues">
          {QUEUES.map((each) => (
            <Link
              key={each}
              to="/admin/moderation"
              search={each === "waiting" ? {} : { queue: each }}
              className={each === queue && seller === undefined ? "chip on" : "chip"}
              aria-current={each === queue && seller === undefined ? "true" : undefined}
            >
              {QUEUE_NAMES[each]}
            </Link>
          ))}
        </nav>
        <search className="admin-filters row wrap">
          <FilterText
            label="Search products"
            placeholder="Title or id"
            value={search.search}
            onChange={(text) => change({ search: text })}
          />
          {seller !== undefined && (
            <button type="button" className="chip on" onClick={() => change({ seller: undefined })}>
              One seller <span aria-hidden="true">×</span>
              <span className="hidden">: remove this filter</span>
            </button>
          )}
        </search>
      </header>
      {data.data.length === 0 ? (
        <div className="queue-empty">
          <EmptyState title="Nothing here">{EMPTY[queue]}</EmptyState>
        </div>
      ) : (
        <ul aria-busy={isFetching}>
          {data.data.map((product) => (
            <QueueItem key={product.id} product={product} isOpen={product.id === openId} />
          ))}
        </ul>
      )}
      <div className="queue-foot">
        {data.meta.total > 0 && (
          <p className="xs soft">
            {data.meta.totalIsEstimate ? "More than " : ""}
            {formatCount(data.meta.total)} {data.meta.total === 1 ? "product" : "products"}
          </p>
        )}
        <Pager page={page} hasMore={data.hasMore} />
      </div>
    </section>
  );
}

/** What a moderator knows before opening it. */
function describe({ status, firstPublishedAt }: ModeratedProduct): string | null {
  if (status === "pending_review") return firstPublishedAt === null ? "New" : "Update";
  return null;
}

function QueueItem({ product, isOpen }: { product: ModeratedProduct; isOpen: boolean }) {
  const kind = describe(product);
  const [tone, label] = productStatus(product);
  return (
    <li className={isOpen ? "queue-item on" : "queue-item"}>
      <Cover product={product} className="x" />
      <Link
        to="/admin/moderation/$productId"
        params={{ productId: product.id }}
        search={true}
        className="cut b queue-link"
        aria-current={isOpen ? "true" : undefined}
        data-row
        dir="auto"
      >
        {product.title}
      </Link>
      <Time iso={product.statusSince} className="xs soft num" />
      <span className="row xs soft queue-meta">
        {kind ? <span className="nowrap">{kind}</span> : <StatusTag tone={tone}>{label}</StatusTag>}
        {product.openReports > 0 && (
          <span className="tag bad">
            <FlagIcon /> Reported ×{formatCount(product.openReports)}
          </span>
        )}
        <span className="cut" dir="auto">
          {product.seller.name}
        </span>
      </span>
    </li>
  );
}
