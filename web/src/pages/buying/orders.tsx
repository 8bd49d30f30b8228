import "./library.css";
import "./orders.css";
import type { Purchase } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { Cover } from "../../components/cover.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ChevronIcon, DownloadIcon } from "../../components/icons.tsx";
import { Pager } from "../../components/pager.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { toCsv } from "../../lib/csv.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatMoney } from "../../lib/format.ts";
import { orderAmount, orderStatus } from "../../lib/orders.ts";
import { saveFile } from "../../lib/save-file.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { ORDER_FILTERS, ordersQuery } from "../../queries/buying.ts";

const route = getRouteApi("/orders");

export default function Orders() {
  useTitle("Orders");
  const search = route.useSearch();
  const { data, isFetching } = useSuspenseQuery(ordersQuery(search));
  const { data: orders, meta } = data;
  const filters = new URLSearchParams({
    limit: "20",
    ...(search.status && { status: search.status }),
    ...(search.page && { page: String(search.page) }),
  });
  return (
    <main className="library" id="content">
      <nav className="crumb" aria-label="Path">
        <Link to="/library">Library</Link>
        <ChevronIcon />
        <span>Orders</span>
      </nav>
      <div className="row between wrap">
        <h1 className="title">Orders and receipts</h1>
        {orders.length > 0 && <ExportButton />}
      </div>
      <nav className="row wrap bars chips-row" aria-label="Filters">
        <StatusChip label="All" />
        {ORDER_FILTERS.map((status) => (
          <StatusChip key={status} status={status} label={orderStatus({ status })[1]} />
        ))}
      </nav>
      {orders.length === 0 ? (
        <NoOrders />
      ) : (
        <ul className="beam list orders" aria-busy={isFetching}>
          {orders.map((order) => (
            <OrderRow key={order.orderId} order={order} />
          ))}
        </ul>
      )}
      <div className="row between wrap">
        <span className="sm soft">
          {meta.totalIsEstimate ? "At least " : ""}
          {formatCount(meta.total)} {meta.total === 1 ? "order" : "orders"}
        </span>
        <ShowAsCode
          curl={curlOf("GET", `/purchases?${filters}`)}
          sdk={`for await (const order of stoa.purchases.list(${JSON.stringify(search.status ? { status: search.status } : {})})) console.log(order.orderId);`}
        />
      </div>
      <Pager page={search.page} hasMore={data.hasMore} />
    </main>
  );
}

interface StatusChipProps {
  status?: (typeof ORDER_FILTERS)[number];
  label: string;
}

function StatusChip({ status, label }: StatusChipProps) {
  const isOn = route.useSearch().status === status;
  return (
    <Link
      to="/orders"
      search={status ? { status } : {}}
      className={isOn ? "chip on" : "chip"}
      aria-current={isOn ? "true" : undefined}
      resetScroll={false}
    >
      {label}
    </Link>
  );
}

function NoOrders() {
  const { status, page } = route.useSearch();
  const isFiltered = status !== undefined || page !== undefined;
  return (
    <div className="beam list">
      <EmptyState
        title={isFiltered ? "No such orders" : "No orders yet"}
        action={
          isFiltered ? (
            <Link to="/orders" className="btn">
              Show all orders
            </Link>
          ) : (
            <Link to="/search" className="btn primary">
              Search products
            </Link>
          )
        }
      >
        {isFiltered
          ? "None of your orders has this status."
          : "Each order is listed here with its receipt, also a declined one."}
      </EmptyState>
    </div>
  );
}

function OrderRow({ order }: { order: Purchase }) {
  const { orderId, product, currency, refundedAmount, receipt, createdAt } = order;
  const [tone, label] = orderStatus(order);
  return (
    <li>
      <Cover product={product} className="t" />
      <div className="stack names">
        <Link to="/orders/$orderId" params={{ orderId }} className="name" dir="auto">
          {product.title}
        </Link>
        <span className="sm soft cut" dir="auto">
          by {product.author.name}, version {product.version}
        </span>
      </div>
      <Time iso={createdAt} className="sm soft" />
      <div>
        <StatusTag tone={tone}>{label}</StatusTag>
      </div>
      <div className="amounts">
        <b className="num">{orderAmount(order)}</b>
        {refundedAmount > 0 && (
          <span className="sm soft num">−{formatMoney(refundedAmount, currency)} refunded</span>
        )}
      </div>
      <span className="row actions">
        {receipt.url ? (
          <a
            className="link sm"
            href={receipt.url}
            target="_blank"
            rel="noopener"
            aria-label={`Receipt for ${product.title}`}
          >
            Receipt
          </a>
        ) : (
          order.nextAction && (
            <Link
              to="/checkout/$productId"
              params={{ productId: product.id }}
              search={{ order: orderId }}
              className="link sm"
            >
              Confirm
            </Link>
          )
        )}
      </span>
    </li>
  );
}

const COLUMNS = [
  "order",
  "created",
  "completed",
  "status",
  "product",
  "seller",
  "version",
  "amount",
  "refunded",
  "currency",
];

/** All orders as a table, for bookkeeping. */
function ExportButton() {
  const save = useAction({
    run: async () => {
      const orders = await stoa.purchases.list({ limit: 100 }).toArray();
      const rows = orders.map((order) => [
        order.orderId,
        order.createdAt,
        order.completedAt ?? "",
        order.status,
        order.product.title,
        order.product.author.name,
        order.product.version,
        order.amount,
        order.refundedAmount,
        order.currency,
      ]);
      saveFile("orders.csv", "text/csv", toCsv([COLUMNS, ...rows]));
    },
    onError: (error) => showError("The orders were not exported", error),
  });
  return (
    <button type="button" className="btn" disabled={save.isPending} onClick={() => save.start()}>
      <DownloadIcon /> {save.isPending ? "Exporting" : "Export as CSV"}
    </button>
  );
}
