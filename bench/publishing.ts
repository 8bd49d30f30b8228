import { type CreateProduct, toVisibleLine } from "@stoa/contract";
import { toUuid } from "@stoa/service/core/ids.ts";
import { toDecimal } from "@stoa/service/core/money/amount.ts";
import type pg from "pg";
import { type Client, clientOf } from "./client.ts";
import { makeProducts } from "./products.ts";
import type { Shop } from "./shop.ts";
import { readTexts } from "./texts.ts";

const SEED = 20_261_124;
const MOST = 10_000;
const ONE_BY_ONE = 200;
const AT_ONCE = 8;
const TOGETHER = 600;
const IN_A_FILE = 500;

export type NewProduct = Partial<CreateProduct>;
export type NewProducts = AsyncGenerator<NewProduct, never>;

export const nextOf = async (newProducts: NewProducts): Promise<NewProduct> =>
  (await newProducts.next()).value;

/** Products for imports during the measurement, generated like the shop's own with another seed. */
export async function* generateProducts(prompts: string, pool: pg.Pool): NewProducts {
  const { rows } = await pool.query<{ slug: string }>("select slug from categories order by 1");
  const texts = await readTexts(
    prompts,
    rows.map(({ slug }) => slug),
  );
  for (const product of makeProducts(texts, [{ id: "", name: "", verified: false }], MOST, SEED)) {
    const { title, description, lang, category, compatibility, tags, content, currency } = product;
    // A generated title may have characters that the API refuses.
    if (product.type !== "PROMPT" || title !== toVisibleLine(title)) continue;
    yield {
      ...{ title, description, lang, tags, content, currency, type: "PROMPT", category: category! },
      compatibility: compatibility as CreateProduct["compatibility"],
      price: toDecimal(product.priceMinor, currency),
    };
  }
  throw new Error(`more than ${MOST} products were asked for`);
}

export async function publishProduct(client: Client, product: NewProduct): Promise<string> {
  const { id } = await client.post<{ id: string }>("/v1/products", product);
  await client.post(`/v1/products/${id}/publish`);
  return id;
}

interface Imported {
  published: number;
  products: { id: string }[];
}

/** Of JSON Lines. */
export async function makeFile(newProducts: NewProducts): Promise<string> {
  const lines: string[] = [];
  while (lines.length < IN_A_FILE) lines.push(JSON.stringify(await nextOf(newProducts)));
  return lines.join("\n");
}

export async function importFile(client: Client, file: string, publish: boolean): Promise<string[]> {
  const path = `/v1/products/import?publish=${publish}`;
  const { published, products } = await client.post<Imported>(path, file);
  if (published !== (publish ? IN_A_FILE : 0)) throw new Error(`an import published ${published} products`);
  return products.map(({ id }) => id);
}

/** Products per second, by kind of request. */
export async function measurePublishing({ origin, buyers }: Shop, newProducts: NewProducts) {
  const clients = buyers.slice(0, AT_ONCE).map((key) => clientOf(origin, key));
  const ways: Record<string, () => Promise<string[]>> = {
    "one after the other": () => publishAll(clients.slice(0, 1), newProducts, ONE_BY_ONE),
    [`${AT_ONCE} sellers at once`]: () => publishAll(clients, newProducts, TOGETHER),
    [`a file of ${IN_A_FILE} drafts`]: () =>
      makeFile(newProducts).then((file) => importFile(clients[0]!, file, false)),
    [`a file of ${IN_A_FILE}, published`]: () =>
      makeFile(newProducts).then((file) => importFile(clients[0]!, file, true)),
  };
  const perSecond: Record<string, number> = {};
  const offered: string[] = [];
  for (const [name, run] of Object.entries(ways)) {
    const begun = performance.now();
    const ids = await run();
    perSecond[name] = (ids.length * 1000) / (performance.now() - begun);
    offered.push(...ids);
  }
  return { perSecond, offered };
}

async function publishAll(clients: Client[], newProducts: NewProducts, count: number): Promise<string[]> {
  const ids: string[] = [];
  let begun = 0;
  const work = async (client: Client) => {
    while (begun++ < count) ids.push(await publishProduct(client, await nextOf(newProducts)));
  };
  await Promise.all(clients.map(work));
  return ids;
}

/** Restores the size of a reused shop. Listings first, so that their triggers run. */
export async function deleteProducts(pool: pg.Pool, offered: string[]): Promise<void> {
  const ids = offered.map((id) => toUuid("prod", id));
  const { rows } = await pool.query<{ table: string }>(
    "select conrelid::regclass::text as table from pg_constraint where confrelid = 'products'::regclass",
  );
  await pool.query("delete from listings where product_id = any($1::uuid[])", [ids]);
  // Triggers protect published versions, so they are switched off here.
  await pool.query("set session_replication_role = replica");
  for (const { table } of rows)
    await pool.query(`delete from ${table} where product_id = any($1::uuid[])`, [ids]);
  await pool.query("delete from products where id = any($1::uuid[])", [ids]);
  await pool.query("reset session_replication_role");
}
