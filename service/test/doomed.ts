import type { ChildProcess } from "node:child_process";
import type { Config } from "../src/core/config/config.ts";
import { forkProgram } from "./child.ts";
import type { Market } from "./market.ts";

/** What the process is told to do, and where it dies. */
export interface Doom {
  config: Config;
  target: string;
  /** Where the payment provider listens. */
  provider: string;
  now: Date;
  /** The fail point at which it ends as by kill -9. */
  diesAt: string;
}

export interface DoomedService {
  origin: string;
  child: ChildProcess;
  /** By which signal it ended. */
  ended: Promise<NodeJS.Signals | null>;
  /** Lets it do one round of a scheduled job; rejects when it ends meanwhile. */
  run(job: string): Promise<void>;
}

const PROGRAM = new URL("./doomed-service.ts", import.meta.url);

/** A service in a process of its own, on the market's database: it lives until it comes to the named fail point. */
export async function startDoomed(market: Market, provider: string, diesAt = ""): Promise<DoomedService> {
  const { config, now } = market.service.ctx;
  const doom: Doom = { config, target: market.target, provider, now: now(), diesAt };
  const { child, ended, answer } = forkProgram(PROGRAM, doom);
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
