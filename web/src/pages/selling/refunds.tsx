import type { Refund } from "@stoa/sdk";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Chips } from "../../components/studio/chips.tsx";
import { ProductSelect } from "../../components/studio/product-select.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatMoney } from "../../lib/format.ts";
import { timeLeft } from "../../lib/orders.ts";
import { refundReason, sellerRefundStatus } from "../../lib/refund-reasons.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { useNow } from "../../lib/use-now.ts";
import { useSearchChange } from "../../lib/use-search-change.ts";
import { ofProduct, parseRefundsSearch, REFUND_STATUSES, refundsQuery } from "../../queries/selling-lists.ts";
import { RefundRules } from "./refund-rules.tsx";

const route = getRouteApi("/studio-shell/studio/refunds");

export default function Refunds() {
  return (
    <SellerPage
      title="Refunds"
      intro="You decide about products that were used. Without a decision within 7 days, a refund is approved."
    >
      <RefundList />
      <RefundRules />
    </SellerPage>
  );
}

function RefundList() {
  useListKeys();
  const search = parseRefundsSearch({ ...route.useSearch() });
  const result = useQuery({ ...refundsQuery(search), placeholderData: keepPreviousData });
  const change = useSearchChange();
  const { page: _, ...filters } = search;
  const request = { role: "seller", ...ofProduct(filters) };
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <search className="row wrap studio-filters">
        <Chips
          label="Status"
          name="status"
          value={search.status}
          options={[
            [undefined, "All"],
            ...REFUND_STATUSES.map((status) => [status, sellerRefundStatus({ status })[1]] as const),
          ]}
        />
        <ProductSelect value={search.product} onChange={(product) => change({ product })} />
      </search>
      <StudioList
        result={result}
        page={search.page}
        noun={["refund", "refunds"]}
        code={{
          curl: curlOf("GET", `/refunds?${new URLSearchParams(request)}`),
          sdk: `for await (const refund of stoa.refunds.list(${JSON.stringify(request)})) console.log(refund.id, refund.decideBy);`,
        }}
        empty={
          <EmptyState title={isFiltered ? "No such refunds" : "No refunds yet"}>
            {isFiltered
              ? "None of the refunds of your sales matches these filters."
              : "A request of a buyer shows here with all that speaks for and against it."}
          </EmptyState>
        }
      >
        {(refunds) => <RefundTable refunds={refunds} />}
      </StudioList>
    </>
  );
}

const RefundTable = ({ refunds }: { refunds: Refund[] }) => (
  <table>
    <thead>
      <tr>
        <th>Product</th>
        <th>Status</th>
        <th>Reason</th>
        <th className="r">Amount</th>
        <th className="r">Deadline</th>
        <th className="r">Requested</th>
      </tr>
    </thead>
    <tbody>
      {refunds.map((refund) => (
        <RefundRow key={refund.id} refund={refund} />
      ))}
    </tbody>
  </table>
);

function RefundRow({ refund }: { refund: Refund }) {
  const { id, product, amount, currency, decideBy, status, createdAt } = refund;
  const [tone, label] = sellerRefundStatus(refund);
  const now = useNow();
  return (
    <tr>
      <td className="name">
        <Link
          to="/studio/refunds/$refundId"
          params={{ refundId: id }}
          className="studio-row-link m"
          data-row
          dir="auto"
        >
          {product.title}
        </Link>
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td className="name" dir="auto">
        {refundReason(refund)}
      </td>
      <td className="r m">{formatMoney(amount, currency)}</td>
      <td className="r" data-label="Deadline">
        {status === "pending" && decideBy ? (
          <b>{timeLeft(decideBy, now) ?? "over"}</b>
        ) : (
          <span className="soft">none</span>
        )}
      </td>
      <td className="r soft">
        <Time iso={createdAt} />
      </td>
    </tr>
  );
}
