/**
 * Places the orders of a job, read as JSON from stdin, and prints their durations as JSON. Unlike load.ts, a request uses the
 * answer of the one before. Runs in its own process, so that generating the load does not slow the server down.
 */
import { Agent, request } from "node:http";
import { json, text } from "node:stream/consumers";
import { startScript } from "../processes.ts";
import { type OrderPathName, orderPaths, type Purchase, type Send, type ShopIds } from "./order-paths.ts";

export interface OrderJob {
  origin: string;
  path: OrderPathName;
  shop: ShopIds;
  purchases: Purchase[];
  /** The number of parallel orders. */
  atOnce: number;
}

export interface OrderLoadResult {
  /** The duration of each order in milliseconds, from the first request to the last answer. */
  times: number[];
  perSecond: number;
  requests: number;
}

async function run({ origin, path, shop, purchases, atOnce }: OrderJob): Promise<OrderLoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  let requests = 0;
  const send: Send = (...args) => {
    requests++;
    return sendTo(origin, agent, ...args);
  };
  const times: number[] = [];
  const left = purchases.values();
  const placeOrders = async () => {
    for (const purchase of left) {
      const begun = performance.now();
      await orderPaths[path](send, purchase, shop);
      times.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, placeOrders));
  agent.destroy();
  return { times, perSecond: rateOf(times, atOnce), requests };
}

/** The rate while all lanes are busy. By the clock, long orders would count less, as lanes wait for the last one. */
function rateOf(times: number[], atOnce: number): number {
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  return (atOnce * 1000) / mean;
}

function sendTo(origin: string, agent: Agent, ...[method, path, { headers, body }]: Parameters<Send>) {
  const content = body && JSON.stringify(body);
  const sent = {
    ...headers,
    ...(content && {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(content),
    }),
  };
  return new Promise<Awaited<ReturnType<Send>>>((resolve, reject) => {
    const outgoing = request(`${origin}${path}`, { agent, method, headers: sent }, (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      text(response)
        .then((answer) => {
          if (status < 200 || status > 299) throw new Error(`${method} ${path}: ${status} ${answer}`);
          resolve({ status, headers: answered, body: JSON.parse(answer) });
        })
        .catch(reject);
    });
    outgoing.on("error", reject).end(content);
  });
}

export async function placeOrders(job: OrderJob): Promise<OrderLoadResult> {
  const process = startScript(new URL(import.meta.url), [], { input: JSON.stringify(job) });
  return JSON.parse(await process.output()) as OrderLoadResult;
}

if (import.meta.main) console.log(JSON.stringify(await run((await json(process.stdin)) as OrderJob)));
