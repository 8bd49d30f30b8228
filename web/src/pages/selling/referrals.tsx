import type { Sale } from "@stoa/sdk";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { FilterText } from "../../components/filters.tsx";
import { ChartIcon } from "../../components/icons.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { SaleFilters } from "../../components/studio/sale-filters.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { queryOf } from "../../lib/list-code.ts";
import { orderAmount, orderStatus } from "../../lib/orders.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { parseSalesSearch, salesQuery, salesRequest } from "../../queries/selling-lists.ts";

const route = getRouteApi("/studio-shell/studio/referrals");
const REFERRED = { referred: true } as const;

export default function Referrals() {
  return (
    <SellerPage
      title="Referrals"
      intro="Sales that others brought with their code, and what they earned. Each product's commission is set in its editor."
      actions={
        <Link to="/studio/analytics" search={{ group: "referral" }} className="btn">
          <ChartIcon /> Compare codes
        </Link>
      }
    >
      <ReferralList />
    </SellerPage>
  );
}

function ReferralList() {
  useListKeys();
  const search = parseSalesSearch({ ...route.useSearch() });
  const change = useSearchChange();
  const result = useQuery({ ...salesQuery(search, REFERRED), placeholderData: keepPreviousData });
  const { page: _, ...filters } = search;
  const request = { ...salesRequest(filters), ...REFERRED };
  return (
    <>
      <SaleFilters search={search}>
        <FilterText
          label="Referral code"
          placeholder="Referral code"
          value={search.code}
          onChange={(code) => change({ code })}
        />
      </SaleFilters>
      <StudioList
        result={result}
        page={search.page}
        noun={["sale by referral", "sales by referral"]}
        code={{
          curl: curlOf("GET", `/sales?${queryOf(request)}`),
          sdk: `for await (const sale of stoa.sales.list(${JSON.stringify(request)})) console.log(sale.referralCode, sale.commission);`,
        }}
        empty={<NoReferrals isFiltered={Object.keys(filters).length > 0} />}
      >
        {(sales) => <ReferralTable sales={sales} />}
      </StudioList>
    </>
  );
}

const NoReferrals = ({ isFiltered }: { isFiltered: boolean }) => (
  <EmptyState
    title={isFiltered ? "No such sales" : "No sales by referral yet"}
    action={
      <Link to={isFiltered ? "/studio/referrals" : "/studio/products"} className="btn">
        {isFiltered ? "Show all" : "Products"}
      </Link>
    }
  >
    {isFiltered
      ? "None of the sales by referral matches these filters."
      : "Others earn a part of each sale that they bring. Their link to a product is in its editor, under Referrals."}
  </EmptyState>
);

const ReferralTable = ({ sales }: { sales: Sale[] }) => (
  <table>
    <thead>
      <tr>
        <th>Product</th>
        <th>Code</th>
        <th>Status</th>
        <th className="r">Paid</th>
        <th className="r">Commission</th>
        <th className="r">You earn</th>
        <th className="r">Sold</th>
      </tr>
    </thead>
    <tbody>
      {sales.map((sale) => (
        <ReferralRow key={sale.orderId} sale={sale} />
      ))}
    </tbody>
  </table>
);

function ReferralRow({ sale }: { sale: Sale }) {
  const { orderId, product, referralCode, currency, commission, earnings, createdAt } = sale;
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
      </td>
      <td className="name">
        <Link
          to="."
          search={(old: object) => ({ ...old, code: referralCode ?? undefined, page: undefined })}
          className="link mono"
          resetScroll={false}
        >
          {referralCode}
        </Link>
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td className="r" data-label="Paid">
        {orderAmount(sale)}
      </td>
      <td className="r m" data-label="Commission">
        {formatMoney(commission, currency)}
      </td>
      <td className="r" data-label="You earn">
        {formatMoney(earnings, currency)}
      </td>
      <td className="r soft">
        <Time iso={createdAt} />
      </td>
    </tr>
  );
}
