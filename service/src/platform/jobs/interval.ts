import type { Logger } from "pino";

/** Runs `work` repeatedly in this process, without overlap; `stop` runs it a last time. */
export function runPeriodically(ms: number, name: string, log: Logger, work: () => Promise<void>) {
  let running: Promise<void> | null = null;
  const round = () => {
    running ??= work()
      .catch((error) => log.warn({ round: name, err: error }, "a round failed; the next one tries again"))
      .finally(() => {
        running = null;
      });
    return running;
  };
  const timer = setInterval(() => void round(), ms);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await running;
      await round();
    },
  };
}
