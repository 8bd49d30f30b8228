import { followSignal } from "../../core/follow-signal.ts";
import type { ProviderCall } from "./ai-provider.ts";
import type { CallFailure } from "./provider-errors.ts";

export interface RetryOptions {
  deadlines: { totalMs: number };
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1), for the jitter. */
  random(): number;
}

const MAX_RETRIES = 2;
const MAX_WAIT_SECONDS = 10;
const FIRST_BACKOFF_MS = 500;

export interface Deadline {
  /** Aborts when the caller aborts or the time is over. */
  signal: AbortSignal;
  remainingMs(): number;
  stop(): void;
}

/** The error of the total deadline, with a phase like the other timeouts. */
class TotalTimeout extends Error {
  readonly phase = "total";
}

export function startDeadline(
  { signal: callerSignal, timeoutMs }: Pick<ProviderCall, "signal" | "timeoutMs">,
  { deadlines }: Pick<RetryOptions, "deadlines">,
): Deadline {
  const totalMs = timeoutMs ?? deadlines.totalMs;
  const startedAt = performance.now();
  const total = new AbortController();
  const timer = setTimeout(() => total.abort(new TotalTimeout()), totalMs);
  const unfollow = followSignal(total, callerSignal);
  return {
    signal: total.signal,
    remainingMs: () => totalMs - (performance.now() - startedAt),
    stop() {
      clearTimeout(timer);
      unfollow();
    },
  };
}

/** Waits for the next attempt. Throws the error of the last one if none may follow. */
export async function waitForRetry(
  { random, sleep }: RetryOptions,
  call: Pick<ProviderCall, "signal">,
  deadline: Deadline,
  failure: CallFailure,
  attempts: number,
): Promise<void> {
  const waitMs = retryDelayOf(failure, attempts, random);
  if (waitMs === undefined || waitMs >= deadline.remainingMs()) throw failure.error;
  await sleep(waitMs, deadline.signal).catch(() => {
    call.signal.throwIfAborted();
    throw failure.error;
  });
}

/** undefined: no retry. */
function retryDelayOf(
  { error, retry }: CallFailure,
  attempts: number,
  random: () => number,
): number | undefined {
  if (retry === "never" || attempts > MAX_RETRIES) return undefined;
  // Full jitter, so that callers of one outage do not retry together.
  if (retry === "backoff") return random() * FIRST_BACKOFF_MS * 2 ** (attempts - 1);
  const seconds = error.retryAfterSeconds ?? Number.POSITIVE_INFINITY;
  return seconds <= MAX_WAIT_SECONDS ? seconds * 1000 : undefined;
}
