import type { AnalyticsFunnel } from "@stoa/sdk";
import { formatCount, formatPercent } from "../../lib/format.ts";
import { ChartFrame } from "./chart-frame.tsx";

interface FunnelProps {
  funnel: AnalyticsFunnel;
  /** null: not compared. */
  before: AnalyticsFunnel | null;
}

/** A bar cannot be lower and still be seen. */
const MIN_HEIGHT = 3;

/** What became of the purchases of these days, until now. */
export function Funnel({ funnel, before }: FunnelProps) {
  const { views, purchases, ran, refunded } = funnel;
  const steps = stepsOf(funnel);
  const stepsBefore = before && stepsOf(before);
  const most = Math.max(views, purchases, 1);
  const height = (count: number) =>
    count === 0 ? 0 : Math.max(MIN_HEIGHT, Math.round(Math.sqrt(count / most) * 100));
  const table = {
    file: `funnel-${funnel.startDate}-to-${funnel.endDate}`,
    columns: [
      { name: "Step" },
      { name: "Count", format: formatCount },
      { name: "Share of the step before", format: (share: number) => formatPercent(share) },
      ...(stepsBefore ? [{ name: "Count before", format: formatCount }] : []),
    ],
    rows: steps.map(({ name, count, share }, at) => [
      name,
      count,
      share ?? "",
      ...(stepsBefore ? [stepsBefore[at]?.count ?? 0] : []),
    ]),
  };
  return (
    <ChartFrame name="funnel" title="From view to run" table={table} className="beam thin">
      <div
        className="analytics-funnel"
        role="img"
        aria-label={`${formatCount(views)} views, ${formatCount(purchases)} purchases, ${formatCount(ran)} of them run, ${formatCount(refunded)} refunded`}
      >
        {steps.map(({ name, count }) => (
          <div key={name} style={{ height: `${height(count)}%` }} />
        ))}
      </div>
      <div className="analytics-steps sm num">
        {steps.map(({ name, label, count, share }) => (
          <span key={name}>
            <b className="b">{formatCount(count)}</b>
            <br />
            <span className="soft">
              {label}
              {share !== null && `, ${formatPercent(share)}`}
            </span>
          </span>
        ))}
      </div>
      <p className="xs faint">
        Runs and refunds of these purchases until now. Square-root scale. Views are counted by UTC days, and
        purchases in every currency.
      </p>
    </ChartFrame>
  );
}

interface Step {
  name: string;
  label: string;
  count: number;
  /** Of the step before; of a refund: of the purchases. */
  share: number | null;
}

const stepsOf = (funnel: AnalyticsFunnel): Step[] => [
  { name: "Views", label: "views", count: funnel.views, share: null },
  {
    name: "Purchases",
    label: "bought",
    count: funnel.purchases,
    share: funnel.views > 0 ? funnel.viewsToPurchases : null,
  },
  {
    name: "Purchases that were run",
    label: "ran it",
    count: funnel.ran,
    share: funnel.purchases > 0 ? funnel.purchasesToRan : null,
  },
  {
    name: "Purchases that were refunded",
    label: "refunded",
    count: funnel.refunded,
    share: funnel.purchases > 0 ? funnel.purchasesToRefunded : null,
  },
];
