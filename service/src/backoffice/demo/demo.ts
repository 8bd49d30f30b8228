import { readFile } from "node:fs/promises";
import { type CreateProduct, type Provider, permissions } from "@stoa/contract";
import { createUser, findUser, lockAuthor, promoteToSeller } from "../../accounts/people/users.ts";
import { publishTogether } from "../../catalog/products/moves.ts";
import { insertDrafts, validateDraft } from "../../catalog/products/products.ts";
import { postReview } from "../../catalog/reviews/reviews.ts";
import { buyProduct } from "../../commerce/checkout/purchases.ts";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { newUuid, toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { withLock } from "../../platform/db/locks.ts";
import { closeDemoAccount } from "../account-closing/close-account.ts";
import { startDemoEvaluations } from "./evaluations.ts";
import {
  clearDemoFlag,
  countDemo,
  type DemoRows,
  deleteDemo,
  delistDemo,
  listDemoProducts,
  readDemoState,
  setDemoState,
  setViews,
} from "./queries.ts";
import { type Random, seededRandom } from "./seeded-random.ts";

const SEED = 20_260_320;
/** Products appear in the six months before the last three, sales happen in these three. */
const LISTED_DAYS = { from: 270, to: 95 };
/** Products that a seller publishes on one day are written together, which takes less than half of the CPU time. */
const PUBLISHING_DAYS_PER_SELLER = 5;
const SALES_DAYS = 90;
const SALES = 1_200;
const REVIEWS_PER_SALE = 0.35;

interface DemoItem {
  title: string;
  description: string;
  lang: string;
  category: string;
  tags: string[];
  priceMinor: number;
  views: number;
  weight: number;
}

interface DemoPrompt extends DemoItem {
  compatibility: Provider[];
  content: string;
  variables: { name: string; description?: string; required: boolean; default?: string }[];
}

interface DemoWorkflow extends DemoItem {
  preview: string;
  definition: object;
}

async function readDemoProducts() {
  const prompts = await readJson<DemoPrompt[]>("./prompts.json");
  const workflows = await readJson<DemoWorkflow[]>("./workflows.json");
  return [
    ...prompts.map((prompt) => ({ ...prompt, type: "PROMPT" as const, preview: undefined })),
    ...workflows.map(({ definition, ...workflow }) => ({
      ...workflow,
      type: "WORKFLOW" as const,
      content: JSON.stringify(definition, null, 2),
      // Both are derived from the definition.
      compatibility: [],
      variables: undefined,
    })),
  ];
}
type DemoProduct = Awaited<ReturnType<typeof readDemoProducts>>[number];

interface DemoPeople {
  sellers: { name: string; email: string; bio: string; verified: boolean }[];
  buyers: string[];
  comments: Record<string, string[]>;
}

interface WeightedProduct {
  productId: string;
  weight: number;
}

/** Any number, equal in all processes: loading and removing exclude each other. */
const DEMO_LOCK = 7_200_411;

const readJson = async <T>(file: string): Promise<T> =>
  JSON.parse(await readFile(new URL(file, import.meta.url), "utf8")) as T;

/** A context with another clock and without moderation, so that created rows have that time. */
function atTime(ctx: Context, time: Date): Context {
  const config = { ...ctx.config, moderation: false };
  return { ...ctx, config, now: () => time, newId: () => newUuid(time) };
}

const demoCaller = (userId: string): Member => ({
  kind: "key",
  keyId: "demo",
  userId,
  role: "user",
  plan: "free",
  quota: null,
  permissions: new Set(permissions),
});

function mustBeTestEnvironment(ctx: Context): void {
  if (ctx.config.environment === "test") return;
  throw new ApiError("INVALID_STATE", "The demo shop is for the test environment alone.");
}

/** Waits for another process that loads the demo. */
const withDemoLock = <T>(ctx: Context, work: () => Promise<T>): Promise<T> =>
  withLock(
    ctx.connection,
    { key: DEMO_LOCK, name: "the lock on the demo shop" },
    { maxMs: 10 * 60_000, log: ctx.log },
    work,
  );

export interface DemoLoading {
  /** Resolves when the first products are listed; null when there is nothing to load. */
  firstListed: Promise<"now" | null>;
  /** Resolves when all products, sales and reviews exist, and evaluations have started. */
  loaded: Promise<DemoCounts | null>;
}

/** Fills an empty database at its first start, or continues after a killed start. */
export function loadDemoAtStart(ctx: Context): DemoLoading {
  const firstListed = Promise.withResolvers<"now" | null>();
  const done = withDemoLock(ctx, async () => {
    const { demo, hasUsers } = await readDemoState(ctx.db);
    if (demo === "loaded" || demo === "removed" || (demo === "none" && hasUsers)) return null;
    if (demo !== "stocked") await createProducts(ctx, () => firstListed.resolve("now"));
    firstListed.resolve("now");
    return createSales(ctx);
  });
  done.then(() => firstListed.resolve(null), firstListed.reject);
  return { firstListed: firstListed.promise, loaded: done };
}

/** Enough sellers and products for every list. */
async function createProducts(ctx: Context, onFirstListed: () => void = () => {}): Promise<void> {
  await removeAll(ctx);
  await setDemoState(ctx.db, "stocking");
  const offers = await readDemoProducts();
  const people = await readJson<DemoPeople>("./people.json");
  const random = seededRandom(SEED);
  const opening = atTime(ctx, daysAfter(ctx.now(), -(LISTED_DAYS.from + 1)));
  const sellers = await Promise.all(
    people.sellers.map((seller) => createUser(opening, { ...seller, demo: true })),
  );
  const occasions = sellers.flatMap((seller) => drawPublishingDays(random).map((day) => ({ seller, day })));
  const itemsOf = Map.groupBy(offers, () => random.pick(occasions));
  const published = await mapConcurrently([...itemsOf], 4, async ([{ seller, day }, items]) => {
    const views = await publishProducts(atTime(ctx, daysAfter(ctx.now(), -day)), demoCaller(seller), items);
    onFirstListed();
    return views;
  });
  const views = published.flat();
  await setViews(ctx.db, views);
  await setDemoState(ctx.db, "stocked");
}

/** In order of title, so that the seed sells the same products everywhere. */
async function listWeightedProducts(ctx: Context): Promise<WeightedProduct[]> {
  const weights = new Map((await readDemoProducts()).map(({ title, weight }) => [title, weight]));
  const products = await listDemoProducts(ctx.db);
  return products.map(({ id, title }) => ({ productId: toId("prod", id), weight: weights.get(title) ?? 1 }));
}

/** Days before today on which a seller publishes products. */
const drawPublishingDays = (random: Random): number[] =>
  Array.from(
    { length: PUBLISHING_DAYS_PER_SELLER },
    () => LISTED_DAYS.to + random.next() * (LISTED_DAYS.from - LISTED_DAYS.to),
  );

/** Returns the new products with their views. */
async function publishProducts(
  ctx: Context,
  seller: Member,
  items: DemoProduct[],
): Promise<{ productId: string; views: number }[]> {
  const drafts = await Promise.all(items.map((item) => validateDraft(ctx, toInput(item))));
  const ids = await ctx.db.transaction().execute(async (tx) => {
    const author = await lockAuthor(tx, seller.userId);
    await promoteToSeller(tx, author);
    return insertDrafts(ctx, tx, author, drafts);
  });
  let waiting = ids;
  while (waiting.length > 0) {
    const publications = await publishTogether(ctx, seller, waiting, null);
    for (const publication of publications.values()) if ("error" in publication) throw publication.error;
    waiting = waiting.filter((id) => !publications.has(id));
  }
  return items.map(({ views }, at) => ({ productId: required(ids[at], "the id of a new product"), views }));
}

function toInput({ priceMinor, views: _views, weight: _weight, ...rest }: DemoProduct): CreateProduct {
  return {
    ...rest,
    price: toDecimal(priceMinor, "USD"),
    currency: "USD",
    contentFormat: "text",
    version: "1.0.0",
    changelog: "",
    requirements: [],
    features: [],
    license: null,
    samples: [],
    models: {},
    commissionBasisPoints: null,
  };
}

function* generateEntries<T>(items: readonly T[]): Generator<[number, T]> {
  yield* items.entries();
}

/** Runs a few at once and keeps the order. */
async function mapConcurrently<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  // A generator, unlike an array's iterator, ends for all loops when one of them throws.
  const next = generateEntries(items);
  const runNext = async () => {
    for (const [at, item] of next) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: width }, runNext));
  return results;
}

