/**
 * Sends the requests of a job, read as JSON from stdin, and prints what came of it as JSON. It runs in a process of its
 * own, so that making the load does not slow down what is under load.
 */
import { text } from "node:stream/consumers";
import autocannon, { type Client } from "autocannon";
import { startScript } from "./processes.ts";
import { type Quantiles, quantilesOf } from "./quantile.ts";

const NOT_MODIFIED = 304;

/** The requests of one connection, sent in turn and from the start again. */
export type Lane = { method: string; path: string; headers?: Record<string, string>; body?: string }[];

export interface Job {
  origin: string;
  /** How long it goes on at most; what is unanswered then counts as never asked. */
  seconds?: number;
  /** Or how many requests it sends: where an answer may take as long as a run, dropping the last ones would be unfair. */
  amount?: number;
  connections: number;
  /** Connection n sends lane n; with fewer lanes than connections they share. */
  lanes: Lane[];
  /** Failures are counted; without, one fails the job. */
  tolerant?: true;
}

export interface LoadResult extends Quantiles {
  requests: number;
  failed: number;
  perSecond: number;
}

const TIMEOUT_SECONDS = 120;
/** How often autocannon looks whether it is done. */
const LOOK_MS = 100;

function run({ origin, seconds, amount, connections, lanes, tolerant }: Job): Promise<LoadResult> {
  const times: number[] = [];
  const refused = new Map<number, number>();
  let next = 0;
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    let last = begun;
    const setupClient = (client: Client) => client.setRequests(lanes[next++ % lanes.length]!);
    const length = amount === undefined ? { duration: seconds! } : { amount, sampleInt: LOOK_MS };
    const options = { url: origin, connections, ...length, timeout: TIMEOUT_SECONDS, setupClient };
    const load = autocannon(options, (error, { errors, timeouts }) => {
      const elapsed =
        ((amount === undefined || times.length === 0 ? performance.now() : last) - begun) / 1000;
      const failures = [...refused].map(([status, count]) => `${count} × ${status}`);
      if (errors + timeouts > 0) failures.push(`${errors} errors, ${timeouts} timeouts`);
      if (error) return reject(error);
      if (failures.length > 0 && !tolerant)
        return reject(new Error(`not every request succeeded: ${failures.join(", ")}`));
      const requests = times.length;
      const failed = [...refused.values()].reduce((sum, count) => sum + count, errors + timeouts);
      // Of what never came we know that it takes longer than we waited.
      if (requests === 0) times.push(performance.now() - begun);
      resolve({ requests, failed, perSecond: requests / elapsed, ...quantilesOf(times) });
    });
    if (amount !== undefined && seconds !== undefined) setTimeout(() => load.stop(), seconds * 1000).unref();
    load.on("response", (_client: unknown, status: number, _bytes: number, ms: number) => {
      times.push(ms);
      last = performance.now();
      const isAnswer = status >= 200 && (status <= 299 || status === NOT_MODIFIED);
      if (!isAnswer) refused.set(status, (refused.get(status) ?? 0) + 1);
    });
  });
}

/** Runs a job in another process. */
export async function runLoad(job: Job): Promise<LoadResult> {
  const process = startScript(new URL(import.meta.url), [], { input: JSON.stringify(job) });
  return JSON.parse(await process.output()) as LoadResult;
}

if (import.meta.main) console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)) as Job)));
