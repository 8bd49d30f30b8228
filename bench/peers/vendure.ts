import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { start } from "../processes.ts";
import { type Copying, databaseOf, fillDatabase, skuAt } from "./filling.ts";
import { install, QUIETLY, readPeerFile, untilHealthy, versionOf } from "./installing.ts";
import type { Client, PeerPostgres } from "./peer-postgres.ts";
import { freePort } from "./ports.ts";
import { productAt } from "./products.ts";
import { PAGE_SIZE, type Queries, type Request } from "./queries.ts";
import {
  type CheckedPage,
  emailOf,
  type OrderApi,
  type PaidOrders,
  type Peer,
  type Running,
  type SeenProduct,
} from "./system.ts";

const NAME = "vendure";
const PRODUCTS = new URL("./products.ts", import.meta.url).href;
/** Above all ids of originals. */
const ID_STEP = 1_000_000;

const copying: Copying = {
  tables: [
    "product",
    "product_translation",
    "product_variant",
    "product_variant_translation",
    "product_variant_price",
    "stock_level",
    "product_channels_channel",
    "product_variant_channels_channel",
    "product_facet_values_facet_value",
    "collection_product_variants_product_variant",
    "search_index_item",
  ],
  ids: /^(id|baseId|productId|variantId|productVariantId)$/,
  idOf: (column) => `t."${column}" + k * ${ID_STEP}`,
  unique: /^(slug|sku)$/,
  changed: (table, column) => {
    if (/^(name|productName|productVariantName)$/.test(column)) return `t."${column}" || ' v' || k`;
    if (table === "product" && column === "createdAt") return `t."createdAt" - k * interval '1 hour'`;
    return undefined;
  },
};

/** Vendure in its own folder. */
export async function vendure(work: string, postgres: PeerPostgres): Promise<Peer> {
  const folder = join(work, NAME);
  const version = await versionOf(NAME, "@vendure/core");
  const run = (database: string, env: Record<string, string>, script: string) =>
    start(process.execPath, [script], {
      cwd: folder,
      env: { ...QUIETLY, ...env, DATABASE_URL: postgres.urlOf(database) },
    });
  const load = (database: string, count: number) =>
    run(database, { PRODUCTS, COUNT: String(count), SYNCHRONIZE: "yes" }, "load.mjs").output();

  const filler = { name: NAME, version, copying, loader: await readPeerFile(NAME, "load.mjs"), load };
  return {
    name: "Vendure",
    version,
    async prepare(size) {
      await install(NAME, folder);
      await mkdir(join(folder, "assets"), { recursive: true });
      await fillDatabase(postgres, filler, size);
    },
    async start(size) {
      const port = await freePort();
      const origin = `http://127.0.0.1:${port}`;
      const { database, drop } = await postgres.copy(databaseOf(filler, size));
      const server = run(database, { PORT: String(port) }, "server.js");
      await untilHealthy(server, origin);
      const way = { name: "Vendure", asks: asksOf(size), look };
      const shop = await postgres.in(database, readShop);
      const readPaid = () => postgres.in(database, readPaidOrders);
      return {
        origin,
        pid: server.pid,
        postmaster: postgres.pid,
        ways: [way],
        orders: ordersOf(shop, readPaid),
        async end() {
          await server.end();
          await drop();
        },
      } satisfies Running;
    },
  };
}

interface Shop {
  shippingMethod: string;
  paymentMethod: string;
  /** Ids of variants by SKU. */
  variants: Map<string, string>;
}

async function readShop(client: Client): Promise<Shop> {
  const namesOf = async (query: string) => (await client.query<{ id: string; name: string }>(query)).rows;
  const [shipping] = await namesOf("select id, code as name from shipping_method");
  const [payment] = await namesOf("select id, code as name from payment_method");
  const variants = await namesOf("select id, sku as name from product_variant");
  return {
    shippingMethod: String(shipping!.id),
    paymentMethod: payment!.name,
    variants: new Map(variants.map(({ id, name }) => [name, String(id)])),
  };
}

