import type { ReactNode } from "react";
import { formatCount, formatMoney, formatPercent, LOCALE } from "../../lib/format.ts";
import type { AnalyticsSearch, Line, SpanReport } from "../../queries/analytics.ts";
import { useChange } from "./controls.tsx";

interface FiguresProps {
  line: Line;
  currency: string;
  now: SpanReport;
  /** null: not compared. */
  before: SpanReport | null;
}

/** The figures of the span. Four of them choose the line of the chart. */
export function Figures({ line, currency, now, before }: FiguresProps) {
  const { funnel } = now;
  const { summary } = now.revenue;
  return (
    <div className="analytics-figures">
      <Figure line="netRevenue" isOn={line === "netRevenue"} label="Net revenue">
        <strong>{formatMoney(summary.netRevenue, currency)}</strong>
        {before && <Growth now={summary.netRevenue} before={before.revenue.summary.netRevenue} />}
      </Figure>
      <Figure line="sales" isOn={line === "sales"} label="Sales">
        <strong>{formatCount(summary.sales)}</strong>
        {before && <Growth now={summary.sales} before={before.revenue.summary.sales} />}
      </Figure>
      <Figure line="views" isOn={line === "views"} label="Conversion">
        <strong>{funnel.views === 0 ? "No views" : formatPercent(funnel.viewsToPurchases)}</strong>
        {before && before.funnel.views > 0 && funnel.views > 0 && (
          <Difference now={funnel.viewsToPurchases} before={before.funnel.viewsToPurchases} />
        )}
      </Figure>
      <Figure line="refunds" isOn={line === "refunds"} label="Refunded">
        <strong>{formatPercent(summary.refundRate)}</strong>
        {before && (
          <Difference now={summary.refundRate} before={before.revenue.summary.refundRate} isLowerBetter />
        )}
      </Figure>
      <div className="analytics-figure">
        <span className="label">Runs by buyers</span>
        <strong>{formatCount(funnel.runs)}</strong>
        {before && <Growth now={funnel.runs} before={before.funnel.runs} />}
      </div>
    </div>
  );
}

interface FigureProps {
  line: Line;
  isOn: boolean;
  label: string;
  children: ReactNode;
}

function Figure({ line, isOn, label, children }: FigureProps) {
  const change = useChange();
  return (
    <button
      type="button"
      className={isOn ? "analytics-figure on" : "analytics-figure"}
      aria-pressed={isOn}
      onClick={() => change({ line: line === "netRevenue" ? undefined : line } as AnalyticsSearch)}
    >
      <span className="label">{label}</span>
      {children}
    </button>
  );
}

const signed = (style: Intl.NumberFormatOptions) =>
  new Intl.NumberFormat(LOCALE, { ...style, maximumFractionDigits: 1, signDisplay: "exceptZero" });
const growth = signed({ style: "percent" });
const points = signed({});

/** How much more than before. Nothing is a share of zero. */
function Growth({ now, before }: { now: number; before: number }) {
  if (before <= 0)
    return <span className="sm faint">{before === 0 ? "none before" : "negative before"}</span>;
  const share = now / before - 1;
  return <Change text={growth.format(share)} isBetter={share >= 0} />;
}

interface DifferenceProps {
  now: number;
  before: number;
  isLowerBetter?: boolean;
}

/** Between two shares, in percentage points. */
function Difference({ now, before, isLowerBetter = false }: DifferenceProps) {
  const difference = (now - before) * 100;
  return (
    <Change
      text={`${points.format(difference)} pt`}
      isBetter={isLowerBetter ? difference <= 0 : difference >= 0}
    />
  );
}

const Change = ({ text, isBetter }: { text: string; isBetter: boolean }) => (
  <span className="sm">
    <span className={isBetter ? "num good" : "num bad"}>{text}</span>{" "}
    <span className="faint">than before</span>
  </span>
);
