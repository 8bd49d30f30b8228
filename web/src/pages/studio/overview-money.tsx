import type { Balance, RevenueAnalytics } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatCount, formatDate, formatMoney } from "../../lib/format.ts";
import { balancesQuery, lastDaysQuery } from "../../queries/studio.ts";

/** What is there, what comes, and what today brought, a row of facts for each currency. */
export function Money() {
  const balances = useQuery(balancesQuery);
  const { data: revenue } = useQuery(lastDaysQuery);
  if (balances.error) return <ErrorStrip error={balances.error} onRetry={() => void balances.refetch()} />;
  if (!balances.data) return <SkeletonRows count={2} />;
  return balances.data.data.map((balance) => (
    <BalanceFacts key={balance.currency} balance={balance} revenue={revenue} />
  ));
}

interface BalanceFactsProps {
  balance: Balance;
  revenue: RevenueAnalytics | undefined;
}

function BalanceFacts({ balance, revenue }: BalanceFactsProps) {
  const { currency, available, pending, nextMaturity, minimum } = balance;
  const today = revenue?.currency === currency ? revenue.timeline.at(-1) : undefined;
  const money = (amount: number) => formatMoney(amount, currency);
  return (
    <div className="facts studio-facts">
      <div>
        <span className="soft sm">Available</span>
        <strong>{money(available)}</strong>
        <Link to="/studio/payouts" className="link sm">
          {available >= minimum ? "Pay out" : "Payouts"}
        </Link>
      </div>
      <div>
        <span className="soft sm">Matures later</span>
        <strong>{money(pending)}</strong>
        <span className="soft sm">
          {nextMaturity === null
            ? "Nothing is pending"
            : `${money(nextMaturity.amount)} on ${formatDate(nextMaturity.at)}`}
        </span>
      </div>
      {today && (
        <div>
          <span className="soft sm">Today</span>
          <strong>{money(today.grossRevenue)}</strong>
          <Link to="/studio/sales" className="link sm">
            {formatCount(today.sales)} {today.sales === 1 ? "sale" : "sales"}
          </Link>
        </div>
      )}
    </div>
  );
}
