import type { RevenueAnalytics } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { preloadTimelineChart } from "../../components/analytics/lazy-timeline-chart.ts";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatCount, formatDate, formatMoney, formatPercent } from "../../lib/format.ts";
import { useWhenIdle } from "../../lib/use-when-idle.ts";
import { LAST_DAYS, lastDaysQuery } from "../../queries/studio.ts";

/** The chart has the largest file of the studio. Errors are reported where the page opens. */
const preloadAnalytics = () => {
  void preloadTimelineChart();
  import("../analytics/analytics.tsx").catch(() => {});
};

export function LastDays() {
  const { data, error, refetch } = useQuery(lastDaysQuery);
  return (
    <section className="beam thin studio-block" aria-label={`Last ${LAST_DAYS} days`}>
      <div className="row between">
        <h2 className="h3">Last {LAST_DAYS} days</h2>
        <Link to="/studio/analytics" className="link sm">
          Analytics
        </Link>
      </div>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows count={2} />}
      {data && <Revenue revenue={data} />}
    </section>
  );
}

function Revenue({
  revenue: { summary, timeline, currency, otherCurrencies },
}: {
  revenue: RevenueAnalytics;
}) {
  // Only after the data: earlier, the files would compete with the page's own requests.
  useWhenIdle(preloadAnalytics);
  const money = (amount: number) => formatMoney(amount, currency);
  return (
    <>
      <dl className="overview-sums">
        <div>
          <dt className="soft sm">Your part</dt>
          <dd>{money(summary.netRevenue)}</dd>
        </div>
        <div>
          <dt className="soft sm">Sales</dt>
          <dd>{formatCount(summary.sales)}</dd>
        </div>
        <div>
          <dt className="soft sm">Refunded</dt>
          <dd>{formatPercent(summary.refundRate)}</dd>
        </div>
      </dl>
      <Sparkline days={timeline} currency={currency} />
      {otherCurrencies.length > 0 && (
        <p className="sm soft">
          And {otherCurrencies.map((other) => formatMoney(other.netRevenue, other.currency)).join(", ")} in
          other currencies.
        </p>
      )}
    </>
  );
}

const HEIGHT = 64;
const BAR = 10;
const GAP = 3;

type Day = RevenueAnalytics["timeline"][number];

function Sparkline({ days, currency }: { days: Day[]; currency: string }) {
  const most = Math.max(...days.map(({ grossRevenue }) => grossRevenue), 0);
  const best = days.find(({ grossRevenue }) => grossRevenue === most);
  const label =
    most === 0 || !best
      ? `No revenue in ${days.length} days`
      : `Revenue by day: at most ${formatMoney(most, currency)}, on ${formatDate(best.date)}`;
  const width = days.length * (BAR + GAP) - GAP;
  return (
    <figure className="overview-spark">
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {days.map(({ date, grossRevenue }, at) => {
          const height = most === 0 ? 1 : Math.max((grossRevenue / most) * HEIGHT, 1);
          return (
            <rect
              key={date}
              className={grossRevenue > 0 ? "some" : ""}
              x={at * (BAR + GAP)}
              y={HEIGHT - height}
              width={BAR}
              height={height}
              rx={Math.min(2, height / 2)}
            >
              <title>{`${formatDate(date)}: ${formatMoney(grossRevenue, currency)}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption className="row between sm soft">
        <span>{days[0] && formatDate(days[0].date)}</span>
        <span>today</span>
      </figcaption>
    </figure>
  );
}
