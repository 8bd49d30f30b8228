import { HOUR_MS } from "../../core/dates.ts";

const MINUTE_MS = 60_000;

/**
 * From the event to its first attempt, then from the end of each attempt to the next (specification, "Delivery
 * rules").
 */
const RETRY_DELAYS_MS = [
  0,
  MINUTE_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  6 * HOUR_MS,
  12 * HOUR_MS,
  24 * HOUR_MS,
];

/** Endpoints that failed together must not come back together. It only lengthens a delay. */
const JITTER = 0.1;
const MAX_RETRY_AFTER_MS = HOUR_MS;

/**
 * null: the schedule has ended. `random` draws from [0, 1). `retryAfterMs` may lengthen the delay and never shortens
 * it.
 */
export function toNextAttemptAt(
  scheduledAttempts: number,
  endedAt: Date,
  random: () => number,
  retryAfterMs = 0,
): Date | null {
  const wait = RETRY_DELAYS_MS[scheduledAttempts];
  if (wait === undefined) return null;
  const jittered = wait * (1 + JITTER * random());
  return new Date(endedAt.getTime() + Math.ceil(Math.max(jittered, retryAfterMs)));
}

/** Seconds or a date (RFC 9110, 10.2.3), at most an hour. 0 for the past and for what cannot be parsed. */
export function parseRetryAfterMs(header: string | null, now: Date): number {
  if (header === null) return 0;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now.getTime();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
