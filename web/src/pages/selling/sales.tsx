import type { Sale } from "@stoa/sdk";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { stoa } from "../../api.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterChip } from "../../components/filters.tsx";
import { DownloadIcon } from "../../components/icons.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { SaleFilters } from "../../components/studio/sale-filters.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { Time } from "../../components/time.tsx";
import { toCsv } from "../../lib/csv.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { queryOf } from "../../lib/list-code.ts";
import { orderAmount, orderStatus } from "../../lib/orders.ts";
import { saveFile } from "../../lib/save-file.ts";
import { showError } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { parseSalesSearch, type SalesSearch, salesQuery, salesRequest } from "../../queries/selling-lists.ts";

const route = getRouteApi("/studio-shell/studio/sales");

export default function Sales() {
  return (
    <SellerPage title="Sales" actions={<ExportButton />}>
      <SaleList />
    </SellerPage>
  );
}

function SaleList() {
  useListKeys();
  const search = parseSalesSearch({ ...route.useSearch() });
  const change = useSearchChange();
  const result = useQuery({ ...salesQuery(search), placeholderData: keepPreviousData });
  const request = salesRequest({ ...search, page: undefined } as SalesSearch);
  return (
    <>
      <SaleFilters search={search}>
        {search.code !== undefined && (
          <FilterChip text={`Referral code ${search.code}`} onRemove={() => change({ code: undefined })} />
        )}
      </SaleFilters>
      <StudioList
        result={result}
        page={search.page}
        noun={["sale", "sales"]}
        code={{
          curl: curlOf("GET", `/sales?${queryOf(request)}`),
          sdk: `for await (const sale of stoa.sales.list(${JSON.stringify(request)})) console.log(sale.orderId, sale.earnings);`,
        }}
        empty={<NoSales isFiltered={Object.keys(search).length > 0} />}
      >
        {(sales) => <SaleTable sales={sales} />}
      </StudioList>
    </>
  );
}

const NoSales = ({ isFiltered }: { isFiltered: boolean }) => (
  <EmptyState
    title={isFiltered ? "No such sales" : "No sales yet"}
    action={
      <Link to={isFiltered ? "/studio/sales" : "/studio/products"} className="btn">
        {isFiltered ? "Show all sales" : "Products"}
      </Link>
    }
  >
    {isFiltered
      ? "None of your sales matches these filters."
      : "Publish a product and share its link. Its first sale shows here within seconds."}
  </EmptyState>
);

const SaleTable = ({ sales }: { sales: Sale[] }) => (
  <table>
    <thead>
      <tr>
        <th>Product</th>
        <th>Buyer</th>
        <th>Status</th>
        <th className="r">Paid</th>
        <th className="r">Refunded</th>
        <th className="r">You earn</th>
        <th className="r">Sold</th>
      </tr>
    </thead>
    <tbody>
      {sales.map((sale) => (
        <SaleRow key={sale.orderId} sale={sale} />
      ))}
    </tbody>
  </table>
);

function SaleRow({ sale }: { sale: Sale }) {
  const { orderId, product, buyer, currency, refundedAmount, earnings, createdAt } = sale;
  const [tone, label] = orderStatus(sale);
  return (
    <tr>
      <td className="name">
        <Link
          to="/studio/sales/$orderId"
          params={{ orderId }}
          className="studio-row-link m"
          data-row
          dir="auto"
        >
          {product.title}
        </Link>
        <span className="sm soft">version {product.version}</span>
      </td>
      <td dir="auto" className="name">
        {buyer.name}
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td className="r" data-label="Paid">
        {orderAmount(sale)}
      </td>
      <td className="r soft" data-label="Refunded">
        {refundedAmount > 0 ? formatMoney(refundedAmount, currency) : "none"}
      </td>
      <td className="r m" data-label="You earn">
        {formatMoney(earnings, currency)}
      </td>
      <td className="r soft">
        <Time iso={createdAt} />
      </td>
    </tr>
  );
}

const COLUMNS = [
  ...[
    "order",
    "created",
    "status",
    "product",
    "product_id",
    "version",
    "buyer",
    "buyer_id",
    "paid",
    "tax",
    "fee",
  ],
  ...["commission", "earnings", "refunded", "currency"],
];

/** All sales within the filters, for bookkeeping. */
function ExportButton() {
  const search = parseSalesSearch({ ...route.useSearch() });
  const save = useAction({
    run: async () => {
      const request = salesRequest({ ...search, page: undefined } as SalesSearch);
      const sales = await stoa.sales.list({ ...request, limit: 100 }).toArray();
      const rows = sales.map((sale) => [
        ...[
          sale.orderId,
          sale.createdAt,
          sale.status,
          sale.product.title,
          sale.product.id,
          sale.product.version,
        ],
        ...[sale.buyer.name, sale.buyer.id, sale.amount, sale.tax, sale.fee, sale.commission, sale.earnings],
        ...[sale.refundedAmount, sale.currency],
      ]);
      saveFile("sales.csv", "text/csv", toCsv([COLUMNS, ...rows]));
    },
    onError: (error) => showError("The sales were not exported", error),
  });
  return (
    <button type="button" className="btn" disabled={save.isPending} onClick={() => save.start()}>
      <DownloadIcon /> Export CSV
    </button>
  );
}
