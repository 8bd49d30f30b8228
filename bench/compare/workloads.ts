import { setTimeout as sleep } from "node:timers/promises";
import { openPool } from "@stoa/service/platform/db/database.ts";
import { GOOD_KEY } from "@stoa/service/test/provider-server.ts";
import type pg from "pg";
import { type Calls, makeCalls } from "../calls.ts";
import { type Client, clientOf } from "../client.ts";
import { type Job, type Lane, runLoad } from "../load.ts";
import { atEnd, startScript } from "../processes.ts";
import { AT_ONCE, throughStoa } from "../prompt-calls.ts";
import {
  generateProducts,
  importFile,
  makeFile,
  type NewProduct,
  type NewProducts,
  nextOf,
  publishProduct,
} from "../publishing.ts";
import { quantilesOf } from "../quantile.ts";
import type { Reply } from "./preparer.ts";
import type { Side } from "./side.ts";

export interface Turn {
  requests: number;
  perSecond: number;
  /** Milliseconds. */
  p50: number;
}

/** Prepares a side; the function that it returns puts the load of one turn on it. */
type Workload = (side: Side, seconds: number) => Promise<() => Promise<Turn>>;

const CONNECTIONS = 16;
const LIST = "/v1/products?limit=20";
const ENDPOINTS = 50;
const BACKLOG = 2_000;
const STEADY_PER_SECOND = 200;
const LOOK_EVERY_MS = 20;
const GIVE_UP_MS = 60_000;
const STEPS = ["one", "two", "three"];
const PUBLISHED = 100;
const PROMPTS = new URL("../../service/src/backoffice/demo/prompts.json", import.meta.url).pathname;

/** In turns of a number of seconds, or of a number of requests where each can happen once only. */
export const workloads: Record<string, Workload> = {
  list: requests((side) => [[get(LIST, bearer(side.reader))]]),
  session: requests((side) => [[get(LIST, bearer(side.session))]]),
  detail: requests((side) =>
    dealt(side.products, CONNECTIONS).map((ids) =>
      ids.map((id) => get(`/v1/products/${id}`, bearer(side.reader))),
    ),
  ),
  "purchases-1": purchases(1, 100),
  purchases: purchases(10, 300),
  publish: publishing(async (client, newProducts) => {
    const products: NewProduct[] = [];
    while (products.length < PUBLISHED) products.push(await nextOf(newProducts));
    return async () => {
      for (const product of products) await publishProduct(client, product);
      return PUBLISHED;
    };
  }),
  import: publishing(async (client, newProducts) => {
    const file = await makeFile(newProducts);
    return async () => (await importFile(client, file, true)).length;
  }),
  drafts: publishing(async (client, newProducts) => {
    const file = await makeFile(newProducts);
    return async () => (await importFile(client, file, false)).length;
  }),
  "execute-1": execute({ atOnce: 1, amount: 200, until: "end" }),
  execute: execute({ atOnce: 32, amount: 800, until: "end" }),
  "first-word": execute({ atOnce: 1, amount: 200, until: "first word" }),
  webhooks: async (side) => {
    const arrivalsOf = await openEndpoints(side);
    return () => drain(side, arrivalsOf);
  },
  "webhook-delay": async (side, seconds) => {
    const arrivalsOf = await openEndpoints(side);
    return async () => {
      const request = { kind: "publish steadily", perSecond: STEADY_PER_SECOND, seconds } as const;
      const { committed } = await side.prepare(request);
      return turnOf(committed, await arrivalsOf(committed.length));
    };
  },
  "workflows-1": workflows(1, 80),
  workflows: workflows(32, 256),
};
export const DEFAULTS = ["list", "detail", "purchases", "execute", "webhooks", "workflows"];

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
const get = (path: string, headers: Record<string, string>): Lane[number] => ({
  method: "GET",
  path,
  headers,
});
const dealt = <Item>(items: Item[], hands: number): Item[][] =>
  Array.from({ length: hands }, (_, hand) => items.filter((_item, at) => at % hands === hand));

async function load(job: Job): Promise<Turn> {
  const { requests, perSecond, p50 } = await runLoad(job);
  return { requests, perSecond, p50 };
}

function requests(lanesOf: (side: Side) => Lane[]): Workload {
  return async (side, seconds) => {
    const lanes = lanesOf(side);
    return () => load({ origin: side.origin, seconds, connections: CONNECTIONS, lanes });
  };
}

/** The pairs of buyer and product that a side has used: a second purchase of one is refused. */
const bought = new WeakMap<Side, number>();

function purchases(atOnce: number, amount: number): Workload {
  return async (side) => () => {
    const { products, buyers, origin } = side;
    const first = bought.get(side) ?? 0;
    bought.set(side, first + amount);
    if (first + amount > products.length * buyers.length)
      throw new Error("Every buyer has bought every product: run fewer rounds.");
    const orders = Array.from({ length: amount }, (_, n): Lane[number] => {
      const turn = first + n;
      const buyer = buyers[Math.floor(turn / products.length)]!;
      const headers = { ...bearer(buyer), "content-type": "application/json" };
      const body = JSON.stringify({ productId: products[turn % products.length] });
      return { method: "POST", path: "/v1/purchases", headers, body };
    });
    return load({ origin, amount, connections: atOnce, lanes: dealt(orders, atOnce) });
  };
}

interface Publisher {
  pool: pg.Pool;
  newProducts: NewProducts;
}
/** All workloads of a side publish different products, because copies are reported to moderators. */
const publishers = new WeakMap<Side, Publisher>();

