import { ApiError } from "../../core/errors.ts";

type LimitedRun = <T>(work: () => Promise<T>) => Promise<T>;

/** Runs at most `atOnce` tasks and queues `waiting` more. Further calls get SERVICE_UNAVAILABLE. */
export function limitConcurrency({ atOnce, waiting }: { atOnce: number; waiting: number }): LimitedRun {
  let running = 0;
  const line: (() => void)[] = [];

  async function begin(): Promise<void> {
    if (running < atOnce) {
      running++;
      return;
    }
    if (line.length >= waiting) throw new ApiError("SERVICE_UNAVAILABLE", undefined, undefined, 1);
    await new Promise<void>((resolve) => line.push(resolve));
  }
  function end(): void {
    const next = line.shift();
    if (next) next();
    else running--;
  }

  return async (work) => {
    await begin();
    try {
      return await work();
    } finally {
      end();
    }
  };
}
