import type { AdminOrder } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { OrderCells } from "../../components/administration/order-cells.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { DayFilter } from "../../components/day-filter.tsx";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { Time } from "../../components/time.tsx";
import { formatMoney } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { orderStatus } from "../../lib/orders.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import {
  ORDER_STATUSES,
  type OrdersSearch,
  orderFilters,
  ordersQuery,
  parseOrdersSearch,
} from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/orders");

export default function Orders() {
  const search = parseOrdersSearch({ ...route.useSearch() });
  const { data, isFetching } = useListQuery(ordersQuery(search));
  return (
    <AdminList
      title="Orders"
      code={listCode("/admin/orders", "admin.orders.list", orderFilters(search))}
      filters={<Filters search={search} />}
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["order", "orders"]}
      empty={{ title: "No such orders", text: "No order fits the filters." }}
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Product</th>
            <th>Status</th>
            <th>Buyer</th>
            <th className="wide-cell">Seller</th>
            <th className="r">Amount</th>
            <th className="r">Ordered</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((order) => (
            <OrderRow key={order.orderId} order={order} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

const TEXT_FILTERS = [
  ["buyer", "Buyer", "Buyer's id"],
  ["seller", "Seller", "Seller's id"],
  ["product", "Product", "Product's id"],
] as const;

function Filters({ search }: { search: OrdersSearch }) {
  const change = useFilters();
  return (
    <>
      <FilterSelect
        label="Status"
        none="Any status"
        value={search.status}
        options={ORDER_STATUSES.map((status) => [status, orderStatus({ status })[1]])}
        onChange={(status) => change({ status })}
      />
      {TEXT_FILTERS.map(([name, label, placeholder]) => (
        <FilterText
          key={name}
          label={label}
          placeholder={placeholder}
          value={search[name]}
          onChange={(text) => change({ [name]: text })}
        />
      ))}
      <DayFilter label="From" value={search.from} max={search.to} onChange={(from) => change({ from })} />
      <DayFilter label="To" value={search.to} min={search.from} onChange={(to) => change({ to })} />
    </>
  );
}

function OrderRow({ order }: { order: AdminOrder }) {
  const { orderId, currency, refundedAmount } = order;
  return (
    <tr>
      <OrderCells
        row={order}
        status={orderStatus(order)}
        second={<code className="second soft">{orderId}</code>}
      />
      <td className="r">
        <b className="m">{formatMoney(order.amount, currency)}</b>
        {refundedAmount > 0 && <div className="sm soft">−{formatMoney(refundedAmount, currency)}</div>}
      </td>
      <td className="r soft">
        <Time iso={order.createdAt} />
      </td>
    </tr>
  );
}
