import type { Failure } from "./ai-provider.faults.ts";
import type { ProviderCall } from "./ai-provider.ts";

/** How long a call may take, and how it waits before it is made again. */
export interface Patience {
  deadlines: { totalMs: number };
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** From 0 to 1, for the jitter. */
  random(): number;
}

const MAX_REPEATS = 2;
const LONGEST_WAIT_SECONDS = 10;
const FIRST_BACKOFF_MS = 500;

export interface Deadline {
  /** Aborts when the caller gives up or the time is over. */
  signal: AbortSignal;
  remainingMs(): number;
  stop(): void;
}

/** Why a call ends at its total deadline; read like the other timeouts, by its phase. */
class TotalTimeout extends Error {
  readonly phase = "total";
}

export function startDeadline(
  { signal: callerSignal, timeoutMs }: Pick<ProviderCall, "signal" | "timeoutMs">,
  { deadlines }: Pick<Patience, "deadlines">,
): Deadline {
  const totalMs = timeoutMs ?? deadlines.totalMs;
  const startedAt = performance.now();
  const total = new AbortController();
  const timer = setTimeout(() => total.abort(new TotalTimeout()), totalMs);
  return {
    signal: AbortSignal.any([callerSignal, total.signal]),
    remainingMs: () => totalMs - (performance.now() - startedAt),
    stop: () => clearTimeout(timer),
  };
}

/** Throws the fault of an attempt that nothing may follow. */
export async function untilRepeat(
  { random, sleep }: Patience,
  call: ProviderCall,
  deadline: Deadline,
  failure: Failure,
  attempts: number,
): Promise<void> {
  const waitMs = waitBeforeRepeat(failure, attempts, random);
  if (waitMs === undefined || waitMs >= deadline.remainingMs()) throw failure.fault;
  await sleep(waitMs, deadline.signal).catch(() => {
    call.signal.throwIfAborted();
    throw failure.fault;
  });
}

/** Undefined: do not repeat. */
function waitBeforeRepeat(
  { fault, repeat }: Failure,
  attempts: number,
  random: () => number,
): number | undefined {
  if (repeat === "never" || attempts > MAX_REPEATS) return undefined;
  // Full jitter, so that callers whom one outage stopped do not all come back at once.
  if (repeat === "soon") return random() * FIRST_BACKOFF_MS * 2 ** (attempts - 1);
  const seconds = fault.retryAfterSeconds ?? Number.POSITIVE_INFINITY;
  return seconds <= LONGEST_WAIT_SECONDS ? seconds * 1000 : undefined;
}
