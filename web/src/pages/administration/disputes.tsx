import type { AdminDispute } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { OrderCells } from "../../components/administration/order-cells.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect } from "../../components/filters.tsx";
import { Time } from "../../components/time.tsx";
import { disputeStatus } from "../../lib/admin-statuses.ts";
import { formatMoment, formatMoney } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import { DISPUTE_STATUSES, disputesQuery, parseDisputesSearch } from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/disputes");

export default function Disputes() {
  const search = parseDisputesSearch({ ...route.useSearch() });
  const change = useFilters();
  const { data, isFetching } = useListQuery(disputesQuery(search));
  return (
    <AdminList
      title="Disputes"
      intro="What buyers' banks ask back. Send the evidence in the dashboard of the payment provider; its decision arrives here by itself."
      code={listCode("/admin/disputes", "admin.disputes.list", { ...search })}
      filters={
        <FilterSelect
          label="Status"
          none="Any status"
          value={search.status}
          options={DISPUTE_STATUSES.map((status) => [status, disputeStatus({ status })[1]])}
          onChange={(status) => change({ status })}
        />
      }
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["dispute", "disputes"]}
      empty={{
        title: "No disputes",
        text: "A dispute shows here as soon as the payment provider reports it.",
      }}
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Product</th>
            <th>Status</th>
            <th>Buyer</th>
            <th className="wide-cell">Seller</th>
            <th className="r">Amount</th>
            <th className="r">Held</th>
            <th className="r">Answer by</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((dispute) => (
            <DisputeRow key={dispute.id} dispute={dispute} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

function DisputeRow({ dispute }: { dispute: AdminDispute }) {
  const { currency, answerBy, closedAt } = dispute;
  return (
    <tr>
      <OrderCells
        row={dispute}
        status={disputeStatus(dispute)}
        second={<span className="second soft sm">{dispute.reason.replaceAll("_", " ")}</span>}
      />
      <td className="r m">{formatMoney(dispute.amount, currency)}</td>
      <td className="r soft">{dispute.heldAmount > 0 ? formatMoney(dispute.heldAmount, currency) : ""}</td>
      <td className="r soft">
        {closedAt !== null ? (
          <Time iso={closedAt} />
        ) : answerBy === null ? (
          "not known"
        ) : (
          formatMoment(answerBy)
        )}
      </td>
    </tr>
  );
}
