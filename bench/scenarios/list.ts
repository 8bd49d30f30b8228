import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Lane } from "../load.ts";
import { type Measured, measure, type Target } from "../measure.ts";
import type { Options } from "../options.ts";
import { atEnd, startScript } from "../processes.ts";
import { median } from "../quantile.ts";
import { comparedWithAim, ms, type Report } from "../report.ts";
import { openShop, type Shop } from "../shop.ts";

const ROUNDS = 7;
const WARM_UP_SECONDS = 2;
const LIST_SECONDS = 4;
const OTHER_SECONDS = 2;
const CONNECTIONS = 16;
/** More than a buyer can buy in one pass. */
const PURCHASES_PER_ROUND = 600;
const LIST = "/v1/products?limit=20";
const AIM_OF_BARE = 0.35;
const AIM_WITHOUT_LOG = 0.5;

/** A kind of request; `lanes` returns those of one pass. */
interface Kind {
  name: string;
  target: Target;
  seconds: number;
  /** The minimum share of the bare server's requests per second. */
  aim?: number;
  lanes(round: number): Lane[];
}

/** The catalogue under load, compared with a bare `node:http` with the same bytes, in turns of a few seconds. */
export async function measureList(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const { bytes, etag } = await listOnce(shop);
  const bare = {
    ...{ name: "bare `node:http`, the same bytes", target: await startBare(bytes), seconds: LIST_SECONDS },
    lanes: () => [gets(shop, [LIST])],
  };
  const kinds = [bare, ...hotKinds(shop, await quietNode(shop), etag), ...otherKinds(shop)];
  const results = new Map<Kind, Measured[]>(kinds.map((kind) => [kind, []]));
  const once = ({ target, lanes }: Kind, round: number, seconds: number) =>
    measure(target, { seconds, connections: CONNECTIONS, lanes: lanes(round) });
  for (const kind of kinds) await once(kind, 0, WARM_UP_SECONDS);
  for (let round = 1; round <= ROUNDS; round++) {
    for (const kind of kinds) results.get(kind)!.push(await once(kind, round, kind.seconds));
  }
  return reportOf(results, results.get(bare)!, bytes.length);
}

async function listOnce({ origin, reader }: Shop): Promise<{ bytes: Buffer; etag: string }> {
  const reply = await fetch(`${origin}${LIST}`, { headers: { authorization: `Bearer ${reader}` } });
  return { bytes: Buffer.from(await reply.arrayBuffer()), etag: reply.headers.get("etag")! };
}

/** The same service without access log. */
const quietNode = async (shop: Shop): Promise<Target> => ({
  ...(await shop.startNode({ STOA_LOG_LEVEL: "warn" })),
  backends: shop.backends,
});

async function startBare(bytes: Buffer): Promise<Target> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-bench-bare-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "answer.json"), bytes);
  const { pid, waitForLine: says } = startScript(new URL("../bare.ts", import.meta.url), [
    join(folder, "answer.json"),
  ]);
  const [origin] = await says(/^http.*/);
  return { origin, pid, backends: async () => [] };
}

/** One list, requested repeatedly: one database query in four seconds. */
function hotKinds(shop: Shop, quiet: Target, etag: string): Kind[] {
  const key = { authorization: `Bearer ${shop.reader}` };
  const hot = (name: string, headers: Record<string, string>, more: Partial<Kind> = {}): Kind => ({
    ...{ name, target: quiet, seconds: LIST_SECONDS },
    lanes: () => [[{ method: "GET", path: LIST, headers }]],
    ...more,
  });
  return [
    hot("hot list, a log line each", key, { target: shop, aim: AIM_OF_BARE }),
    hot("hot list, request logging off", key, { aim: AIM_WITHOUT_LOG }),
    hot("– the client has it already: 304", { ...key, "if-none-match": etag }),
    hot("– asked by a visitor", { cookie: shop.visitor }),
    hot("– asked in a session", { authorization: `Bearer ${shop.session}` }),
  ];
}

function otherKinds(shop: Shop): Kind[] {
  const { products } = shop;
  const kind = (name: string, lanes: Kind["lanes"]): Kind => ({
    ...{ name, target: shop, seconds: OTHER_SECONDS, lanes },
  });
  return [
    kind("`GET /v1/products/{id}`", () => dealt(products).map((ids) => gets(shop, ids.map(pathOf)))),
    kind("`POST /v1/purchases`", (round) => purchases(shop, round)),
  ];
}

const gets = ({ reader }: Shop, paths: string[]): Lane =>
  paths.map((path) => ({ method: "GET", path, headers: { authorization: `Bearer ${reader}` } }));

const pathOf = (product: string) => `/v1/products/${product}`;

/** Deals the products out to the connections. */
const dealt = (products: string[]): string[][] =>
  Array.from({ length: CONNECTIONS }, (_, lane) => products.filter((_, at) => at % CONNECTIONS === lane));

/** Each buyer buys each product once, and no two parallel requests buy the same: every request succeeds. */
function purchases({ products, buyers }: Shop, round: number): Lane[] {
  const hands = dealt(products);
  return buyers.map((key, buyer) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const wanted = hands[(buyer + round) % CONNECTIONS]!.slice(0, PURCHASES_PER_ROUND);
    return wanted.map((productId) => ({
      ...{ method: "POST", path: "/v1/purchases", headers, body: JSON.stringify({ productId }) },
    }));
  });
}

function reportOf(results: Map<Kind, Measured[]>, bare: Measured[], bytes: number): Report {
  const rows = [...results].map(([kind, own], at) => {
    const middle = (which: keyof Measured) => median(own.map((result) => result[which]));
    const ratios = own.map(({ perSecond }, round) => perSecond / bare[round]!.perSecond);
    const ratio = median(ratios);
    const range = `${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)}`;
    return [
      kind.name,
      ...[middle("perSecond").toFixed(0), ms(middle("p50")), ms(middle("p95")), ms(middle("p99"))],
      ...[middle("nodeMs").toFixed(3), middle("databaseMs").toFixed(3)],
      ...(kind.aim
        ? comparedWithAim(ratio.toFixed(3), `≥ ${kind.aim}`, ratio >= kind.aim)
        : [at === 0 ? "1" : ratio.toFixed(3), "", ""]),
      at === 0 ? "" : range,
    ];
  });
  const times = ["per second", "p50 ms", "p95 ms", "p99 ms", "Node CPU ms", "PostgreSQL CPU ms"];
  return {
    columns: ["request", ...times, "of bare", "aim", "met", "lowest–highest"],
    rows,
    notes: [
      `10,000 products, ${CONNECTIONS} connections, ${ROUNDS} rounds in turn, medians; \`of bare\` is the median of each round's own ratio. The list's answer has ${bytes} bytes. The load, the service and PostgreSQL share the machine.`,
    ],
  };
}
