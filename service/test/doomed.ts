import { type ChildProcess, fork } from "node:child_process";
import type { Config } from "../src/config.ts";
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
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = fork(PROGRAM, { serialization: "advanced", execArgv: [], env });
  const ended = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once("exit", (_code, signal) => resolve(signal));
  });
  const { config, now } = market.service.ctx;
  const doom: Doom = { config, target: market.target, provider, now: now(), diesAt };
  child.send(doom);
  const origin = await answerOf(child, ended);
  return {
    origin,
    child,
    ended,
    async run(job) {
      child.send(job);
      await answerOf(child, ended);
    },
  };
}

/** What it says next. */
const answerOf = (child: ChildProcess, ended: DoomedService["ended"]): Promise<string> =>
  Promise.race([
    new Promise<string>((resolve) => child.once("message", (told) => resolve(told as string))),
    ended.then((signal) => Promise.reject(new Error(`it ended before it answered: ${signal}`))),
  ]);
