import type { ProductAnalytics, RevenueAnalytics } from "@stoa/sdk";
import { TimelineChart } from "../../components/analytics/lazy-timeline-chart.ts";
import type { Point } from "../../components/analytics/timeline-chart.tsx";
import { Part } from "../../components/part.tsx";
import { formatDay } from "../../lib/day-span.ts";
import { formatCount, formatMoney } from "../../lib/format.ts";
import type { Interval, Line } from "../../queries/analytics.ts";
import { ChartFrame } from "./chart-frame.tsx";

const NAMES: Record<Line, string> = {
  netRevenue: "Net revenue",
  sales: "Sales",
  views: "Views",
  refunds: "Refunds",
};

type Rows = Pick<RevenueAnalytics | ProductAnalytics, "timeline">["timeline"];

/** The rows of both spans, side by side. A cut week or month can give one of them a row more. */
export function toPoints(now: Rows, before: Rows | null, line: Line): Point[] {
  const readValue = (row: Rows[number] | undefined) => (row as Record<string, unknown> | undefined)?.[line];
  return now.map((row, at) => {
    const same = before?.[at];
    return {
      date: row.date,
      value: Number(readValue(row) ?? 0),
      ...(same && { beforeDate: same.date, before: Number(readValue(same) ?? 0) }),
    };
  });
}

interface TimelineProps {
  line: Line;
  interval: Interval;
  currency: string;
  points: Point[];
  /** The sums of both spans. */
  total: number;
  totalBefore: number | null;
  days: string;
  /** null: not compared. */
  daysBefore: string | null;
}

export function Timeline(props: TimelineProps) {
  const { line, interval, currency, points, days } = props;
  const format =
    line === "sales" || line === "views" ? formatCount : (value: number) => formatMoney(value, currency);
  const title = `${NAMES[line]} by ${interval}`;
  const isCompared = props.daysBefore !== null;
  const unit = format === formatCount ? "" : ` (${currency})`;
  const table = {
    file: `${line}-by-${interval}-${points[0]?.date ?? ""}`,
    columns: [
      { name: "First day" },
      { name: `${NAMES[line]}${unit}`, format },
      ...(isCompared ? [{ name: "Day before" }, { name: `Before${unit}`, format }] : []),
    ],
    rows: points.map(({ date, value, beforeDate = "", before = "" }) => [
      date,
      value,
      ...(isCompared ? [beforeDate, before] : []),
    ]),
  };
  return (
    <ChartFrame
      name="line"
      title={title}
      table={table}
      className="analytics-line"
      heading={<Legend title={title} before={props.daysBefore} />}
    >
      <Part fallback={<div className="analytics-plot" aria-hidden="true" />}>
        <TimelineChart
          points={points}
          format={format}
          currency={format === formatCount ? null : currency}
          label={sentenceOf({ ...props, title, format, days })}
          interval={interval}
        />
      </Part>
    </ChartFrame>
  );
}

function sentenceOf({
  title,
  days,
  daysBefore,
  total,
  totalBefore,
  points,
  format,
}: TimelineProps & { title: string; format: (value: number) => string }): string {
  const best = points.reduce<Point | null>(
    (most, point) => (most && most.value >= point.value ? most : point),
    null,
  );
  const compared = totalBefore === null ? "" : `, ${format(totalBefore)} from ${daysBefore}`;
  const highest = best && best.value > 0 ? ` Highest: ${format(best.value)} on ${formatDay(best.date)}.` : "";
  return `${title}: ${format(total)} from ${days}${compared}.${highest}`;
}

const Legend = ({ title, before }: { title: string; before: string | null }) => (
  <span className="row wrap sm analytics-legend">
    <h2 className="small-heading row">
      <svg width="18" height="4" aria-hidden="true">
        <rect width="18" height="3" rx="1.5" fill="var(--viz1)" />
      </svg>
      {title}
    </h2>
    {before !== null && (
      <span className="row soft">
        <svg width="18" height="4" aria-hidden="true">
          <path d="M0 2H18" stroke="var(--faint)" strokeWidth="1.5" strokeDasharray="3 4" />
        </svg>
        {before}
      </span>
    )}
  </span>
);