export interface DemoCounts {
  products: number;
  purchases: number;
  reviews: number;
  /** Products with an evaluation. It runs while the service runs. */
  evaluations: number;
}

/**
 * Three months of sales and reviews through the rooms' own functions, in sequence. The seed is fixed, so a second run
 * after a crash continues where the first ended.
 */
async function createSales(ctx: Context): Promise<DemoCounts> {
  // Before the sales, which take longer: the first visitors see score cards.
  const evaluations = await startDemoEvaluations(ctx, demoCaller);
  const random = seededRandom(SEED + 1);
  const people = await readJson<DemoPeople>("./people.json");
  const items = await listWeightedProducts(ctx);
  const start = daysAfter(ctx.now(), -SALES_DAYS);
  const buyers = await mapConcurrently(people.buyers, 4, (name) =>
    findOrCreateBuyer(atTime(ctx, start), name, people.buyers.indexOf(name)),
  );
  const figures = { products: items.length, purchases: 0, reviews: 0, evaluations };
  for (const day of drawSaleDays(random)) {
    const sale = { buyer: demoCaller(random.pick(buyers)), item: random.pickWeighted(items) };
    const opinion = random.next() < REVIEWS_PER_SALE ? drawReview(people, random) : null;
    const reviewDay = Math.min(day + 5 * random.next(), SALES_DAYS);
    const on = (days: number) => atTime(ctx, daysAfter(start, days));
    if (await isAccepted(() => buyProduct(on(day), sale.buyer, { productId: sale.item.productId })))
      figures.purchases++;
    if (
      opinion &&
      (await isAccepted(() => postReview(on(reviewDay), sale.buyer, sale.item.productId, opinion)))
    ) {
      figures.reviews++;
    }
  }
  await setDemoState(ctx.db, "loaded");
  return figures;
}