function publisherOf(side: Side): Publisher {
  const known = publishers.get(side);
  if (known) return known;
  const pool = openPool({ target: side.connection, maxConnections: 1 });
  atEnd(() => pool.end());
  const publisher = { pool, newProducts: generateProducts(PROMPTS, pool) };
  publishers.set(side, publisher);
  return publisher;
}

/** The jobs that check for copies are not in its time, but in its CPU and statements. */
function publishing(
  prepare: (client: Client, newProducts: NewProducts) => Promise<() => Promise<number>>,
): Workload {
  return async (side) => {
    const { pool, newProducts } = publisherOf(side);
    const client = clientOf(side.origin, side.buyers[0]!);
    return async () => {
      const publish = await prepare(client, newProducts);
      const begun = performance.now();
      const requests = await publish();
      const elapsed = performance.now() - begun;
      await waitForCopyChecks(pool);
      return { requests, perSecond: (requests * 1000) / elapsed, p50: elapsed / requests };
    };
  };
}

async function waitForCopyChecks(pool: pg.Pool): Promise<void> {
  const begun = performance.now();
  for (;;) {
    const { rowCount } = await pool.query(
      "select from pgboss.job where name = 'check-for-copies' and state < 'completed' limit 1",
    );
    if (rowCount === 0) return;
    if (performance.now() - begun > GIVE_UP_MS) throw new Error("The checks for copies did not end.");
    await sleep(LOOK_EVERY_MS);
  }
}

let provider: Promise<string> | undefined;
/** One for both sides: it serves one at a time. */
function providerUrl(): Promise<string> {
  provider ??= startScript(new URL("../ai-provider.ts", import.meta.url), [])
    .waitForLine(/^http.*/)
    .then(([url]) => url);
  return provider;
}

async function call(job: Omit<Calls, "warmUpBody" | "warmUp" | "spreadMs">): Promise<Turn> {
  const { times, perSecond } = await makeCalls({ ...job, warmUp: 0, warmUpBody: "", spreadMs: 0 });
  return { requests: times.length, perSecond, p50: quantilesOf(times).p50 };
}

function execute(kind: Pick<Calls, "atOnce" | "amount" | "until">): Workload {
  return async (side) => {
    const service = { origin: side.origin, pid: 0 };
    const bought = { buyer: side.buyers.at(-1)!, productId: side.products.at(-1)! };
    const way = await throughStoa({ backends: async () => [] }, service, bought, await providerUrl());
    return () => call({ ...way.call(AT_ONCE, kind.until === "first word"), ...kind });
  };
}

/** Three calls in a row, with an answer at the end of the run. */
function workflows(atOnce: number, amount: number): Workload {
  return async (side) => {
    const key = side.buyers.at(-1)!;
    const client = clientOf(side.origin, key);
    const definition = {
      format: "workflow/1",
      input: { type: "object" },
      steps: STEPS.map((id, at) => ({
        ...{ id, type: "prompt", provider: "openai-compatible", model: AT_ONCE },
        ...{
          needs: STEPS.slice(Math.max(at - 1, 0), at),
          messages: [{ role: "user", content: `Step ${id}.` }],
        },
      })),
      result: "steps.three.output",
    };
    const { id } = await client.post<{ id: string }>("/v1/products", {
      ...{ title: "Three steps", type: "WORKFLOW", price: 5, content: JSON.stringify(definition) },
    });
    const stored = await client.post<{ id: string }>("/v1/ai/keys", {
      ...{ provider: "openai-compatible", name: "bench", key: GOOD_KEY, baseUrl: await providerUrl() },
    });
    return () =>
      call({
        url: `${side.origin}/v1/ai/workflows/${id}/execute`,
        headers: { ...bearer(key), prefer: "wait=60" },
        body: JSON.stringify({ apiKeys: { "openai-compatible": stored.id } }),
        ...{ atOnce, amount, until: "end", answer: '"status":"completed"' },
      });
  };
}

type Arrivals = (count: number) => Promise<Map<string, number>>;
const receivers = new WeakMap<Side, Promise<Arrivals>>();

/** A receiver of its own for each side. */
function openEndpoints(side: Side): Promise<Arrivals> {
  const known = receivers.get(side) ?? startReceiver(side);
  receivers.set(side, known);
  return known;
}

async function startReceiver(side: Side): Promise<Arrivals> {
  const receiver = startScript(new URL("../receiver.ts", import.meta.url), []);
  const [url] = await receiver.waitForLine(/^http:.*/);
  await side.prepare({ kind: "open endpoints", url, count: ENDPOINTS });
  return async (count) => {
    const arrivals = new Map<string, number>();
    const begun = performance.now();
    while (arrivals.size < count) {
      if (performance.now() - begun > GIVE_UP_MS)
        throw new Error(`${side.name}: ${arrivals.size} of ${count} events were delivered`);
      await sleep(LOOK_EVERY_MS);
      const deliveries = (await (await fetch(url)).json()) as [id: string, at: number][];
      for (const [id, at] of deliveries) if (!arrivals.has(id)) arrivals.set(id, at);
    }
    return arrivals;
  };
}

/** From the commit of all events to the last arrival. */
async function drain(side: Side, arrivalsOf: Arrivals): Promise<Turn> {
  const { committed } = await side.prepare({ kind: "publish", count: BACKLOG });
  return turnOf(committed, await arrivalsOf(BACKLOG));
}

function turnOf(committed: Reply["committed"], arrivals: Map<string, number>): Turn {
  const first = Math.min(...committed.map(([, at]) => at));
  const last = Math.max(...arrivals.values());
  const { p50 } = quantilesOf(committed.map(([id, at]) => arrivals.get(id)! - at));
  return { requests: committed.length, perSecond: committed.length / ((last - first) / 1000), p50 };
}
