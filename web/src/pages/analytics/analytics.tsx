import "./analytics.css";
import type { AnalyticsFunnel, RevenueAnalytics } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatSpan, spanBefore } from "../../lib/day-span.ts";
import { useTitle } from "../../lib/use-title.ts";
import {
  type AnalyticsSearch,
  funnelQuery,
  intervalOf,
  revenueQuery,
  spanOf,
  spanQuery,
  viewsQuery,
  zoneOf,
} from "../../queries/analytics.ts";
import { canReadAnalytics, useAccount } from "../../session.ts";
import { Breakdown } from "./breakdown.tsx";
import { Cohorts } from "./cohorts.tsx";
import { Controls } from "./controls.tsx";
import { Figures } from "./figures.tsx";
import { Funnel } from "./funnel.tsx";
import { Timeline, toPoints } from "./timeline.tsx";

const route = getRouteApi("/studio-shell/studio/analytics");

export default function Analytics() {
  const search = route.useSearch();
  const account = useAccount();
  useTitle("Analytics");
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Analytics</h1>
        {canReadAnalytics(account) && <ShowAsCode {...codeOf(search)} />}
      </div>
      {canReadAnalytics(account) ? <Report search={search} /> : <NothingSold />}
    </main>
  );
}

const NothingSold = () => (
  <EmptyState
    title="No sales yet"
    action={
      <Link to="/studio" className="btn">
        Studio
      </Link>
    }
  >
    Publish a product. Its views and sales are counted from then on.
  </EmptyState>
);

function codeOf(search: AnalyticsSearch) {
  const { currency, ...rest } = spanQuery(search);
  const groupBy = search.group ?? "product";
  const query = { ...rest, ...(currency && { currency }), interval: intervalOf(search), groupBy };
  return {
    curl: curlOf("GET", `/analytics/revenue?${new URLSearchParams(query)}`),
    sdk: `const revenue = await stoa.analytics.revenue(${JSON.stringify(query)});`,
  };
}

/** The answers for the span and for the one before; the latter is null where it is not compared. */
function useFigures(search: AnalyticsSearch) {
  const span = spanOf(search);
  const [now, before] = [spanQuery(search), spanQuery(search, spanBefore(span))];
  const isCompared = search.compare !== "none";
  const interval = intervalOf(search);
  const group = search.group ?? "product";
  const revenue = useQuery(revenueQuery(now, interval, group));
  const funnel = useQuery(funnelQuery(now));
  const revenueBefore = useQuery({ ...revenueQuery(before, interval, "currency"), enabled: isCompared });
  const funnelBefore = useQuery({ ...funnelQuery(before), enabled: isCompared });
  const hasViews = search.line === "views";
  const views = useQuery({ ...viewsQuery(now, interval), enabled: hasViews });
  const viewsBefore = useQuery({ ...viewsQuery(before, interval), enabled: hasViews && isCompared });
  const queries = [revenue, funnel, revenueBefore, funnelBefore, views, viewsBefore];
  return {
    revenue: revenue.data,
    funnel: funnel.data,
    revenueBefore: isCompared ? revenueBefore.data : undefined,
    funnelBefore: isCompared ? funnelBefore.data : undefined,
    views: hasViews ? views.data : undefined,
    viewsBefore: hasViews && isCompared ? viewsBefore.data : undefined,
    error: queries.find(({ error }) => error)?.error,
    isLoading: queries.some(({ isPlaceholderData }) => isPlaceholderData),
    retry: () => {
      for (const query of queries) if (query.isError) void query.refetch();
    },
  };
}

type Answers = ReturnType<typeof useFigures>;

function Report({ search }: { search: AnalyticsSearch }) {
  const answers = useFigures(search);
  const { revenue, funnel, error, isLoading, retry } = answers;
  return (
    <>
      <Controls search={search} currencies={currenciesOf(answers)} />
      {error && <ErrorStrip error={error} onRetry={retry} />}
      {(!revenue || !funnel) && !error && <SkeletonRows />}
      {revenue && funnel && (
        <div className={isLoading ? "analytics-report loading" : "analytics-report"} aria-busy={isLoading}>
          <Meta search={search} revenue={revenue} />
          <Charts search={search} answers={answers} revenue={revenue} funnel={funnel} />
        </div>
      )}
    </>
  );
}

