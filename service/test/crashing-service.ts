import type { ChildProcess } from "node:child_process";
import type { Config } from "../src/core/config/config.ts";
import { forkProgram } from "./child.ts";
import type { Market } from "./market.ts";

/** What the process is told to do, and where it dies. */
export interface CrashOptions {
  config: Config;
  target: string;
  /** Where the payment provider listens. */
  provider: string;
  now: Date;
  /** The fail point at which it ends as by kill -9. */
  crashesAt: string;
}

export interface CrashingService {
  origin: string;
  child: ChildProcess;
  /** By which signal it ended. */
  ended: Promise<NodeJS.Signals | null>;
  /** Lets it do one round of a scheduled job; rejects when it ends meanwhile. */
  run(job: string): Promise<void>;
}

const PROGRAM = new URL("./crashing-service-process.ts", import.meta.url);

/** A service in a process of its own, on the market's database: it lives until it comes to the named fail point. */
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
