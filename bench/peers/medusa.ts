import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { start } from "../processes.ts";
import { type Copying, databaseOf, fillDatabase, skuAt } from "./filling.ts";
import { install, QUIETLY, readPeerFile, untilHealthy, versionOf } from "./installing.ts";
import type { Client, PeerPostgres } from "./peer-postgres.ts";
import { freePort } from "./ports.ts";
import { PAGE_SIZE, type Queries, type Request } from "./queries.ts";
import {
  type ApiVariant,
  type CheckedPage,
  emailOf,
  type OrderApi,
  type PaidOrders,
  type Peer,
  type Running,
} from "./system.ts";

const LOOK_AGAIN_MS = 500;
const NAME = "medusa";
const COMMAND = "node_modules/@medusajs/cli/cli.js";
const PRODUCTS = new URL("./products.ts", import.meta.url).href;

const copying: Copying = {
  tables: [
    "product",
    "product_option",
    "product_option_value",
    "product_product_option",
    "product_product_option_value",
    "product_variant",
    "product_variant_option",
    "price_set",
    "product_variant_price_set",
    "price",
    "product_category_product",
    "product_tags",
    "product_sales_channel",
    "search_pg_product_v1",
  ],
  ids: /^(id|(product|option|product_option|product_product_option|product_option_value|option_value|variant|price_set)_id)$/,
  idOf: (column) => `t."${column}" || '_' || k`,
  unique: /^(handle|sku)$/,
  changed: (table, column) => {
    if (table === "product" && column === "title") return "t.title || ' v' || k";
    if (table === "product" && column === "created_at") return "t.created_at - k * interval '1 hour'";
    if (column === "document" || column === "indexed")
      return `t.${column} || jsonb_build_object('id', t.id || '_' || k, 'title', (t.${column}->>'title') || ' v' || k)`;
    return undefined;
  },
};

/** Medusa in its own folder. */
export async function medusa(work: string, postgres: PeerPostgres): Promise<Peer> {
  const folder = join(work, NAME);
  const version = await versionOf(NAME, "@medusajs/medusa");
  const run = (database: string, env: Record<string, string>, ...args: string[]) =>
    start(process.execPath, [COMMAND, ...args], {
      cwd: folder,
      env: { ...QUIETLY, ...env, DATABASE_URL: postgres.urlOf(database) },
    });

  async function load(database: string, count: number): Promise<void> {
    // The index is declared after the load, so that it is built once and not per product.
    await rm(join(folder, "src"), { recursive: true });
    await run(database, {}, "db:migrate", "--skip-search").output();
    await run(database, { PRODUCTS, COUNT: String(count) }, "exec", "./seed.js").output();
    await install(NAME, folder);
    await run(database, {}, "db:migrate:search", "--execute-all-search").output();
    // The server fills the index after its start.
    const { server } = await serve(database);
    await postgres.in(database, untilIndexed);
    await server.end();
  }

  async function serve(database: string) {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const server = run(database, { PORT: String(port) }, "start");
    await untilHealthy(server, origin);
    return { server, origin };
  }

  const filler = { name: NAME, version, copying, loader: await readPeerFile(NAME, "seed.js"), load };
  return {
    name: "Medusa",
    version,
    async prepare(size) {
      await install(NAME, folder);
      await fillDatabase(postgres, filler, size);
    },
    async start(size) {
      const { database, drop } = await postgres.copy(databaseOf(filler, size));
      const { server, origin } = await serve(database);
      const shop = await postgres.in(database, readShop);
      const readPaid = () => postgres.in(database, readPaidOrders);
      return {
        origin,
        pid: server.pid,
        postmaster: postgres.pid,
        ways: waysOf(shop),
        orders: ordersOf(shop, readPaid),
        async end() {
          await server.end();
          await drop();
        },
      } satisfies Running;
    },
  };
}

async function untilIndexed(client: Client): Promise<void> {
  const query = "select from search_index_version where status = 'ready'";
  while ((await client.query(query)).rowCount === 0) await sleep(LOOK_AGAIN_MS);
}

interface Shop {
  key: string;
  region: string;
  categories: Map<string, string>;
  products: string[];
  /** Ids of variants by SKU. */
  variants: Map<string, string>;
}

async function readShop(client: Client): Promise<Shop> {
  const idsOf = async (query: string) => (await client.query<{ id: string; name: string }>(query)).rows;
  const [key] = await idsOf("select token as id from api_key where type = 'publishable' and title = 'web'");
  const [region] = await idsOf("select id from region");
  const categories = await idsOf("select id, handle as name from product_category");
  const products = await idsOf("select id from product order by created_at desc, id limit 10000");
  const variants = await idsOf("select id, sku as name from product_variant");
  return {
    key: key!.id,
    region: region!.id,
    categories: new Map(categories.map(({ id, name }) => [name, id])),
    products: products.map(({ id }) => id),
    variants: new Map(variants.map(({ id, name }) => [name, id])),
  };
}

