/**
 * Makes the calls of a job, read as JSON from stdin, and prints as JSON how long each took. Unlike load.ts it can call a
 * provider that takes its time without doing so in step, and time a stream by its first word. In a process of its own.
 */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { startScript } from "./processes.ts";

export interface Calls {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** Of a call that is answered at once. Some are made before any is timed, because code is slow at first, here too. */
  warmUpBody: string;
  /** How many are under way at a time. */
  atOnce: number;
  /** How many are made in all. */
  amount: number;
  /** Over which time the first ones begin: what takes a second each would else come in waves of as many as there are. */
  spreadMs: number;
  /** What is timed: up to the end of the answer, or to the first word of a stream. */
  until: "end" | "first word";
}

export interface Called {
  times: number[];
  perSecond: number;
}

const WARM_UP = 40;
/** How a stream ends in Stoa's terms or in OpenAI's; what is cut off before is no answer. */
const END = /event: execution\.completed|data: \[DONE\]/;
/** The first word in those terms. */
const WORD = /"text":"[^"]|"content":"[^"]/;

async function run(job: Calls): Promise<Called> {
  const agent = new Agent({ keepAlive: true, maxSockets: job.atOnce });
  for (let n = 0; n < WARM_UP; n++) await call({ ...job, body: job.warmUpBody }, agent);
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

function call({ url, headers, body, until }: Calls, agent: Agent): Promise<number> {
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
        const isWhole = until === "end" || END.test(text);
        if (response.statusCode === 200 && isWhole && ms !== undefined) resolve(ms);
        else reject(new Error(`${url}: ${response.statusCode} ${text}`));
      });
    });
    outgoing.on("error", reject).end(body);
  });
}

/** Makes them in another process. */
export async function makeCalls(job: Calls): Promise<Called> {
  const caller = startScript(new URL(import.meta.url), [], { input: JSON.stringify(job) });
  return JSON.parse(await caller.output()) as Called;
}

if (import.meta.main) console.log(JSON.stringify(await run(JSON.parse(await text(process.stdin)) as Calls)));
