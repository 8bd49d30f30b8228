const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** From the event to its first attempt, and from the end of each attempt to the next one (specification, "Delivery rules"). */
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

/** So that endpoints that failed together do not come back together; a wait only ever grows by it. */
const JITTER = 0.1;
/** A receiver may ask for no more patience than that. */
const MAX_RETRY_AFTER_MS = HOUR_MS;

/**
 * When the schedule attempts a delivery again of which it has made so many attempts; null: never. `random` draws from [0, 1).
 * `retryAfterMs` may lengthen the wait, and never shortens it.
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

/**
 * What a `Retry-After` asks for, in milliseconds: seconds, or a date (RFC 9110, 10.2.3), at most an hour. 0 for what cannot be read,
 * and for the past.
 */
export function parseRetryAfterMs(header: string | null, now: Date): number {
  if (header === null) return 0;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now.getTime();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}
