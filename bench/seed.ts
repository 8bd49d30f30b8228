import { readFile } from "node:fs/promises";
import { permissions } from "@stoa/contract";
import { renderCard } from "@stoa/service/catalogue/card.ts";
import type { Context } from "@stoa/service/context.ts";
import { newUuid, toId } from "@stoa/service/ids.ts";
import { createKey } from "@stoa/service/keys/keys.ts";
import { hashPassword } from "@stoa/service/people/password-hash.ts";
import { createUser } from "@stoa/service/people/users.ts";
import { startOperatorSession } from "@stoa/service/sign-in/operator-session.ts";

const SELLERS = 40;
const BUYERS = 16;
const SHELF_DAYS = 270;
const DAY_MS = 86_400_000;
const HALF_LIFE_MS = 7 * DAY_MS;
const BATCH = 500;
const FILTERED_CATEGORY = 3;
/** Everybody's. */
export const PASSWORD = "a password of the bench";

export interface Prompt {
  title: string;
  description: string;
  tags: string[];
  compatibility: string[];
  priceMinor: number;
  content: string;
  variables: { name: string; required: boolean }[];
}

export interface Seeded {
  /** Ids as clients see them. */
  products: string[];
  /** API keys of people who own nothing yet. */
  buyers: string[];
  reader: string;
  /** The reader's session token. */
  session: string;
  /** The cookie of a browser without an account. */
  visitor: string;
  /** Addresses of people who sign in with PASSWORD, whose hash this is. */
  logins: string[];
  passwordHash: string;
  category: string;
  /** Words that many and few products hold. */
  words: { common: string; rare: string };
}

export const readPrompts = async (file: string): Promise<Prompt[]> =>
  JSON.parse(await readFile(file, "utf8"));

/**
 * Fills an empty shop: the demo's texts again and again, under numbered titles, over all categories and nine months.
 * The rows are written by SQL, because the rooms' own verbs would take minutes; cards and ids are the rooms' own.
 */
export async function seed(ctx: Context, prompts: Prompt[], count: number): Promise<Seeded> {
  const sellers = await Promise.all(
    Array.from({ length: SELLERS }, async (_, at) => {
      const name = `Seller ${at}`;
      return {
        name,
        id: await createUser(ctx, { email: `seller${at}@bench.example`, name, role: "seller" }),
      };
    }),
  );
  const { rows: categories } = await ctx.pool.query<{ slug: string }>(
    "select slug from categories order by 1",
  );
  const rows = Array.from({ length: count }, (_, at) =>
    rowOf(ctx.now(), at, count, {
      prompt: prompts[at % prompts.length]!,
      copy: Math.floor(at / prompts.length),
      seller: sellers[at % SELLERS]!,
      category: categories[(at * 7) % categories.length]!.slug,
    }),
  );
  for (let from = 0; from < rows.length; from += BATCH) await insert(ctx, rows.slice(from, from + BATCH));
  await ctx.pool.query("vacuum analyze");
  const buyers = await Promise.all(Array.from({ length: BUYERS }, (_, at) => enter(ctx, `buyer${at}`)));
  const reader = await enter(ctx, "reader");
  const visitor = ctx.guests.cookie();
  return {
    products: rows.map((row) => toId("prod", row.id)),
    buyers: buyers.map(({ key }) => key),
    reader: reader.key,
    session: await startOperatorSession(ctx, reader.userId),
    visitor: `${visitor.name}=${visitor.value}`,
    logins: buyers.map(({ email }) => email),
    passwordHash: await givePasswords(ctx),
    category: categories[FILTERED_CATEGORY]!.slug,
    words: wordsOf(prompts),
  };
}

async function enter(ctx: Context, name: string) {
  const email = `${name}@bench.example`;
  const userId = await createUser(ctx, { email, name, plan: "enterprise" });
  const { key } = await createKey(ctx, { userId, name: "bench", permissions: [...permissions] });
  return { userId, email, key };
}

