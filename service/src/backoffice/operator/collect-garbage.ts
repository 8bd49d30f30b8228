import { performance } from "node:perf_hooks";

const CHECK_EVERY_MS = 2_000;
const MAX_UTILIZATION = 0.1;
/** Two minutes. A later heap holds more than the start's garbage, so that its collection would take longer. */
const MAX_CHECKS = 60;

/**
 * Collects the whole heap and returns the reserve that V8 keeps for new objects, in some tenths of a second. Does nothing
 * without `--expose-gc`.
 */
const collectAll = (): void =>
  void globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });

/**
 * Collects the garbage of the start once, as soon as the process has been idle for two seconds. V8 would keep it: some 25 MB of
 * an idle process (docs/decisions/0100-garbage-of-the-start.md). Gives up on a process that is not idle within two minutes.
 */
export function collectGarbageWhenIdle(collect = collectAll, measure = measureUtilization()): void {
  let checks = 0;
  const timer = setInterval(() => {
    checks += 1;
    const isIdle = measure() <= MAX_UTILIZATION;
    if (isIdle || checks === MAX_CHECKS) clearInterval(timer);
    if (isIdle) collect();
  }, CHECK_EVERY_MS);
  timer.unref();
}

/** Returns the part of the time since the call before in which the event loop was busy. */
function measureUtilization(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