const ordersOf = ({ key, region, variants }: Shop, readPaid: () => Promise<PaidOrders>): OrderApi => ({
  ways: [
    { name: "Medusa, as in its guides", id: "medusaGuide" },
    { name: "Medusa, fewest requests", id: "medusaShort" },
  ],
  shop: { key, region },
  purchaseOf: (product, buyer) => ({ product: variants.get(skuAt(product))!, buyer: emailOf(buyer) }),
  readPaid,
});

/** Orders whose payment is authorized: the built-in provider captures none by itself. */
async function readPaidOrders(client: Client): Promise<PaidOrders> {
  const { rows } = await client.query<PaidOrders>(
    `select count(*)::int as count, coalesce(round(sum(p.amount) * 100), 0)::int as "totalMinor"
       from "order" o
       join order_payment_collection l on l.order_id = o.id
       join payment_collection c on c.id = l.payment_collection_id and c.status = 'authorized'
       join payment p on p.payment_collection_id = c.id
      where o.status = 'pending' and not o.is_draft_order`,
  );
  return rows[0]!;
}

/** Selecting less than a whole category or price omits it from the answer. */
const FIELDS = "id,title,description,handle,created_at,*variants.calculated_price,tags.value,*categories";

function waysOf(shop: Shop): ApiVariant[] {
  return [
    { name: "Medusa, store", asks: storeAsks(shop), look: lookAtStore },
    { name: "Medusa, Search Module", asks: searchModuleAsks(shop), look: lookAtSearchModule },
  ];
}

/** The store's lists can neither filter nor sort by price. */
function storeAsks({ key, region, categories, products }: Shop): Partial<Queries> {
  const headers = { "x-publishable-api-key": key };
  const get = (path: string): Request => ({ method: "GET", path, headers });
  const common = `region_id=${region}&fields=${FIELDS}`;
  const list = (query: string, page = 1) =>
    get(`/store/products?limit=${PAGE_SIZE}&offset=${(page - 1) * PAGE_SIZE}&${common}&${query}`);
  return {
    newest: (page) => list("order=-created_at", page),
    inCategory: (category, page) => list(`category_id=${categories.get(category)}&order=-created_at`, page),
    search: (words) => list(`q=${encodeURIComponent(words)}`),
    detail: (at) => get(`/store/products/${products[at % products.length]}?${common}`),
  };
}

interface InStore {
  title: string;
  description: string;
  variants: { calculated_price: { calculated_amount: number } }[];
  tags: { value: string }[];
  categories: { handle: string }[];
}

function lookAtStore(answer: string): CheckedPage {
  type Answer = { products?: InStore[]; product?: InStore; count?: number };
  const { products, product, count } = JSON.parse(answer) as Answer;
  const seen = (products ?? [product!]).map(({ title, description, variants, tags, categories }) => ({
    title,
    description,
    priceMinor: Math.round(variants[0]!.calculated_price.calculated_amount * 100),
    labels: [...categories.map(({ handle }) => handle), ...tags.map(({ value }) => value)],
  }));
  return { products: seen, found: count ?? null };
}

function searchModuleAsks({ key }: Shop): Partial<Queries> {
  const headers = { "x-publishable-api-key": key, "content-type": "application/json" };
  const ask = (filters: object, order: object | undefined, page = 1): Request => {
    const pagination = { take: PAGE_SIZE, skip: (page - 1) * PAGE_SIZE, ...(order && { order }) };
    const body = JSON.stringify({ entity: "product", filters, pagination });
    return { method: "POST", path: "/store/search", headers, body };
  };
  const [newest, cheapest] = [{ created_at: "DESC" }, { price: "ASC" }];
  return {
    newest: (page) => ask({}, newest, page),
    inCategory: (category, page) => ask({ categories: category }, newest, page),
    inPriceRange: (category, from, to) =>
      ask({ categories: category, price: { $gte: from, $lte: to } }, cheapest),
    cheapest: (page) => ask({}, cheapest, page),
    search: (words) => ask({ q: words }, undefined),
  };
}

interface Hit {
  document: { title: string; description: string; price: number; categories: string[]; tags: string[] };
}

function lookAtSearchModule(answer: string): CheckedPage {
  const { results } = JSON.parse(answer) as { results: { hits: Hit[]; metadata: { count: number } }[] };
  const { hits, metadata } = results[0]!;
  const products = hits.map(({ document: { title, description, price, categories, tags } }) => ({
    title,
    description,
    priceMinor: Math.round(price * 100),
    labels: [...categories, ...tags],
  }));
  return { products, found: metadata.count };
}
