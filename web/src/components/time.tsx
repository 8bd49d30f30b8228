import { formatDate, formatExactTime, formatTime } from "../lib/format.ts";

interface TimeProps {
  iso: string;
  /** A day also within the last 24 hours. */
  isDay?: boolean;
  className?: string;
}

/** A time relative to now within a day, else its date. The exact time is in the tooltip. */
export const Time = ({ iso, isDay = false, className = "" }: TimeProps) => (
  <time dateTime={iso} title={formatExactTime(iso)} className={className}>
    {isDay ? formatDate(iso) : formatTime(iso)}
  </time>
);
