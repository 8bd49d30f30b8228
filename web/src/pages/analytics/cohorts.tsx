import type { CustomerAnalytics } from "@stoa/sdk";
import { useQuery } from "@tanstack/react-query";
import { ErrorStrip } from "../../components/page-error.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatMonth } from "../../lib/day-span.ts";
import { formatCount } from "../../lib/format.ts";
import { COHORT_MONTHS, customersQuery, type SpanSearch } from "../../queries/analytics.ts";
import { CsvButton } from "./chart-frame.tsx";

/** The strongest color of a cell: design.md, "Heat maps". */
const MOST_COLOR = 40;

type Cohort = CustomerAnalytics["cohorts"][number];

/** How many of each month's new customers bought again in the months after it. */
export function Cohorts({ search }: { search: SpanSearch }) {
  const { data, error, refetch, isPlaceholderData } = useQuery(customersQuery(search));
  const cohorts = data?.cohorts ?? [];
  return (
    <section
      className="analytics-chart beam thin"
      aria-label="Buyers who come back"
      aria-busy={isPlaceholderData}
    >
      <div className="row between wrap analytics-chart-head">
        <h2 className="small-heading">Buyers who come back, % of each month's first purchases</h2>
        {data && <CsvButton table={tableOf(cohorts)} title="Buyers who come back" />}
      </div>
      {error && <ErrorStrip error={error} onRetry={() => void refetch()} />}
      {!data && !error && <SkeletonRows count={COHORT_MONTHS} />}
      {data && <HeatMap cohorts={cohorts} />}
      <p className="xs faint">
        The six months until the last day, also where fewer days are chosen. The last month is cut there.
      </p>
    </section>
  );
}

const monthsAfter = (months: number) => (months === 1 ? "+1 month" : `+${months} months`);

const tableOf = (cohorts: Cohort[]) => ({
  file: `cohorts-${cohorts[0]?.month ?? ""}`,
  columns: [
    "First purchase",
    "Buyers",
    ...Array.from({ length: COHORT_MONTHS - 1 }, (_, at) => monthsAfter(at + 1)),
  ].map((name) => ({ name })),
  rows: cohorts.map(({ month, size, retained }) => [month, size, ...retained.slice(1)]),
});

const HeatMap = ({ cohorts }: { cohorts: Cohort[] }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached by the keyboard
  <section className="analytics-scroll" aria-label="Months and shares" tabIndex={0}>
    <table className="analytics-cohorts">
      <thead>
        <tr>
          <th>First purchase</th>
          <th>Buyers</th>
          {Array.from({ length: COHORT_MONTHS - 1 }, (_, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: columns have no state
            <th key={at}>{monthsAfter(at + 1)}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {cohorts.map((cohort) => (
          <CohortRow key={cohort.month} {...cohort} />
        ))}
      </tbody>
    </table>
  </section>
);

const CohortRow = ({ month, size, retained }: Cohort) => (
  <tr>
    <th scope="row" className="m">
      {formatMonth(month)}
    </th>
    <td className="num soft">{formatCount(size)}</td>
    {Array.from({ length: COHORT_MONTHS - 1 }, (_, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: columns have no state
      <td key={at} className="num">
        <Cell size={size} count={retained[at + 1]} />
      </td>
    ))}
  </tr>
);

/** Months that have not come are empty; a month without new customers has no share. */
function Cell({ size, count }: { size: number; count: number | undefined }) {
  if (count === undefined || size === 0) return null;
  const percent = Math.round((count / size) * 100);
  return (
    <span
      title={`${formatCount(count)} of ${formatCount(size)}`}
      style={{ "--heat": `${(percent / 100) * MOST_COLOR}%` } as object}
    >
      {percent}
    </span>
  );
}
