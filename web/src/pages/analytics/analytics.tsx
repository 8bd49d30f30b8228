import "./analytics.css";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { memo } from "react";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorStrip } from "../../components/page-error.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { curlOf } from "../../lib/curl.ts";
import { formatSpan } from "../../lib/day-span.ts";
import { useTitle } from "../../lib/use-title.ts";
import {
  type AnalyticsSearch,
  givenQuery,
  intervalOf,
  type Report,
  reportQuery,
  type SpanReport,
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
      {canReadAnalytics(account) ? <ReportView search={search} /> : <NothingSold />}
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
  const groupBy = search.group ?? "product";
  const query = { ...givenQuery(search), interval: intervalOf(search), groupBy };
  return {
    curl: curlOf("GET", `/analytics/revenue?${new URLSearchParams(query)}`),
    sdk: `const revenue = await stoa.analytics.revenue(${JSON.stringify(query)});`,
  };
}

function ReportView({ search }: { search: AnalyticsSearch }) {
  const { data, error, refetch, isPlaceholderData } = useQuery(reportQuery(search));
  return (
    <>
      <Controls search={search} currencies={data ? currenciesOf(data) : []} />
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows />}
      {data && (
        <div
          className={isPlaceholderData ? "analytics-report loading" : "analytics-report"}
          aria-busy={isPlaceholderData}
        >
          <Meta report={data} product={search.product} />
          <Charts report={data} />
          {search.product === undefined && <Cohorts search={search} />}
        </div>
      )}
    </>
  );
}

/** Those that moved in either span; the shown one comes first. */
function currenciesOf({ revenue, before }: Report): string[] {
  const answers = before ? [revenue, before.revenue] : [revenue];
  return [
    ...new Set(
      answers.flatMap(({ currency, otherCurrencies }) => [
        currency,
        ...otherCurrencies.map((other) => other.currency),
      ]),
    ),
  ];
}

interface ReportProps {
  report: Report;
  /** Of the filter. */
  product: string | undefined;
}

/** What the figures are about, and the way to the ledger. */
function Meta({ report: { span, revenue, before, line }, product }: ReportProps) {
  const { currency, timezone, otherCurrencies } = revenue;
  const others = otherCurrencies.map((other) => other.currency);
  return (
    <div className="row wrap sm soft analytics-meta">
      <span>
        {formatSpan(span)}
        {before && `, compared with ${formatSpan(before.span)}`}
      </span>
      <span>Days in {timezone.replaceAll("_", " ")}</span>
      <span>
        In {currency}
        {others.length > 0 && `. Also sold in ${others.join(", ")}`}
      </span>
      <Link
        to="/studio/analytics/entries"
        search={{
          ...span,
          zone: timezone,
          currency,
          ...(product && { product }),
          ...(line === "refunds" && { figure: line }),
        }}
        className="link"
      >
        Prove it with the ledger
      </Link>
    </div>
  );
}

/** The old report is not drawn again while the next one loads: its requests would begin after that. */
const Charts = memo(function Charts({ report }: { report: Report }) {
  const { span, revenue, funnel, before, group, line } = report;
  const { currency } = revenue;
  return (
    <>
      <Figures line={line} currency={currency} now={report} before={before} />
      {isEmpty(report) && (before === null || isEmpty(before)) ? (
        <EmptyState title="Nothing in these days">
          No product was viewed, bought, run or refunded. Choose other days above.
        </EmptyState>
      ) : (
        <>
          <MainLine report={report} />
          <div className="analytics-pair">
            <Breakdown group={group} revenue={revenue} days={formatSpan(span)} />
            <Funnel funnel={funnel} before={before?.funnel ?? null} />
          </div>
        </>
      )}
    </>
  );
});

const isEmpty = ({ revenue: { timeline, otherCurrencies }, funnel }: SpanReport) =>
  funnel.views + funnel.runs + funnel.purchases + otherCurrencies.length === 0 &&
  timeline.every(({ netRevenue, grossRevenue }) => netRevenue === 0 && grossRevenue === 0);

function MainLine({ report }: { report: Report }) {
  const { span, revenue, before, line, interval } = report;
  const rowsOf = (of: SpanReport) => (line === "views" ? (of.views?.timeline ?? []) : of.revenue.timeline);
  const totalOf = (of: SpanReport) => (line === "views" ? of.funnel.views : of.revenue.summary[line]);
  return (
    <Timeline
      line={line}
      interval={interval}
      currency={revenue.currency}
      days={formatSpan(span)}
      daysBefore={before ? formatSpan(before.span) : null}
      points={toPoints(rowsOf(report), before ? rowsOf(before) : null, line)}
      total={totalOf(report)}
      totalBefore={before ? totalOf(before) : null}
    />
  );
}