/** Those that moved in either span; the shown one comes first. */
function currenciesOf({ revenue, revenueBefore }: Answers): string[] {
  const spans = [revenue, revenueBefore].filter((answer) => answer !== undefined);
  return [
    ...new Set(
      spans.flatMap(({ currency, otherCurrencies }) => [
        currency,
        ...otherCurrencies.map((other) => other.currency),
      ]),
    ),
  ];
}

/** What the figures are about, and the way to the ledger. */
function Meta({ search, revenue }: { search: AnalyticsSearch; revenue: RevenueAnalytics }) {
  const span = spanOf(search);
  const others = revenue.otherCurrencies.map(({ currency }) => currency);
  return (
    <div className="row wrap sm soft analytics-meta">
      <span>
        {formatSpan(span)}
        {search.compare !== "none" && `, compared with ${formatSpan(spanBefore(span))}`}
      </span>
      <span>Days in {zoneOf(search).replaceAll("_", " ")}</span>
      <span>
        In {revenue.currency}
        {others.length > 0 && `. Also sold in ${others.join(", ")}`}
      </span>
      <Link
        to="/studio/analytics/entries"
        search={{
          from: span.from,
          to: span.to,
          zone: zoneOf(search),
          currency: revenue.currency,
          ...(search.line === "refunds" && { figure: "refunds" as const }),
        }}
        className="link"
      >
        Prove it with the ledger
      </Link>
    </div>
  );
}

interface ChartsProps {
  search: AnalyticsSearch;
  answers: Answers;
  revenue: RevenueAnalytics;
  funnel: AnalyticsFunnel;
}

function Charts({ search, answers, revenue, funnel }: ChartsProps) {
  const { revenueBefore, funnelBefore } = answers;
  const line = search.line ?? "netRevenue";
  const before =
    revenueBefore && funnelBefore ? { summary: revenueBefore.summary, funnel: funnelBefore } : null;
  const days = formatSpan(spanOf(search));
  return (
    <>
      <Figures
        line={line}
        currency={revenue.currency}
        now={{ summary: revenue.summary, funnel }}
        before={before}
      />
      {isEmpty(revenue, funnel) &&
      !(revenueBefore && funnelBefore && !isEmpty(revenueBefore, funnelBefore)) ? (
        <EmptyState title="Nothing in these days">
          No product was viewed, bought, run or refunded. Choose other days above.
        </EmptyState>
      ) : (
        <>
          <MainLine search={search} answers={answers} revenue={revenue} funnel={funnel} />
          <div className="analytics-pair">
            <Breakdown group={search.group ?? "product"} revenue={revenue} days={days} />
            <Funnel funnel={funnel} before={funnelBefore ?? null} />
          </div>
        </>
      )}
      <Cohorts span={{ ...spanQuery(search), currency: revenue.currency }} />
    </>
  );
}

const isEmpty = (
  { timeline, otherCurrencies }: RevenueAnalytics,
  { views, runs, purchases }: AnalyticsFunnel,
) =>
  views + runs + purchases + otherCurrencies.length === 0 &&
  timeline.every(({ netRevenue, grossRevenue }) => netRevenue === 0 && grossRevenue === 0);

function MainLine({ search, answers, revenue, funnel }: ChartsProps) {
  const { revenueBefore, funnelBefore, views, viewsBefore } = answers;
  const line = search.line ?? "netRevenue";
  const span = spanOf(search);
  const common = {
    ...{ line, interval: intervalOf(search), currency: revenue.currency },
    ...{ days: formatSpan(span), daysBefore: formatSpan(spanBefore(span)) },
  };
  if (line === "views") {
    if (!views) return <SkeletonRows count={4} />;
    return (
      <Timeline
        {...common}
        points={toPoints(views.timeline, viewsBefore?.timeline ?? null, line)}
        total={funnel.views}
        totalBefore={viewsBefore && funnelBefore ? funnelBefore.views : null}
      />
    );
  }
  return (
    <Timeline
      {...common}
      points={toPoints(revenue.timeline, revenueBefore?.timeline ?? null, line)}
      total={revenue.summary[line]}
      totalBefore={revenueBefore ? revenueBefore.summary[line] : null}
    />
  );
}
