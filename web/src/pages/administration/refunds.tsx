import type { AdminRefund } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { OrderCells } from "../../components/administration/order-cells.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect } from "../../components/filters.tsx";
import { Time } from "../../components/time.tsx";
import { formatMoney } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { refundStatus } from "../../lib/orders.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import { parseRefundsSearch, REFUND_STATUSES, refundsQuery } from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/refunds");

export default function Refunds() {
  const search = parseRefundsSearch({ ...route.useSearch() });
  const change = useFilters();
  const { data, isFetching } = useListQuery(refundsQuery(search));
  return (
    <AdminList
      title="Refunds"
      intro="Sellers decide within 7 days; after that a request is approved. An administrator can decide earlier, on the order's page."
      code={listCode("/admin/refunds", "admin.refunds.list", { ...search })}
      filters={
        <FilterSelect
          label="Status"
          none="Any status"
          value={search.status}
          options={REFUND_STATUSES.map((status) => [status, refundStatus({ status })[1]])}
          onChange={(status) => change({ status })}
        />
      }
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["refund", "refunds"]}
      empty={{
        title: "No such refunds",
        text: "Each refund is listed here, also those of the service itself.",
      }}
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Product</th>
            <th>Status</th>
            <th>Buyer</th>
            <th className="wide-cell">Seller</th>
            <th className="wide-cell">Reason</th>
            <th className="r">Amount</th>
            <th className="r">Requested</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((refund) => (
            <RefundRow key={refund.id} refund={refund} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

function RefundRow({ refund }: { refund: AdminRefund }) {
  return (
    <tr>
      <OrderCells
        row={refund}
        status={refundStatus(refund)}
        second={<code className="second soft">{refund.id}</code>}
      />
      <td className="wide-cell wraps soft">{refund.reason}</td>
      <td className="r m">{formatMoney(refund.amount, refund.currency)}</td>
      <td className="r soft">
        <Time iso={refund.createdAt} />
      </td>
    </tr>
  );
}
