/**
 * Places the orders of a job, read as JSON from stdin, and prints their durations as JSON. Unlike load.ts, a request uses the
 * answer of the one before. Runs in its own process, so that generating the load does not slow the server down.
 */
import { Agent, request } from "node:http";
import { json, text } from "node:stream/consumers";
import { startScript } from "../processes.ts";
import {
  type OrderShop,
  type OrderWayId,
  type Purchase,
  placeOrderBy,
  type Reply,
  type RequestContent,
  type Send,
} from "./order-ways.ts";

export interface OrderJob {
  origin: string;
  way: OrderWayId;
  shop: OrderShop;
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

async function run({ origin, way, shop, purchases, atOnce }: OrderJob): Promise<OrderLoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  let requests = 0;
  const send: Send = (method, path, content) => {
    requests++;
    return sendTo(agent, method, `${origin}${path}`, content);
  };
  const placeOrder = placeOrderBy(way);
  const times: number[] = [];
  const left = purchases.values();
  const placeOrders = async () => {
    for (const purchase of left) {
      const begun = performance.now();
      await placeOrder(send, purchase, shop);
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

function sendTo(agent: Agent, method: string, url: string, { headers, body }: RequestContent) {
  const content = body && JSON.stringify(body);
  const sent = {
    ...headers,
    ...(content && {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(content),
    }),
  };
  return new Promise<Reply>((resolve, reject) => {
    const outgoing = request(url, { agent, method, headers: sent }, (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      text(response)
        .then((answer) => {
          if (status < 200 || status > 299) throw new Error(`${method} ${url}: ${status} ${answer}`);
          resolve({ status, headers: answered, body: JSON.parse(answer) });
        })
        .catch(reject);
    });
    outgoing.on("error", reject).end(content);
  });
}

export async function placeOrders(job: OrderJob): Promise<OrderLoadResult> {
  const generator = startScript(new URL(import.meta.url), [], { input: JSON.stringify(job) });
  return JSON.parse(await generator.output()) as OrderLoadResult;
}

if (import.meta.main) console.log(JSON.stringify(await run((await json(process.stdin)) as OrderJob)));
