import "./overview.css";
import type { Stats } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, type LinkProps } from "@tanstack/react-router";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatCount, formatDate, formatMoney, formatPercent } from "../../lib/format.ts";
import { useTitle } from "../../lib/use-title.ts";
import { parseStatsSearch, STATS_PERIODS, statsQuery, waitingQuery } from "../../queries/moderation.ts";

const route = getRouteApi("/admin-shell/admin");

const PERIOD_NAMES = { "7d": "7 days", "30d": "30 days", "365d": "12 months" };

export default function Overview() {
  useTitle("Administration");
  const search = parseStatsSearch({ ...route.useSearch() });
  const { data: stats } = useSuspenseQuery(statsQuery(search));
  const { period = "30d" } = search;
  return (
    <main className="work admin-overview" id="content">
      <h1 className="page-title">Administration</h1>
      <Waiting />
      <div className="row wrap between stats-head">
        <h2>
          {formatDate(stats.days.startDate)} to {formatDate(stats.days.endDate)}
        </h2>
        <div className="row wrap">
          <div className="seg s">
            {STATS_PERIODS.map((each) => (
              <Link
                key={each}
                to="/admin"
                search={each === "30d" ? {} : { period: each }}
                aria-current={each === period ? "true" : undefined}
                resetScroll={false}
              >
                {PERIOD_NAMES[each]}
              </Link>
            ))}
          </div>
          <ShowAsCode
            curl={curlOf("GET", "/admin/stats")}
            sdk="const stats = await stoa.admin.stats.get();"
          />
        </div>
      </div>
      <Money stats={stats} />
      <Usage stats={stats} />
      <Present stats={stats} />
    </main>
  );
}

interface Task {
  count: number;
  isEstimate?: boolean | undefined;
  /** For one, and for any other number. */
  texts: readonly [one: string, many: string];
  link: LinkProps;
}