const ordersOf = (
  { shippingMethod, paymentMethod, variants }: Shop,
  readPaid: () => Promise<PaidOrders>,
): OrderApi => ({
  ways: [
    { name: "Vendure, as in its guide", id: "vendureGuide" },
    { name: "Vendure, fewest requests", id: "vendureShort" },
  ],
  shop: { shippingMethod, paymentMethod },
  purchaseOf: (product, buyer) => ({ product: variants.get(skuAt(product))!, buyer: emailOf(buyer) }),
  readPaid,
});

async function readPaidOrders(client: Client): Promise<PaidOrders> {
  const { rows } = await client.query<PaidOrders>(
    `select count(*)::int as count, coalesce(sum(p.amount), 0)::int as "totalMinor"
       from "order" o join payment p on p."orderId" = o.id
      where o.state = 'PaymentSettled' and not o.active and p.state = 'Settled'`,
  );
  return rows[0]!;
}

const FOUND =
  "totalItems items{productId productName slug description currencyCode priceWithTax{... on SinglePrice{value} ... on PriceRange{min max}} facetValueIds collectionIds}";
const VARIANT = "id name priceWithTax currencyCode";
/** Facet values are its tags; one of them is the category. */
const PRODUCT = "id name slug description createdAt facetValues{name}";

/** Its search has no price range; variants of a collection have one. */
function asksOf(size: number): Queries {
  const headers = { "content-type": "application/json" };
  const ask = (query: string): Request => ({
    method: "POST",
    path: "/shop-api",
    headers,
    body: JSON.stringify({ query }),
  });
  const place = (page: number) => `take:${PAGE_SIZE},skip:${(page - 1) * PAGE_SIZE}`;
  const search = (input: string, page = 1) =>
    ask(`{search(input:{groupByProduct:true,${place(page)},${input}}){${FOUND}}}`);
  return {
    newest: (page) =>
      ask(
        `{products(options:{${place(page)},sort:{createdAt:DESC}}){totalItems items{${PRODUCT} variants{${VARIANT}}}}}`,
      ),
    inCategory: (category, page) => search(`collectionSlug:"${category}"`, page),
    inPriceRange: (category, from, to) =>
      ask(
        `{collection(slug:"${category}"){productVariants(options:{${place(1)},sort:{price:ASC},filter:{price:{between:{start:${from * 100},end:${to * 100}}}}}){totalItems items{${VARIANT} product{${PRODUCT}}}}}}`,
      ),
    cheapest: (page) => search("sort:{price:ASC}", page),
    search: (words) => search(`term:"${words}"`),
    detail: (at) =>
      ask(`{product(slug:"${productAt(at % size).slug}"){${PRODUCT} updatedAt variants{${VARIANT}}}}`),
  };
}

interface Named {
  name: string;
  description: string;
  facetValues: { name: string }[];
}
interface Priced {
  priceWithTax: number;
}
interface Found {
  productName: string;
  description: string;
  priceWithTax: { value?: number; min?: number };
}
interface Listed<Item> {
  items: Item[];
  totalItems: number;
}

interface Answer {
  errors?: unknown[];
  data: {
    search?: Listed<Found>;
    products?: Listed<Named & { variants: Priced[] }>;
    collection?: { productVariants: Listed<Priced & { product: Named }> };
    product?: Named & { variants: Priced[] };
  };
}

const seen = ({ name, description, facetValues }: Named, { priceWithTax }: Priced): SeenProduct => ({
  title: name,
  description,
  priceMinor: priceWithTax,
  labels: facetValues.map((value) => value.name),
});

/** GraphQL reports errors with status 200. */
function look(answer: string): CheckedPage {
  const { errors, data } = JSON.parse(answer) as Answer;
  if (errors) throw new Error(answer);
  const { search, products, collection, product } = data;
  if (search) return { products: search.items.map(found), found: search.totalItems };
  if (products)
    return {
      products: products.items.map((item) => seen(item, item.variants[0]!)),
      found: products.totalItems,
    };
  if (collection) {
    const { items, totalItems } = collection.productVariants;
    return { products: items.map((item) => seen(item.product, item)), found: totalItems };
  }
  return { products: [seen(product!, product!.variants[0]!)], found: null };
}

const found = ({ productName, description, priceWithTax }: Found): SeenProduct => ({
  title: productName,
  description,
  labels: null,
  priceMinor: priceWithTax.value ?? priceWithTax.min!,
});
