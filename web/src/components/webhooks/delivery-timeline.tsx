import type { WebhookStats } from "@stoa/sdk";
import { formatCount, formatExactTime } from "../../lib/format.ts";

const HEIGHT = 64;
const STEP = 20;
const BAR = 14;

/** The deliveries of the last 24 hours, by half hours. */
export function DeliveryTimeline({ timeline }: { timeline: WebhookStats["timeline"] }) {
  const totalOf = ({ succeeded, failed, waiting }: (typeof timeline)[number]) => succeeded + failed + waiting;
  const highest = Math.max(...timeline.map(totalOf));
  if (highest === 0) return null;
  const sum = (name: "succeeded" | "failed" | "waiting") =>
    timeline.reduce((total, part) => total + part[name], 0);
  const label = `Deliveries per half hour, last 24 hours: ${sum("succeeded")} succeeded, ${sum("failed")} failed, ${sum("waiting")} waiting`;
  return (
    <figure className="timeline">
      <svg
        viewBox={`0 0 ${STEP * timeline.length} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {timeline.map((part, n) => (
          <Bar key={part.at} part={part} x={n * STEP + 3} unit={(HEIGHT - 4) / highest} />
        ))}
        <rect y={HEIGHT - 1} width={STEP * timeline.length} height={1} className="base" />
      </svg>
      <div className="row between xs faint num">
        <span>24 hours ago</span>
        <span>{formatCount(highest)} at most per half hour</span>
        <span>now</span>
      </div>
    </figure>
  );
}

interface BarProps {
  part: WebhookStats["timeline"][number];
  x: number;
  /** The height of one delivery. */
  unit: number;
}

function Bar({ part, x, unit }: BarProps) {
  const { at, succeeded, failed, waiting } = part;
  let top = HEIGHT;
  const rect = (count: number, className: string) => {
    if (count === 0) return null;
    const height = Math.max(count * unit, 2);
    top -= height;
    return <rect x={x} y={top} width={BAR} height={height} className={className} />;
  };
  return (
    <g>
      <title>{`${formatExactTime(at)}: ${succeeded} succeeded, ${failed} failed, ${waiting} waiting`}</title>
      {rect(succeeded, "succeeded")}
      {rect(waiting, "waiting")}
      {rect(failed, "failed")}
    </g>
  );
}
