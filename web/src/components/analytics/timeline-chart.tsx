import "@mantine/charts/styles.layer.css";
import { AreaChart, type AreaChartSeries } from "@mantine/charts";
import { formatDay, formatFullDay, formatMonth } from "../../lib/day-span.ts";
import { LOCALE } from "../../lib/format.ts";
import type { Interval } from "../../queries/analytics.ts";

const HEIGHT = 240;
const TICKS = 5;
const TICK_GAP = 44;
const AREA_OPACITY = 0.09;

const SERIES: AreaChartSeries[] = [
  { name: "before", color: "var(--faint)", strokeDasharray: "3 4" },
  { name: "value", color: "var(--viz1)" },
];

/** A day, week or month, and the one at the same place of the span before. */
export interface Point {
  date: string;
  value: number;
  beforeDate?: string;
  before?: number;
}

interface TimelineChartProps {
  points: Point[];
  interval: Interval;
  format: (value: number) => string;
  /** Of the values; null: they are counts. */
  currency: string | null;
  /** What the chart says, for screen readers. */
  label: string;
}

/** A line with its area, and the span before as a dashed line. Arrow keys move the point that is described. */
export default function TimelineChart({ points, interval, format, currency, label }: TimelineChartProps) {
  return (
    <AreaChart
      className="analytics-plot"
      h={HEIGHT}
      data={points}
      dataKey="date"
      series={SERIES}
      curveType="linear"
      withGradient={false}
      fillOpacity={AREA_OPACITY}
      gridAxis="x"
      tickLine="none"
      strokeDasharray="0"
      gridColor="var(--line)"
      textColor="var(--soft)"
      dotProps={{ r: points.length === 1 ? 4 : 0, strokeWidth: 0 }}
      activeDotProps={{ r: 5, fill: "var(--viz1)", stroke: "var(--paper)" }}
      areaProps={({ name }) =>
        name === "before" ? { fill: "none", strokeWidth: 1.5 } : { strokeWidth: 2.25 }
      }
      xAxisProps={{ tickFormatter: (date) => formatTick(String(date), interval), minTickGap: TICK_GAP }}
      yAxisProps={{
        width: "auto",
        tickCount: TICKS,
        allowDecimals: currency !== null,
        tickFormatter: compactIn(currency),
      }}
      areaChartProps={{
        role: "img",
        ...{ "aria-label": label },
        margin: { top: 8, right: 8, left: 0, bottom: 0 },
      }}
      tooltipProps={{
        cursor: { stroke: "var(--ink)", strokeWidth: 1 },
        content: ({ payload }) => <Tip point={payload?.[0]?.payload as Point | undefined} format={format} />,
      }}
    />
  );
}

const formatTick = (date: string, interval: Interval): string =>
  interval === "month" ? formatMonth(date.slice(0, "2026-11".length)) : formatDay(date);

/** 1.2K or $1.2K */
function compactIn(currency: string | null): (value: number) => string {
  const money = currency === null ? {} : { style: "currency" as const, currency, minimumFractionDigits: 0 };
  const compact = new Intl.NumberFormat(LOCALE, { notation: "compact", maximumFractionDigits: 1, ...money });
  return (value) => compact.format(value);
}

function Tip({ point, format }: { point: Point | undefined; format: (value: number) => string }) {
  if (!point) return null;
  return (
    <div className="analytics-tip">
      <div className="xs soft">{formatFullDay(point.date)}</div>
      <div className="b num">{format(point.value)}</div>
      {point.before !== undefined && point.beforeDate !== undefined && (
        <div className="xs soft num">
          {format(point.before)} on {formatDay(point.beforeDate)}
        </div>
      )}
    </div>
  );
}
