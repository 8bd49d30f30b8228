import { permissions } from "@stoa/contract";
import { createKeyAsOperator } from "@stoa/service/accounts/api-keys/keys.ts";
import { hashPassword } from "@stoa/service/accounts/people/password-hash.ts";
import { createUser } from "@stoa/service/accounts/people/users.ts";
import { startOperatorSession } from "@stoa/service/accounts/sign-in/operator-session.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { toId } from "@stoa/service/core/ids.ts";
import type { Connection } from "@stoa/service/platform/db/database.ts";
import { load } from "./loading.ts";
import type { Options } from "./options.ts";
import { makeProducts, type Seller } from "./products.ts";
import { readTexts } from "./texts.ts";

const MAX_SELLERS = 2_000;
const PRODUCTS_PER_SELLER = 20;
const BUYERS = 16;
const SAMPLE = 10_000;
const FILTERED_CATEGORY = 3;
/** The password of all users. */
export const PASSWORD = "a password of the bench";

export interface Seeded {
  /** Public ids of products for sale: a sample of the whole shop. */
  products: string[];
  /** API keys of users without purchases. */
  buyers: string[];
  reader: string;
  /** The reader's session token. */
  session: string;
  /** The cookie of a browser without an account. */
  visitor: string;
  /** Email addresses of users with PASSWORD, and its hash. */
  logins: string[];
  passwordHash: string;
  category: string;
  /** Words with many and with few products. */
  words: { common: string; rare: string };
}

/** Fills an empty shop. Equal texts make equal products, except for the sellers' ids. */
export async function seed(
  ctx: Context,
  connection: Connection,
  { prompts, count }: Pick<Options, "prompts"> & { count: number },
): Promise<void> {
  const sellers = await openShops(ctx, Math.min(MAX_SELLERS, Math.ceil(count / PRODUCTS_PER_SELLER)));
  const { rows } = await ctx.pool.query<{ slug: string }>("select slug from categories order by 1");
  const texts = await readTexts(
    prompts,
    rows.map(({ slug }) => slug),
  );
  await load(ctx, connection, makeProducts(texts, sellers, count));
}

async function openShops(ctx: Context, count: number): Promise<Seller[]> {
  const sellers: Seller[] = [];
  for (let at = 0; at < count; at++) {
    const seller = { name: `Seller ${at}`, verified: at % 5 === 0 };
    const email = `seller${at}@bench.example`;
    sellers.push({ ...seller, id: await createUser(ctx, { ...seller, email, role: "seller" }) });
  }
  return sellers;
}

/** New users for each run: in a reused shop, the last run's users own products, and their sessions expire. */
export async function signInAll(ctx: Context): Promise<Seeded> {
  const run = Date.now();
  const passwordHash = await hashPassword(PASSWORD);
  const names = Array.from({ length: BUYERS }, (_, at) => `buyer${at}`);
  const buyers = await Promise.all(names.map((name) => signIn(ctx, `${name}.${run}`, passwordHash)));
  const reader = await signIn(ctx, `reader.${run}`, passwordHash);
  const visitor = ctx.guests.cookie();
  return {
    products: await sampleOf(ctx),
    buyers: buyers.map(({ key }) => key),
    reader: reader.key,
    session: await startOperatorSession(ctx, reader.userId),
    visitor: `${visitor.name}=${visitor.value}`,
    logins: buyers.map(({ email }) => email),
    passwordHash,
    category: await oneOf(ctx, `select slug from categories order by 1 offset ${FILTERED_CATEGORY} limit 1`),
    words: {
      common: await wordIn(ctx, "(select count(*) / 8 from listings)"),
      rare: await wordIn(ctx, "1"),
    },
  };
}

async function signIn(ctx: Context, name: string, passwordHash: string) {
  const email = `${name}@bench.example`;
  const userId = await createUser(ctx, { email, name, plan: "enterprise", passwordHash });
  const { key } = await createKeyAsOperator(ctx, { userId, name: "bench", permissions: [...permissions] });
  return { userId, email, key };
}

async function sampleOf(ctx: Context): Promise<string[]> {
  const { rows } = await ctx.pool.query<{ id: string }>(
    `select product_id as id from listings
      where status = 'published' and type = 'PROMPT' and currency = 'USD'
      order by hashtext(product_id::text), product_id limit ${SAMPLE}`,
  );
  return rows.map(({ id }) => toId("prod", id));
}

const wordIn = (ctx: Context, listings: string) =>
  oneOf(
    ctx,
    `select word from bench.words where word ~ '^[a-z]{5,}$' order by abs(listings - ${listings}), word limit 1`,
  );

async function oneOf(ctx: Context, query: string): Promise<string> {
  const { rows } = await ctx.pool.query<Record<string, string>>(query);
  return Object.values(rows[0]!)[0]!;
}
