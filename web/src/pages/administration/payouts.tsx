import type { AdminPayout } from "@stoa/sdk";
import { getRouteApi } from "@tanstack/react-router";
import { AdminList } from "../../components/administration/admin-list.tsx";
import { PersonLink } from "../../components/administration/links.tsx";
import { useFilters } from "../../components/administration/use-filters.ts";
import { FilterSelect, FilterText } from "../../components/filters.tsx";
import { Id } from "../../components/id.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { formatDate, formatMoney } from "../../lib/format.ts";
import { listCode } from "../../lib/list-code.ts";
import { payoutStatus } from "../../lib/payouts.ts";
import { useListQuery } from "../../lib/use-list-query.ts";
import {
  PAYOUT_STATUSES,
  parsePayoutsSearch,
  payoutFilters,
  payoutsQuery,
} from "../../queries/administration.ts";

const route = getRouteApi("/admin-shell/admin/payouts");

export default function Payouts() {
  const search = parsePayoutsSearch({ ...route.useSearch() });
  const change = useFilters();
  const { data, isFetching } = useListQuery(payoutsQuery(search));
  return (
    <AdminList
      title="Payouts"
      code={listCode("/admin/payouts", "admin.payouts.list", payoutFilters(search))}
      filters={
        <>
          <FilterSelect
            label="Status"
            none="Any status"
            value={search.status}
            options={PAYOUT_STATUSES.map((status) => [status, payoutStatus({ status })[1]])}
            onChange={(status) => change({ status })}
          />
          <FilterText
            label="Seller"
            placeholder="Seller's id"
            value={search.seller}
            onChange={(seller) => change({ seller })}
          />
        </>
      }
      result={data}
      isFetching={isFetching}
      page={search.page}
      nouns={["payout", "payouts"]}
      empty={{
        title: "No such payouts",
        text: "The service pays sellers by schedule, and when they ask for it.",
      }}
    >
      <table className="admin-table">
        <thead>
          <tr>
            <th>Seller</th>
            <th>Status</th>
            <th className="wide-cell">Account</th>
            <th className="wide-cell">Period</th>
            <th className="r">Amount</th>
            <th className="r">Created</th>
          </tr>
        </thead>
        <tbody>
          {data.data.map((payout) => (
            <PayoutRow key={payout.id} payout={payout} />
          ))}
        </tbody>
      </table>
    </AdminList>
  );
}

const problemOf = ({ failureCode, waitsFor }: AdminPayout): string | null =>
  (failureCode ?? waitsFor)?.replaceAll("_", " ") ?? null;

function PayoutRow({ payout }: { payout: AdminPayout }) {
  const [tone, label] = payoutStatus(payout);
  const { start, end } = payout.period;
  const problem = problemOf(payout);
  return (
    <tr>
      <td className="main-cell">
        <PersonLink person={payout.seller} className="link m" />
        <span className="second">
          <Id id={payout.id} />
        </span>
      </td>
      <td className="wraps">
        <StatusTag tone={tone}>{label}</StatusTag>
        {problem && <div className="sm soft">{problem}</div>}
      </td>
      <td className="wide-cell wraps">
        <code className="soft">{payout.account}</code>
      </td>
      <td className="wide-cell soft">
        {formatDate(start)} to {formatDate(end)}
      </td>
      <td className="r m">{formatMoney(payout.amount, payout.currency)}</td>
      <td className="r soft">
        <Time iso={payout.createdAt} />
        <div className="sm">{payout.scheduled ? "by schedule" : "requested"}</div>
      </td>
    </tr>
  );
}