function Waiting() {
  const { data } = useSuspenseQuery(waitingQuery);
  const tasks: Task[] = [
    {
      count: data.review.total,
      isEstimate: data.review.totalIsEstimate,
      texts: ["product waits for review", "products wait for review"],
      link: { to: "/admin/moderation" },
    },
    {
      count: data.reported.total,
      isEstimate: data.reported.totalIsEstimate,
      texts: ["product is reported", "products are reported"],
      link: { to: "/admin/moderation", search: { queue: "reported" } },
    },
    {
      count: data.reviews.total,
      texts: ["review is reported", "reviews are reported"],
      link: { to: "/admin/reviews", search: { status: "reported" } },
    },
    {
      count: data.disputes.total,
      texts: ["dispute is open", "disputes are open"],
      link: { to: "/admin/disputes" },
    },
    {
      count: data.payouts.total,
      texts: ["payout waits for the provider", "payouts wait for the provider"],
      link: { to: "/admin/payouts", search: { status: "pending" } },
    },
    {
      count: data.webhooks.total,
      isEstimate: data.webhooks.totalIsEstimate,
      texts: ["webhook fails", "webhooks fail"],
      link: { to: "/admin/webhooks" },
    },
  ];
  const open = tasks.filter(({ count }) => count > 0);
  return (
    <section className="beam" aria-label="What waits">
      <h2>What waits</h2>
      {open.length === 0 ? (
        <p className="soft">Nothing waits for you.</p>
      ) : (
        <ul className="waiting">
          {open.map(({ count, isEstimate, texts, link }) => (
            <li key={texts[0]}>
              <Link {...link} className="row">
                <strong className="num">
                  {isEstimate ? ">" : ""}
                  {formatCount(count)}
                </strong>
                <span>{texts[count === 1 ? 0 : 1]}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Money({ stats: { currencies } }: { stats: Stats }) {
  if (currencies.length === 0) return <p className="soft">No money moved in these days.</p>;
  return currencies.map((row) => {
    const money = (amount: number) => formatMoney(amount, row.currency);
    return (
      <section key={row.currency} className="stack">
        <div className="facts stats-facts">
          <Figure label={`Gross, ${row.currency}`} value={money(row.grossRevenue)} />
          <Figure label="Marketplace" value={money(row.platformFees)} />
          <Figure label="Sellers" value={money(row.netRevenue)} />
          <Figure label="Refunded" value={money(row.refunds)} />
          <Figure label="Disputed" value={money(row.disputes)} />
          <Figure label="Tax" value={money(row.tax)} />
        </div>
        <details>
          <summary className="link">Top sellers, {row.currency}</summary>
          <table className="stats-table">
            <thead>
              <tr>
                <th>Seller</th>
                <th className="r">Sales</th>
                <th className="r">Gross</th>
                <th className="r">Net</th>
              </tr>
            </thead>
            <tbody>
              {row.topSellers.map((seller) => (
                <tr key={seller.id}>
                  <td>
                    <Link
                      to="/admin/users/$userId"
                      params={{ userId: seller.id }}
                      className="link"
                      dir="auto"
                    >
                      {seller.name}
                    </Link>
                  </td>
                  <td className="r">{formatCount(seller.sales)}</td>
                  <td className="r">{money(seller.grossRevenue)}</td>
                  <td className="r">{money(seller.netRevenue)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      </section>
    );
  });
}

const Figure = ({ label, value, note }: { label: string; value: string; note?: string | undefined }) => (
  <div>
    <span className="label">{label}</span>
    <strong>{value}</strong>
    {note && <span className="sm soft">{note}</span>}
  </div>
);

function Usage({ stats: { funnel, runs, providers } }: { stats: Stats }) {
  const failed = runs.byStatus["failed"] ?? 0;
  return (
    <section className="stack">
      <div className="facts stats-facts">
        <Figure label="Views" value={formatCount(funnel.views)} />
        <Figure
          label="Orders"
          value={formatCount(funnel.orders)}
          note={`${formatPercent(funnel.viewsToOrders)} of views`}
        />
        <Figure
          label="Paid"
          value={formatCount(funnel.paid)}
          note={`${formatPercent(funnel.ordersToPaid)} of orders`}
        />
        <Figure label="Runs" value={formatCount(runs.total)} />
        <Figure
          label="Failed runs"
          value={formatCount(failed)}
          note={runs.total > 0 ? `${formatPercent(failed / runs.total)} of runs` : undefined}
        />
      </div>
      {providers.length > 0 && (
        <table className="stats-table">
          <thead>
            <tr>
              <th>AI provider</th>
              <th className="r">Calls</th>
              <th className="r">Failed</th>
              <th className="r">Cost</th>
            </tr>
          </thead>
          <tbody>
            {providers.map((each) => (
              <tr key={each.provider}>
                <td>{each.provider}</td>
                <td className="r">{formatCount(each.calls)}</td>
                <td className="r">{formatCount(each.failed)}</td>
                <td className="r">{formatMoney(each.cost, "USD")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const countOf = (count: number, noun: string): string =>
  `${formatCount(count)} ${count === 1 ? noun : `${noun}s`}`;

/** What is there now, whatever the days above. */
const Present = ({ stats: { users, products, orders } }: { stats: Stats }) => (
  <section className="beam thin stack">
    <h2>Now</h2>
    <div className="stats-columns">
      <Counts title={countOf(users.total, "account")} counts={{ ...users.byRole, banned: users.banned }} />
      <Counts title="Plans" counts={users.byPlan} />
      <Counts title={countOf(products.total, "product")} counts={products.byStatus} />
      <Counts title={countOf(orders.total, "order")} counts={orders.byStatus} />
    </div>
  </section>
);

const Counts = ({ title, counts }: { title: string; counts: Record<string, number> }) => (
  <section className="stack">
    <h3>{title}</h3>
    <dl className="sm">
      {Object.entries(counts).map(([name, count]) => (
        <div key={name} className="row between">
          <dt className="soft">{name.replaceAll("_", " ")}</dt>
          <dd className="num">{formatCount(count)}</dd>
        </div>
      ))}
    </dl>
  </section>
);
