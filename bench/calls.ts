/**
 * Makes the calls of a job, read as JSON from stdin, and prints their durations as JSON. Unlike load.ts it does not call
 * a slow provider in lockstep, and can time a stream by its first word. Runs in its own process.
 */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { startScript } from "./processes.ts";

export interface Calls {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** For calls before the measurement, which are answered at once: code is slow at first, here too. */
  warmUpBody: string;
  /** The number of parallel calls. */
  atOnce: number;
  /** The number of calls in all. */
  amount: number;
  /** The first calls start spread over this time. Otherwise calls of a second each would come in waves. */
  spreadMs: number;
  /** What is timed: the whole answer, or the first word of a stream. */
  until: "end" | "first word";
  /** A pattern that each answer must match; default: none. */
  answer?: string;
  /** Calls before the measurement; default: WARM_UP. */
  warmUp?: number;
}

export interface Called {
  times: number[];
  perSecond: number;
}

const WARM_UP = 40;
/** The end of a stream in Stoa's or OpenAI's format; without it, the answer does not count. */
const END = /event: (?:execution|try)\.completed|data: \[DONE\]/;
/** The first word in either format. */
const WORD = /"text":"[^"]|"content":"[^"]/;

async function run(job: Calls): Promise<Called> {
  const agent = new Agent({ keepAlive: true, maxSockets: job.atOnce });
  for (let n = 0; n < (job.warmUp ?? WARM_UP); n++) await call({ ...job, body: job.warmUpBody }, agent);
  const times: number[] = [];
  const begun = performance.now();
  let left = job.amount;
  const work = async (at: number) => {
    await sleep((job.spreadMs * at) / job.atOnce);
    while (left-- > 0) times.push(await call(job, agent));
  };
  await Promise.all(Array.from({ length: job.atOnce }, (_, at) => work(at)));
  agent.destroy();
  return { times, perSecond: job.amount / ((performance.now() - begun) / 1000) };
}

function call({ url, headers, body, until, answer = "" }: Calls, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const sent = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      ...headers,
    };
    const outgoing = request(url, { agent, method: "POST", headers: sent }, (response) => {
      let text = "";
      let firstWordMs: number | undefined;
      response.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (firstWordMs === undefined && WORD.test(text)) firstWordMs = performance.now() - begun;
      });
      response.on("error", reject).on("end", () => {
        const ms = until === "end" ? performance.now() - begun : firstWordMs;
        const isWhole = (until === "end" || END.test(text)) && new RegExp(answer).test(text);
        if (response.statusCode === 200 && isWhole && ms !== undefined) resolve(ms);
        else reject(new Error(`${url}: ${response.statusCode} ${text}`));
      });
    });
    outgoing.on("error", reject).end(body);
  });
}

export async function makeCalls(job: Calls): Promise<Called> {
  const caller = startScript(new URL(import.meta.url), [], { input: JSON.stringify(job) });
  return JSON.parse(await caller.output()) as Called;
}

if (import.meta.main) console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)) as Calls)));
