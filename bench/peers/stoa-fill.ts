import { renderCard } from "@stoa/service/catalogue/card.ts";
import { toVector } from "@stoa/service/catalogue/search.ts";
import { fold } from "@stoa/service/catalogue/words.ts";
import type { Context } from "@stoa/service/context.ts";
import { newUuid } from "@stoa/service/ids.ts";
import { createUser } from "@stoa/service/people/users.ts";
import { CATEGORIES, productAt } from "./products.ts";

const SELLERS = 40;
const BATCH = 1_000;

interface Seller {
  id: string;
  name: string;
}

/** Fills an empty shop with the products of every peer; answers their ids. Rows are written by SQL, texts are the rooms' own. */
export async function fillStoa(ctx: Context, size: number): Promise<string[]> {
  await openCategories(ctx);
  const sellers = await openShops(ctx);
  const ids: string[] = [];
  for (let from = 0; from < size; from += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, size - from) }, (_, at) => from + at);
    const rows = numbers.map((at) => rowOf(at, size, sellers[at % SELLERS]!));
    await insert(ctx, rows);
    ids.push(...rows.map(({ id }) => id));
  }
  await ctx.pool.query(
    `insert into search_words (word, listings)
     select word, ndoc from ts_stat('select search from listings') where length(word) >= 4`,
  );
  await ctx.pool.query("vacuum analyze");
  return ids;
}

/** Those of the products, side by side: no peer looks below a category. */
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

/** Sales fall off with the place on the shelf, as they do in shops; the peers keep none with a product. */
function rowOf(at: number, size: number, seller: Seller) {
  const { createdAt, title, ...product } = productAt(at);
  const purchases = Math.floor(2_000 / (1 + ((at * 7_919) % size)));
  const facts = {
    ...product,
    title,
    id: newUuid(createdAt),
    lang: "en",
    type: "PROMPT",
    status: "published" as const,
    currency: "USD",
    compatibility: ["openai"],
    authorId: seller.id,
    authorName: seller.name,
    authorVerified: false,
    images: [],
    createdAt,
    updatedAt: createdAt,
    publishedAt: createdAt,
  };
  return {
    ...facts,
    card: renderCard(facts),
    foldedTitle: fold(title),
    search: toVector(facts),
    content: `You are an expert in ${product.category}. ${product.description}`,
    purchases,
    views: purchases * 12,
  };
}

async function insert(ctx: Context, rows: ReturnType<typeof rowOf>[]): Promise<void> {
  await ctx.pool.query(
    `with given as (
       select * from jsonb_to_recordset($1::jsonb) as r (
         id uuid, "authorId" uuid, title text, "foldedTitle" text, description text, category text, "priceMinor" int,
         compatibility text[], tags text[], card text, search text, "createdAt" timestamptz, content text,
         purchases bigint, views bigint)),
     made as (
       insert into products (id, author_id, title, description, lang, type, status, category, price_minor, currency,
                             compatibility, tags, requirements, features, models, preview, version, card,
                             created_at, updated_at, published_at, first_published_at)
       select id, "authorId", title, description, 'en', 'PROMPT', 'published', category, "priceMinor", 'USD',
              compatibility, tags, '{}', '{}', '{}', '', '1.0.0', card,
              "createdAt", "createdAt", "createdAt", "createdAt"
         from given),
     versions as (
       insert into product_versions (product_id, version, numbers, content, content_format, variables, changelog,
                                     created_at)
       select id, '1.0.0', '{1,0,0}', content, 'text', '[]', '', "createdAt" from given),
     counted as (
       insert into product_stats (product_id, views, purchases) select id, views, purchases from given
       returning *)
     insert into listings (product_id, author_id, status, type, category, lang, currency, price_minor, compatibility,
                           tags, title, created_at, updated_at, published_at, purchases, views, rating_mean,
                           rating_score, trending, search)
     select id, "authorId", 'published', 'PROMPT', category, 'en', 'USD', "priceMinor", compatibility, tags,
            "foldedTitle", "createdAt", "createdAt", "createdAt", c.purchases, c.views, c.rating_mean, c.rating_score,
            c.trending, search::tsvector
       from given join counted c on c.product_id = given.id`,
    [JSON.stringify(rows)],
  );
}
