import { createUser } from "@stoa/service/accounts/people/users.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { newUuid } from "@stoa/service/core/ids.ts";
import type { Connection } from "@stoa/service/platform/db/database.ts";
import { load } from "../loading.ts";
import type { MadeProduct } from "../products.ts";
import { CATEGORIES, productAt } from "./products.ts";

const SELLERS = 40;

interface Seller {
  id: string;
  name: string;
}

/** Fills an empty shop with the products of the comparison and returns their ids. */
export async function fillStoa(ctx: Context, connection: Connection, size: number): Promise<string[]> {
  await openCategories(ctx);
  const sellers = await openShops(ctx);
  const products = Array.from({ length: size }, (_, at) => madeAt(at, size, sellers[at % SELLERS]!));
  await load(ctx, connection, products);
  return products.map(({ id }) => id);
}

/** Creates flat categories, since the peers ignore subcategories. */
async function openCategories(ctx: Context): Promise<void> {
  await ctx.pool.query("update categories set parent = null");
  await ctx.pool.query(
    "insert into categories (slug, name) select slug, slug from unnest($1::text[]) slug on conflict do nothing",
    [CATEGORIES],
  );
}

const openShops = (ctx: Context): Promise<Seller[]> =>
  Promise.all(
    Array.from({ length: SELLERS }, async (_, at) => {
      const name = `Seller ${at}`;
      return {
        name,
        id: await createUser(ctx, { email: `seller${at}@bench.example`, name, role: "seller" }),
      };
    }),
  );

/** Sales fall with the position, as in real shops; the peers store no sales. */
function madeAt(at: number, size: number, seller: Seller): MadeProduct {
  const { createdAt, ...product } = productAt(at);
  const purchases = Math.floor(2_000 / (1 + ((at * 7_919) % size)));
  return {
    ...product,
    id: newUuid(createdAt),
    lang: "en",
    type: "PROMPT",
    status: "published",
    currency: "USD",
    compatibility: ["openai"],
    authorId: seller.id,
    authorName: seller.name,
    authorVerified: false,
    authorHandle: null,
    authorAvatar: null,
    images: [],
    createdAt,
    updatedAt: createdAt,
    publishedAt: createdAt,
    content: `You are an expert in ${product.category}. ${product.description}`,
    variables: [],
    purchases,
    views: purchases * 12,
    ratingSum: 0,
    ratingCount: 0,
    trending: 0,
  };
}
