import { setTimeout as sleep } from "node:timers/promises";
import { type Client, clientOf } from "./client.ts";
import { type NewProducts, nextOf, publishProduct } from "./publishing.ts";
import { type Quantiles, quantilesOf } from "./quantile.ts";
import type { Card } from "./questions.ts";
import type { Node, Shop } from "./shop.ts";

const ROUNDS = 120;
const ASK_AGAIN_MS = 5;
const GIVE_UP_MS = 10_000;
/** Above all other prices, and higher each time. */
const TOP_PRICE = 900_000;
const NEWEST = "/v1/products?sort=publishedAt&limit=5";
const DEAREST = "/v1/products?sort=price&order=desc&currency=USD&limit=5";

export interface Delays {
  published: { here: Quantiles; there: Quantiles };
  priced: { here: Quantiles; there: Quantiles };
}

/** The delay from the answer of a change to the first list with it, on the same node and on another. */
export async function measureDelays(shop: Shop, other: Node, newProducts: NewProducts) {
  const here = clientOf(shop.origin, shop.reader);
  const there = clientOf(other.origin, shop.reader);
  const times = { published: both(), priced: both() };
  const offered: string[] = [];
  const note = async (into: Both, path: string, isThere: (card: Card) => boolean) => {
    const [near, far] = await Promise.all([here, there].map((client) => untilListed(client, path, isThere)));
    into.here.push(near!);
    into.there.push(far!);
  };
  for (let round = 0; round < ROUNDS; round++) {
    const product = await nextOf(newProducts);
    const id = await publishProduct(here, { ...product, currency: "USD", price: 5 });
    await note(times.published, NEWEST, (card) => card.id === id);
    const price = TOP_PRICE + round;
    await here.patch(`/v1/products/${id}`, { price });
    await note(times.priced, DEAREST, (card) => card.id === id && card.price === price);
    offered.push(id);
  }
  const delays: Delays = {
    published: quantilesOfBoth(times.published),
    priced: quantilesOfBoth(times.priced),
  };
  return { delays, offered };
}

interface Both {
  here: number[];
  there: number[];
}
const both = (): Both => ({ here: [], there: [] });
const quantilesOfBoth = ({ here, there }: Both) => ({ here: quantilesOf(here), there: quantilesOf(there) });

async function untilListed(client: Client, path: string, isThere: (card: Card) => boolean): Promise<number> {
  const begun = performance.now();
  for (;;) {
    const { data } = await client.get<{ data: Card[] }>(path);
    const waited = performance.now() - begun;
    if (data.some(isThere)) return waited;
    if (waited > GIVE_UP_MS) throw new Error(`${path} does not show a change after ${GIVE_UP_MS} ms`);
    await sleep(ASK_AGAIN_MS);
  }
}