async function findOrCreateBuyer(ctx: Context, name: string, index: number): Promise<string> {
  const email = `buyer${index + 1}@example.com`;
  const known = await findUser(ctx, email).catch(() => null);
  return known?.id ?? createUser(ctx, { name, email, demo: true });
}

/** Days of sales since the start, at a growing rate. */
const drawSaleDays = (random: Random): number[] =>
  Array.from({ length: SALES }, () => SALES_DAYS * Math.sqrt(random.next())).toSorted((a, b) => a - b);

/** Mostly good ratings, as in real shops. */
function drawReview(people: DemoPeople, random: Random) {
  const rating = random.pick([5, 5, 5, 5, 4, 4, 4, 3, 3, 2, 1]);
  return {
    rating,
    comment: random.pick(required(people.comments[String(rating)], "the comments for a rating")),
  };
}

/** Returns false when a rule refuses: the few buyers sometimes buy or review a best seller twice. */
async function isAccepted(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return false;
    throw error;
  }
}

/** `stoa-server demo load`: replaces an existing demo. */
export function loadDemo(ctx: Context): Promise<DemoCounts> {
  mustBeTestEnvironment(ctx);
  return withDemoLock(ctx, async () => {
    await createProducts(ctx);
    return createSales(ctx);
  });
}

/** `stoa-server demo remove`: later starts do not load it again. Paid orders stay in the ledger without names. */
export function removeDemo(ctx: Context) {
  mustBeTestEnvironment(ctx);
  return withDemoLock(ctx, async () => {
    const { deleted, remaining } = await removeAll(ctx);
    await setDemoState(ctx.db, "removed");
    return { removed: true, ...deleted, note: describeRemainder(remaining) };
  });
}

/** Deletes all that the ledger does not need; closes the other accounts. */
const removeAll = (ctx: Context): Promise<{ deleted: DemoRows; remaining: DemoRows }> =>
  ctx.db.transaction().execute(async (tx) => {
    const all = await countDemo(tx);
    await deleteDemo(tx);
    const remaining = await countDemo(tx);
    await delistDemo(tx, ctx.now());
    for (const userId of await clearDemoFlag(tx)) await closeDemoAccount(ctx, tx, userId);
    const deleted = {
      people: all.people - remaining.people,
      products: all.products - remaining.products,
      orders: all.orders - remaining.orders,
    };
    return { deleted, remaining };
  });

function describeRemainder({ orders, products, people }: DemoRows): string {
  if (orders + people === 0) return "nothing of it is left";
  return `${orders} orders that were paid stay in the ledger, with ${products} products, which are off sale, and ${people} closed accounts; only \`stoa-server reset\` empties the ledger`;
}
