/**
 * Sends the requests of a job, read as JSON from stdin, and prints the result as JSON. Runs in its own process, so that
 * generating the load does not slow the service down.
 */
import { text } from "node:stream/consumers";
import autocannon, { type Client } from "autocannon";
import { startScript } from "./processes.ts";
import { type Quantiles, quantilesOf } from "./quantile.ts";

const NOT_MODIFIED = 304;

/** The requests of one connection, sent in sequence, repeatedly. */
export type Lane = { method: string; path: string; headers?: Record<string, string>; body?: string }[];

export interface Job {
  origin: string;
  /** The maximum duration. Requests without an answer at its end do not count. */
  seconds?: number;
  /** Or the number of requests. For long answers, dropping the last ones would distort the result. */
  amount?: number;
  connections: number;
  /** Connection n sends lane n; with fewer lanes, connections share them. */
  lanes: Lane[];
  /** Counts failures; by default, one fails the job. */
  tolerant?: true;
}

export interface LoadResult extends Quantiles {
  requests: number;
  failed: number;
  perSecond: number;
  /** CPU time of the load generator. */
  cpuMs: number;
}

const TIMEOUT_SECONDS = 120;
/** The interval of autocannon's check for the end. */
const LOOK_MS = 100;

function run({ origin, seconds, amount, connections, lanes, tolerant }: Job): Promise<LoadResult> {
  const times: number[] = [];
  const refused = new Map<number, number>();
  let next = 0;
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const cpuBefore = process.cpuUsage();
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
      // The duration of a missing answer is at least the time that we waited.
      if (requests === 0) times.push(performance.now() - begun);
      const { user, system } = process.cpuUsage(cpuBefore);
      const cpuMs = (user + system) / 1_000;
      resolve({ requests, failed, perSecond: requests / elapsed, cpuMs, ...quantilesOf(times) });
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

export async function runLoad(job: Job): Promise<LoadResult> {
  const process = startScript(new URL(import.meta.url), [], { input: JSON.stringify(job) });
  return JSON.parse(await process.output()) as LoadResult;
}

if (import.meta.main) console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)) as Job)));
