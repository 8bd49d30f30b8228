import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { permissions } from "@stoa/contract";
import { createKeyAsOperator } from "@stoa/service/accounts/api-keys/keys.ts";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import { openBase } from "@stoa/service/base.ts";
import { verifyLedger } from "@stoa/service/commerce/ledger/verification.ts";
import { readConfig } from "@stoa/service/core/config/config.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { toId } from "@stoa/service/core/ids.ts";
import { type Connection, openDatabase, openPool } from "@stoa/service/platform/db/database.ts";
import { startEmbedded } from "@stoa/service/platform/db/embedded.ts";
import { clusterPathsOf, findPostmaster } from "@stoa/service/platform/db/embedded-cluster.ts";
import { problemsOf } from "../ledger-problems.ts";
import { argumentsOfStart, atEnd, start } from "../processes.ts";
import { PAGE_SIZE, type Queries, type Request } from "./queries.ts";
import { fillStoa } from "./stoa-fill.ts";
import { BUYERS, type CheckedPage, emailOf, type OrderApi, type PaidOrders, type Running } from "./system.ts";

const AMPLE = [{ requests: 1_000_000_000, seconds: 86_400 }];
/** The rate limiter runs and refuses nothing. */
const WITHOUT_LIMITS = { plans: { enterprise: { quotas: AMPLE } } };

/** Our service as users start it, with its own PostgreSQL in a new folder. */
export async function startStoa(work: string, size: number): Promise<Running> {
  await mkdir(work, { recursive: true });
  const dataDir = await mkdtemp(join(work, "stoa-"));
  atEnd(() => rm(dataDir, { recursive: true, force: true }));
  const database = await startEmbedded(dataDir);
  atEnd(() => database.stop());
  const shop = await fill(dataDir, database.connection, size);
  const service = await startService(dataDir);
  const postmaster = await findPostmaster(await clusterPathsOf(dataDir));
  const readPaid = () => readPaidOrders(database.connection);
  return {
    ...service,
    postmaster: postmaster!.pid,
    ways: [
      { name: "Stoa", asks: asksOf(shop, asBefore), look },
      { name: "Stoa, asked anew", asks: withoutDetail(asksOf(shop, neverTwice())), look },
    ],
    orders: ordersOf(shop, readPaid),
    async end() {
      await service.end();
      await database.stop();
    },
  };
}

interface Shop {
  /** An API key with permissions, rate limits and views. */
  key: string;
  products: string[];
  /** API keys of the buyers. */
  buyers: string[];
}

async function fill(dataDir: string, target: Connection["target"], size: number): Promise<Shop> {
  const base = await openBase(readConfig({ STOA_DATA_DIR: dataDir, STOA_LOG_LEVEL: "warn" }), { target });
  try {
    const ids = await fillStoa(base.ctx, { target }, size);
    const buyers = await Promise.all(Array.from({ length: BUYERS }, (_, at) => keyOf(base.ctx, emailOf(at))));
    return {
      key: await keyOf(base.ctx, "reader@bench.example"),
      buyers,
      products: ids.map((id) => toId("prod", id)),
    };
  } finally {
    await base.close();
  }
}

/** Creates a user with an API key. */
async function keyOf(ctx: Context, email: string): Promise<string> {
  const userId = await createUser(ctx, { email, name: "Buyer", plan: "enterprise" });
  const { key } = await createKeyAsOperator(ctx, { userId, name: "bench", permissions: [...permissions] });
  return key;
}

const ordersOf = ({ products, buyers }: Shop, readPaid: () => Promise<PaidOrders>): OrderApi => ({
  ways: [{ name: "Stoa", id: "stoa" }],
  shop: null,
  purchaseOf: (product, buyer) => ({ product: products[product]!, buyer: buyers[buyer]! }),
  readPaid,
});

/** Completed orders with a receipt and a correct ledger. */
async function readPaidOrders(target: Connection["target"]): Promise<PaidOrders> {
  const pool = openPool({ target, maxConnections: 2 });
  try {
    const problems = problemsOf((await verifyLedger(openDatabase(pool))).problems);
    if (problems.length > 0) throw new Error(`the ledger is wrong: ${problems.slice(0, 5).join(" ")}`);
    const { rows } = await pool.query<PaidOrders>(
      `select count(*)::int as count, coalesce(sum(total_minor), 0)::int as "totalMinor"
         from orders where status = 'completed' and receipt_number is not null`,
    );
    return rows[0]!;
  } finally {
    await pool.end();
  }
}

/** The database runs already, so the service joins it and finds a filled shop. */
async function startService(dataDir: string) {
  const plansFile = join(dataDir, "plans.json");
  await writeFile(plansFile, JSON.stringify(WITHOUT_LIMITS));
  const env = {
    STOA_DATA_DIR: dataDir,
    PORT: "0",
    DATABASE_URL: "",
    STOA_ENVIRONMENT: "test",
    STOA_PLANS_FILE: plansFile,
  };
  const service = start(process.execPath, argumentsOfStart(), { env, errors: "discard" });
  const [, origin] = await service.waitForLine(/API\s+(http:\/\/\S+)\/v1 /);
  return { origin: origin!, pid: service.pid, end: service.end };
}

/** Cents to add to a price bound. */
type Cents = () => number;
const asBefore: Cents = () => 0;

/** Makes each query unique by other cents, so that no cache can answer. */
function neverTwice(): Cents {
  let asked = 0;
  return () => ++asked;
}

const withoutDetail = ({ detail: _, ...lists }: Queries): Partial<Queries> => lists;

/** Above all prices: such a bound does not change the answer. */
const ABOVE_ALL = 1_000;

function asksOf({ key, products }: Shop, cents: Cents): Queries {
  const headers = { authorization: `Bearer ${key}` };
  const get = (path: string): Request => ({ method: "GET", path, headers });
  const list = (query: string, page = 1) => {
    const extra = cents();
    const bound = extra > 0 ? `&maxPrice=${(ABOVE_ALL + extra / 100).toFixed(2)}` : "";
    return get(`/v1/products?limit=${PAGE_SIZE}&page=${page}&${query}${bound}`);
  };
  return {
    newest: (page) => list("sort=publishedAt", page),
    inCategory: (category, page) => list(`category=${category}&sort=publishedAt`, page),
    inPriceRange: (category, from, to) => {
      const extra = cents();
      const [least, most] = [from + (extra % 20) / 100, to + (Math.floor(extra / 20) % 2_000) / 100];
      const bounds = `minPrice=${least.toFixed(2)}&maxPrice=${most.toFixed(2)}`;
      return get(`/v1/products?limit=${PAGE_SIZE}&category=${category}&${bounds}&sort=price&order=asc`);
    },
    cheapest: (page) => list("sort=price&order=asc", page),
    search: (words) => list(`search=${encodeURIComponent(words)}`),
    detail: (at) => get(`/v1/products/${products[at % products.length]}`),
  };
}

interface Shown {
  title: string;
  description: string;
  price: number;
  category: string;
  tags: string[];
}

function look(answer: string): CheckedPage {
  const { data, meta } = JSON.parse(answer) as { data: Shown[] | Shown; meta: { total?: number } };
  const products = [data].flat().map(({ title, description, price, category, tags }) => ({
    title,
    description,
    priceMinor: Math.round(price * 100),
    labels: [category, ...tags],
  }));
  return { products, found: meta.total ?? null };
}
