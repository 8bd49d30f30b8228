import { DAY_MS, HOUR_MS } from "../../core/dates.ts";

const MINUTE_MS = 60_000;

/** The next time of a cron expression of jobs.ts in UTC: every n minutes, every hour or every day. null: another form. */
export function nextRunOf(cron: string, now: Date): Date | null {
  const [, minutes, minute, hour] = /^(?:\*(?:\/(\d+))?|(\d+)) (?:\*|(\d+)) \* \* \*$/.exec(cron) ?? [];
  if (hour !== undefined)
    return nextAfter(now, DAY_MS, Number(hour) * HOUR_MS + Number(minute ?? 0) * MINUTE_MS);
  if (minute !== undefined) return nextAfter(now, HOUR_MS, Number(minute) * MINUTE_MS);
  if (minutes !== undefined) return nextAfter(now, Number(minutes) * MINUTE_MS, 0);
  return cron === "* * * * *" ? nextAfter(now, MINUTE_MS, 0) : null;
}

/** Periods that divide an hour or a day begin at the epoch. */
const nextAfter = (now: Date, periodMs: number, offsetMs: number) =>
  new Date((Math.floor((now.getTime() - offsetMs) / periodMs) + 1) * periodMs + offsetMs);