/** Answers the one hash. */
async function givePasswords(ctx: Context): Promise<string> {
  const hash = await hashPassword(PASSWORD);
  await ctx.db.updateTable("users").set({ password_hash: hash }).execute();
  return hash;
}

interface Wish {
  prompt: Prompt;
  copy: number;
  seller: { id: string; name: string };
  category: string;
}

/** Sales and ratings fall off with the place on the shelf, as they do in shops. */
function rowOf(now: Date, at: number, count: number, { prompt, copy, seller, category }: Wish) {
  const publishedAt = new Date(now.getTime() - SHELF_DAYS * DAY_MS * (1 - at / count));
  const purchases = Math.floor(2_000 / (1 + ((at * 7_919) % count)));
  const ratings = Math.floor(purchases / 3);
  const product = {
    id: newUuid(publishedAt),
    title: copy === 0 ? prompt.title : `${prompt.title} ${copy + 1}`,
    description: prompt.description,
    lang: "en",
    type: "PROMPT",
    status: "published" as const,
    category,
    priceMinor: prompt.priceMinor + ((at * 31) % 400),
    currency: "USD",
    compatibility: prompt.compatibility,
    tags: prompt.tags,
    images: [],
    createdAt: publishedAt,
    updatedAt: publishedAt,
    publishedAt,
    firstPublishedAt: publishedAt,
  };
  return {
    ...product,
    authorId: seller.id,
    card: renderCard({ ...product, authorId: seller.id, authorName: seller.name, authorVerified: false }),
    content: prompt.content,
    variables: prompt.variables,
    views: purchases * 12 + (at % 50),
    purchases,
    ratings,
    ratingSum: Math.floor(ratings * 4.2),
    trending: purchases === 0 ? 0 : publishedAt.getTime() / HALF_LIFE_MS,
  };
}

/** One statement a batch for all three tables. */
async function insert(ctx: Context, rows: ReturnType<typeof rowOf>[]): Promise<void> {
  await ctx.pool.query(
    `with given as (
       select * from jsonb_to_recordset($1::jsonb) as r (
         id uuid, "authorId" uuid, title text, description text, type text, status text, category text,
         "priceMinor" int, currency text, compatibility text[], tags text[], card text, "publishedAt" timestamptz,
         content text, variables jsonb, views bigint, purchases bigint, ratings bigint, "ratingSum" bigint,
         trending float8)),
     made as (
       insert into products (id, author_id, title, description, type, status, category, price_minor, currency,
                             compatibility, tags, requirements, features, models, preview, version, card,
                             released, created_at, updated_at, published_at, first_published_at, moved_at)
       select id, "authorId", title, description, type, status, category, "priceMinor", currency, compatibility,
              tags, '{}', '{}', '{}', '', '1.0.0', card, '{1,0,0}', "publishedAt", "publishedAt", "publishedAt", "publishedAt",
              "publishedAt"
         from given),
     versions as (
       insert into product_versions (product_id, version, numbers, content, content_format, variables, changelog,
                                     created_at)
       select id, '1.0.0', '{1,0,0}', content, 'text', variables, '', "publishedAt" from given)
     insert into product_stats (product_id, views, purchases, rating_sum, rating_count, trending)
     select id, views, purchases, "ratingSum", ratings, trending from given`,
    [JSON.stringify(rows)],
  );
}

/** Words by the number of texts that hold them: one in about every eighth text, and one in a single text. */
function wordsOf(prompts: Prompt[]): Seeded["words"] {
  const counts = new Map<string, number>();
  for (const { title, description } of prompts) {
    const words = new Set(`${title} ${description}`.toLowerCase().match(/[a-z]{5,}/g));
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const nearest = (wanted: number) =>
    [...counts].toSorted(
      ([a, x], [b, y]) => Math.abs(x - wanted) - Math.abs(y - wanted) || (a < b ? -1 : 1),
    )[0]![0];
  return { common: nearest(prompts.length / 8), rare: nearest(1) };
}
