import type { CreateProduct } from "@stoa/contract";
import { toUuid } from "@stoa/service/ids.ts";
import { toDecimal } from "@stoa/service/money/amount.ts";
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

export type Wish = Partial<CreateProduct>;

/** What sellers offer while it is measured: made like the shop's own, of another seed. */
export async function* makeWishes(prompts: string, pool: pg.Pool): AsyncGenerator<Wish> {
  const { rows } = await pool.query<{ slug: string }>("select slug from categories order by 1");
  const texts = await readTexts(
    prompts,
    rows.map(({ slug }) => slug),
  );
  for (const product of makeProducts(texts, [{ id: "", name: "", verified: false }], MOST, SEED)) {
    const { title, description, lang, category, compatibility, tags, content, currency } = product;
    if (product.type !== "PROMPT") continue;
    yield {
      ...{ title, description, lang, tags, content, currency, type: "PROMPT", category: category! },
      compatibility: compatibility as CreateProduct["compatibility"],
      price: toDecimal(product.priceMinor, currency),
    };
  }
}

export async function offer(client: Client, wish: Wish): Promise<string> {
  const { id } = await client.post<{ id: string }>("/v1/products", wish);
  await client.post(`/v1/products/${id}/publish`);
  return id;
}

/** Products a second, by the way in which they come. */
export async function measureOffers({ origin, buyers }: Shop, wishes: AsyncGenerator<Wish>) {
  const clients = buyers.slice(0, AT_ONCE).map((key) => clientOf(origin, key));
  const ways: Record<string, () => Promise<string[]>> = {
    "one after the other": () => offerAll(clients.slice(0, 1), wishes, ONE_BY_ONE),
    [`${AT_ONCE} sellers at once`]: () => offerAll(clients, wishes, TOGETHER),
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

async function offerAll(clients: Client[], wishes: AsyncGenerator<Wish>, count: number): Promise<string[]> {
  const ids: string[] = [];
  let begun = 0;
  const work = async (client: Client) => {
    while (begun++ < count) ids.push(await offer(client, (await wishes.next()).value as Wish));
  };
  await Promise.all(clients.map(work));
  return ids;
}

/** So that a shop that is kept keeps its size. Listings go first, and tell their triggers. */
export async function withdraw(pool: pg.Pool, offered: string[]): Promise<void> {
  const ids = offered.map((id) => toUuid("prod", id));
  const { rows } = await pool.query<{ table: string }>(
    "select conrelid::regclass::text as table from pg_constraint where confrelid = 'products'::regclass",
  );
  await pool.query("delete from listings where product_id = any($1::uuid[])", [ids]);
  // Published versions are kept for ever, but for these.
  await pool.query("set session_replication_role = replica");
  for (const { table } of rows)
    await pool.query(`delete from ${table} where product_id = any($1::uuid[])`, [ids]);
  await pool.query("delete from products where id = any($1::uuid[])", [ids]);
  await pool.query("reset session_replication_role");
}
