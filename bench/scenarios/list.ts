import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Lane } from "../load.ts";
import { type Measured, measure, type Target } from "../measure.ts";
import type { Options } from "../options.ts";
import { atEnd, startScript } from "../processes.ts";
import { median } from "../quantile.ts";
import { against, ms, type Report } from "../report.ts";
import { openShop, type Shop } from "../shop.ts";

const ROUNDS = 5;
const WARM_UP_SECONDS = 2;
const LIST_SECONDS = 4;
const OTHER_SECONDS = 2;
const CONNECTIONS = 16;
/** More than a buyer can buy in a round. */
const PURCHASES_PER_ROUND = 600;
const LIST = "/v1/products?limit=20";
const AIM_OF_BARE = 0.05;

/** A kind of request; `lanes` makes those of one round. */
interface Kind {
  name: string;
  target: Target;
  seconds: number;
  lanes(round: number): Lane[];
}

/** The catalogue under load beside a bare `node:http` that returns the same bytes, a few seconds each in turn. */
export async function measureList(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const bytes = await listOnce(shop);
  const bare = {
    ...{ name: "bare `node:http`, the same bytes", target: await startBare(bytes), seconds: LIST_SECONDS },
    lanes: () => [gets(shop, [LIST])],
  };
  const kinds = [bare, ...kindsOf(shop)];
  const results = new Map<Kind, Measured[]>(kinds.map((kind) => [kind, []]));
  const once = ({ target, lanes }: Kind, round: number, seconds: number) =>
    measure(target, { seconds, connections: CONNECTIONS, lanes: lanes(round) });
  for (const kind of kinds) await once(kind, 0, WARM_UP_SECONDS);
  for (let round = 1; round <= ROUNDS; round++) {
    for (const kind of kinds) results.get(kind)!.push(await once(kind, round, kind.seconds));
  }
  return reportOf(results, results.get(bare)!, bytes.length);
}

async function listOnce({ origin, reader }: Shop): Promise<Buffer> {
  const reply = await fetch(`${origin}${LIST}`, { headers: { authorization: `Bearer ${reader}` } });
  return Buffer.from(await reply.arrayBuffer());
}

async function startBare(bytes: Buffer): Promise<Target> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-bench-bare-"));
  atEnd(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "answer.json"), bytes);
  const { pid, says } = startScript(new URL("../bare.ts", import.meta.url), [join(folder, "answer.json")]);
  const [origin] = await says(/^http.*/);
  return { origin, pid, backends: async () => [] };
}

function kindsOf(shop: Shop): Kind[] {
  const { words, category, products } = shop;
  const kind = (name: string, lanes: Kind["lanes"], seconds = OTHER_SECONDS): Kind => ({
    ...{ name, target: shop, seconds, lanes },
  });
  const list = (name: string, query: string) => kind(name, () => [gets(shop, [LIST + query])]);
  const filters = `&category=${category}&provider=openai&minPrice=1&maxPrice=50`;
  return [
    kind(`\`GET ${LIST}\``, () => [gets(shop, [LIST])], LIST_SECONDS),
    list("list, filtered: category, provider, price", filters),
    list("list, cheapest first", "&sort=price&order=asc"),
    list("list, most popular first", "&sort=popularity"),
    list(`list, search for a common word (${words.common})`, `&search=${words.common}`),
    list(`list, search for a rare word (${words.rare})`, `&search=${words.rare}`),
    kind("`GET /v1/products/{id}`", () => dealt(products).map((ids) => gets(shop, ids.map(pathOf)))),
    kind("`POST /v1/purchases`", (round) => purchases(shop, round)),
  ];
}

const gets = ({ reader }: Shop, paths: string[]): Lane =>
  paths.map((path) => ({ method: "GET", path, headers: { authorization: `Bearer ${reader}` } }));

const pathOf = (product: string) => `/v1/products/${product}`;

/** The products, dealt out to the connections. */
const dealt = (products: string[]): string[][] =>
  Array.from({ length: CONNECTIONS }, (_, lane) => products.filter((_, at) => at % CONNECTIONS === lane));

/** Nobody buys a product twice, and no two at once buy the same: every request succeeds. */
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
    const middle = (which: keyof Measured) => median(own.map((outcome) => outcome[which]));
    const ratios = own.map(({ perSecond }, round) => perSecond / bare[round]!.perSecond);
    const ratio = median(ratios);
    const range = `${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)}`;
    return [
      kind.name,
      ...[middle("perSecond").toFixed(0), ms(middle("p50")), ms(middle("p95")), ms(middle("p99"))],
      ...[middle("nodeMs").toFixed(3), middle("databaseMs").toFixed(3)],
      ...(at === 1
        ? against(ratio.toFixed(3), `≥ ${AIM_OF_BARE}`, ratio >= AIM_OF_BARE)
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
