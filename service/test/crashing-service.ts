import type { ChildProcess } from "node:child_process";
import type { Config } from "../src/core/config/config.ts";
import { forkProgram } from "./child.ts";
import type { Market } from "./market.ts";

/** The process's dependencies, and where it dies. */
export interface CrashOptions {
  config: Config;
  target: string;
  /** The payment provider's URL. */
  provider: string;
  now: Date;
  /** The fail point at which the process kills itself with SIGKILL. */
  crashesAt: string;
}

export interface CrashingService {
  origin: string;
  child: ChildProcess;
  /** The signal that ended it. */
  ended: Promise<NodeJS.Signals | null>;
  /** Runs a scheduled job once; rejects when the process ends. */
  run(job: string): Promise<void>;
}

const PROGRAM = new URL("./crashing-service-process.ts", import.meta.url);

/** A service in another process, on the market's database, which dies at the named fail point. */
export async function startCrashingService(
  market: Market,
  provider: string,
  crashesAt = "",
): Promise<CrashingService> {
  const { config, now } = market.service.ctx;
  const options: CrashOptions = { config, target: market.target, provider, now: now(), crashesAt };
  const { child, ended, answer } = forkProgram(PROGRAM, options);
  const origin = (await answer()) as string;
  return {
    origin,
    child,
    ended,
    async run(job) {
      child.send(job);
      await answer();
    },
  };
}
