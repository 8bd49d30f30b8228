import "./selling.css";
import type { Balance, Payout } from "@stoa/sdk";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { SellerPage } from "../../components/studio/seller-page.tsx";
import { StudioList } from "../../components/studio/studio-list.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatDate, formatMoney } from "../../lib/format.ts";
import { payoutFailure, payoutStatus } from "../../lib/payouts.ts";
import { useListKeys } from "../../lib/use-keys.ts";
import { payoutsQuery } from "../../queries/selling.ts";
import { balancesQuery, maturitiesQuery } from "../../queries/studio.ts";
import { PayoutAccount } from "./payout-account.tsx";
import { RequestPayout } from "./request-payout.tsx";

const route = getRouteApi("/studio-shell/studio/payouts");

export default function Payouts() {
  return (
    <SellerPage
      title="Payouts"
      intro="Earnings mature after 7 days or your refund window, whichever is longer. Then they can be paid out."
    >
      <Balances />
      <PayoutAccount />
      <Maturities />
      <PayoutList />
    </SellerPage>
  );
}

function Balances() {
  const { data, error, refetch } = useQuery(balancesQuery);
  const [wanted, setWanted] = useState<Balance | null>(null);
  if (error) return <ErrorStrip error={error} onRetry={() => void refetch()} />;
  if (!data) return <SkeletonRows count={2} />;
  return (
    <>
      {data.data.map((balance) => (
        <BalanceFacts key={balance.currency} balance={balance} onRequest={() => setWanted(balance)} />
      ))}
      {wanted && <RequestPayout balance={wanted} onClose={() => setWanted(null)} />}
    </>
  );
}

function BalanceFacts({ balance, onRequest }: { balance: Balance; onRequest: () => void }) {
  const { currency, available, pending, reserved, inTransit, minimum, nextMaturity } = balance;
  const money = (amount: number) => formatMoney(amount, currency);
  return (
    <div className="facts studio-facts">
      <div>
        <span className="soft sm">Available</span>
        <strong>{money(available)}</strong>
        {available >= minimum && inTransit === 0 ? (
          <button type="button" className="btn s primary" onClick={onRequest}>
            Pay out {currency}…
          </button>
        ) : (
          <span className="soft sm">
            {inTransit !== 0 ? "One payout at a time" : `Payouts from ${money(minimum)}`}
          </span>
        )}
      </div>
      <div>
        <span className="soft sm">Matures later</span>
        <strong>{money(pending)}</strong>
        <span className="soft sm">
          {nextMaturity
            ? `${money(nextMaturity.amount)} on ${formatDate(nextMaturity.at)}`
            : "Nothing is pending"}
        </span>
      </div>
      <div>
        <span className="soft sm">Reserved</span>
        <strong>{money(reserved)}</strong>
        <span className="soft sm">for open refunds and disputes</span>
      </div>
      <div>
        <span className="soft sm">On its way to you</span>
        <strong>{money(inTransit)}</strong>
      </div>
    </div>
  );
}

/** The days on which something becomes available. */
function Maturities() {
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetching } = useInfiniteQuery(maturitiesQuery);
  const days = data?.pages.flatMap(({ data }) => data) ?? [];
  if (error) return <ErrorStrip error={error} onRetry={() => void refetch()} />;
  if (days.length === 0) return null;
  return (
    <section className="beam thin studio-block" aria-label="What matures when">
      <h2 className="h3">What matures when</h2>
      <table className="payouts-maturities">
        <thead>
          <tr>
            <th>Day (UTC)</th>
            <th className="r">Sales</th>
            <th className="r">Amount</th>
          </tr>
        </thead>
        <tbody>
          {days.map(({ date, currency, amount, sales }) => (
            <tr key={`${date} ${currency}`}>
              <td>{formatDate(`${date}T12:00:00Z`)}</td>
              <td className="r soft">{formatCount(sales)}</td>
              <td className="r m">{formatMoney(amount, currency)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {hasNextPage && (
        <button type="button" className="btn s" disabled={isFetching} onClick={() => void fetchNextPage()}>
          Show more days
        </button>
      )}
    </section>
  );
}

function PayoutList() {
  useListKeys();
  const { page } = route.useSearch();
  const result = useQuery({ ...payoutsQuery(page), placeholderData: keepPreviousData });
  return (
    <>
      <h2 className="h3 small-heading-block">Payouts</h2>
      <StudioList
        result={result}
        page={page}
        noun={["payout", "payouts"]}
        code={{
          curl: curlOf("GET", "/payouts"),
          sdk: "for await (const payout of stoa.payouts.list()) console.log(payout.id, payout.amount);",
        }}
        empty={
          <EmptyState title="No payouts yet">
            Each payout is listed here with the sales in it, and its statement as PDF and CSV.
          </EmptyState>
        }
      >
        {(payouts) => <PayoutTable payouts={payouts} />}
      </StudioList>
    </>
  );
}

const PayoutTable = ({ payouts }: { payouts: Payout[] }) => (
  <table>
    <thead>
      <tr>
        <th>Period</th>
        <th>Status</th>
        <th className="r">Amount</th>
        <th className="r">Created</th>
        <th className="r">Paid</th>
      </tr>
    </thead>
    <tbody>
      {payouts.map((payout) => (
        <PayoutRow key={payout.id} payout={payout} />
      ))}
    </tbody>
  </table>
);

function PayoutRow({ payout }: { payout: Payout }) {
  const { id, period, amount, currency, createdAt, completedAt, failureCode } = payout;
  const [tone, label] = payoutStatus(payout);
  return (
    <tr>
      <td className="name">
        <Link to="/studio/payouts/$payoutId" params={{ payoutId: id }} className="studio-row-link m" data-row>
          {formatDate(`${period.start}T12:00:00Z`)} to {formatDate(`${period.end}T12:00:00Z`)}
        </Link>
        {failureCode && <span className="sm soft">{payoutFailure(failureCode)}</span>}
      </td>
      <td>
        <StatusTag tone={tone}>{label}</StatusTag>
      </td>
      <td className="r m">{formatMoney(amount, currency)}</td>
      <td className="r soft" data-label="Created">
        <Time iso={createdAt} />
      </td>
      <td className="r soft" data-label="Paid">
        {completedAt === null ? "not yet" : <Time iso={completedAt} />}
      </td>
    </tr>
  );
}
