import { readFile } from "node:fs/promises";
import { type Provider, permissions } from "@stoa/contract";
import { createUser, findUser } from "../../accounts/people/users.ts";
import { moveProduct } from "../../catalog/products/moves.ts";
import { createProduct } from "../../catalog/products/products.ts";
import { postReview } from "../../catalog/reviews/reviews.ts";
import { buyProduct } from "../../commerce/checkout/purchases.ts";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { newUuid, toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { withLock } from "../../platform/db/locks.ts";
import { closeUnasked } from "../account-closing/close-account.ts";
import {
  countDemo,
  deleteDemo,
  delistDemo,
  findState,
  listStock,
  type Removed,
  releasePeople,
  setState,
  setViews,
} from "./queries.ts";
import { type Random, seededRandom } from "./seeded-random.ts";

const SEED = 20_260_320;
/** Products appear in the half year before the last three months, sales happen in these. */
const SHELF_DAYS = { from: 270, to: 95 };
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

/** Everything on offer, as its seller writes it. */
async function readOffers() {
  const prompts = await read<DemoPrompt[]>("./prompts.json");
  const workflows = await read<DemoWorkflow[]>("./workflows.json");
  return [
    ...prompts.map((prompt) => ({ ...prompt, type: "PROMPT" as const, preview: undefined })),
    ...workflows.map(({ definition, ...workflow }) => ({
      ...workflow,
      type: "WORKFLOW" as const,
      content: JSON.stringify(definition, null, 2),
      // Both follow from the definition.
      compatibility: [],
      variables: undefined,
    })),
  ];
}
type Offer = Awaited<ReturnType<typeof readOffers>>[number];

interface DemoPeople {
  sellers: { name: string; email: string; bio: string; verified: boolean }[];
  buyers: string[];
  comments: Record<string, string[]>;
}

interface ShelfItem {
  productId: string;
  weight: number;
}

/** Any number, but the same in every process: loading and removing wait for each other. */
const DEMO_LOCK = 7_200_411;

const read = async <T>(file: string): Promise<T> =>
  JSON.parse(await readFile(new URL(file, import.meta.url), "utf8")) as T;

/** The same service at another time: what is made through it is dated then, and no moderator is waited for. */
function at(ctx: Context, time: Date): Context {
  const config = { ...ctx.config, moderation: false };
  return { ...ctx, config, now: () => time, newId: () => newUuid(time) };
}

const member = (userId: string): Member => ({
  kind: "key",
  keyId: "demo",
  userId,
  role: "user",
  plan: "free",
  quota: null,
  permissions: new Set(permissions),
});

function mustBeTest(ctx: Context): void {
  if (ctx.config.environment === "test") return;
  throw new ApiError("INVALID_STATE", "The demo shop is for the test environment alone.");
}

/** Another process loads for as long as its machine takes. */
const alone = <T>(ctx: Context, work: () => Promise<T>): Promise<T> =>
  withLock(
    ctx.connection,
    { key: DEMO_LOCK, name: "the lock on the demo shop" },
    { maxMs: 10 * 60_000, log: ctx.log },
    work,
  );

export interface OpeningShop {
  /** Resolves when products are listed; null when there is nothing to load. */
  stocked: Promise<"now" | null>;
  /** Resolves when sales and reviews are there too. */
  done: Promise<DemoFigures | null>;
}

/** At a start: fills the shop of a database that nobody uses yet, or goes on where a killed start left off. */
export function openShop(ctx: Context): OpeningShop {
  const stocked = Promise.withResolvers<"now" | null>();
  const done = alone(ctx, async () => {
    const { demo, hasUsers } = await findState(ctx.db);
    if (demo === "loaded" || demo === "removed" || (demo === "none" && hasUsers)) return null;
    if (demo !== "stocked") await stock(ctx);
    stocked.resolve("now");
    return sellForThreeMonths(ctx);
  });
  done.then(() => stocked.resolve(null), stocked.reject);
  return { stocked: stocked.promise, done };
}

/** Sellers and their products: enough for every list to look alive. */
async function stock(ctx: Context): Promise<void> {
  await clear(ctx);
  await setState(ctx.db, "stocking");
  const offers = await readOffers();
  const people = await read<DemoPeople>("./people.json");
  const random = seededRandom(SEED);
  const opening = at(ctx, daysAfter(ctx.now(), -(SHELF_DAYS.from + 1)));
  const sellers = await Promise.all(
    people.sellers.map((seller) => createUser(opening, { ...seller, demo: true })),
  );
  const views = await inTurns(offers, 4, async (item) => {
    const seller = member(random.pick(sellers));
    const days = SHELF_DAYS.to + random.next() * (SHELF_DAYS.from - SHELF_DAYS.to);
    const productId = await offer(at(ctx, daysAfter(ctx.now(), -days)), seller, item);
    return { productId: toUuid("prod", productId)!, views: item.views };
  });
  await setViews(ctx.db, views);
  await setState(ctx.db, "stocked");
}

/** What stands on the shelf, in the order of titles, so that the seed sells the same things everywhere. */
async function shelf(ctx: Context): Promise<ShelfItem[]> {
  const weights = new Map((await readOffers()).map(({ title, weight }) => [title, weight]));
  const products = await listStock(ctx.db);
  return products.map(({ id, title }) => ({ productId: toId("prod", id), weight: weights.get(title) ?? 1 }));
}

async function offer(ctx: Context, seller: Member, item: Offer): Promise<string> {
  const { priceMinor, views: _views, weight: _weight, ...rest } = item;
  const { id } = await createProduct(ctx, seller, {
    ...rest,
    price: toDecimal(priceMinor, "USD"),
    currency: "USD",
    contentFormat: "text",
    version: "1.0.0",
    changelog: "",
    requirements: [],
    features: [],
    models: {},
    commissionBasisPoints: null,
  });
  await moveProduct(ctx, seller, id, "publish", { source: null });
  return id;
}

/** Works through a list with a few at once, and keeps its order. */
async function inTurns<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += width) {
    results.push(...(await Promise.all(items.slice(start, start + width).map(work))));
  }
  return results;
}

export interface DemoFigures {
  products: number;
  purchases: number;
  reviews: number;
}

/**
 * Three months of sales and reviews, made one after the other through the rooms' own functions. The same seed makes
 * the same ones, so that a second run after a crash goes on where the first one ended.
 */
async function sellForThreeMonths(ctx: Context): Promise<DemoFigures> {
  const random = seededRandom(SEED + 1);
  const people = await read<DemoPeople>("./people.json");
  const items = await shelf(ctx);
  const start = daysAfter(ctx.now(), -SALES_DAYS);
  const buyers = await inTurns(people.buyers, 4, (name) =>
    demoBuyer(at(ctx, start), name, people.buyers.indexOf(name)),
  );
  const figures = { products: items.length, purchases: 0, reviews: 0 };
  for (const day of saleDays(random)) {
    const sale = { buyer: member(random.pick(buyers)), item: random.pickWeighted(items) };
    const opinion = random.next() < REVIEWS_PER_SALE ? opinionOf(people, random) : null;
    const reviewDay = Math.min(day + 5 * random.next(), SALES_DAYS);
    const on = (days: number) => at(ctx, daysAfter(start, days));
    if (await unlessRefused(() => buyProduct(on(day), sale.buyer, { productId: sale.item.productId })))
      figures.purchases++;
    if (
      opinion &&
      (await unlessRefused(() => postReview(on(reviewDay), sale.buyer, sale.item.productId, opinion)))
    ) {
      figures.reviews++;
    }
  }
  await setState(ctx.db, "loaded");
  return figures;
}

async function demoBuyer(ctx: Context, name: string, index: number): Promise<string> {
  const email = `buyer${index + 1}@example.com`;
  const known = await findUser(ctx, email).catch(() => null);
  return known?.id ?? createUser(ctx, { name, email, demo: true });
}

/** Moments of sales in days since the start, ever denser, as of a shop that grows. */
const saleDays = (random: Random): number[] =>
  Array.from({ length: SALES }, () => SALES_DAYS * Math.sqrt(random.next())).toSorted((a, b) => a - b);

/** Ratings lean to the good, as they do in shops. */
function opinionOf(people: DemoPeople, random: Random) {
  const rating = random.pick([5, 5, 5, 5, 4, 4, 4, 3, 3, 2, 1]);
  return { rating, comment: random.pick(people.comments[String(rating)]!) };
}

/** False where a rule refuses: best sellers are bought twice by the same few buyers, and reviewed twice. */
async function unlessRefused(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return false;
    throw error;
  }
}

/** `stoa-server demo load`: the whole shop, in place of one that is there. */
export function loadDemo(ctx: Context): Promise<DemoFigures> {
  mustBeTest(ctx);
  return alone(ctx, async () => {
    await stock(ctx);
    return sellForThreeMonths(ctx);
  });
}

/** `stoa-server demo remove`: no later start loads it again. What was bought stays in the books, under no name. */
export function removeDemo(ctx: Context) {
  mustBeTest(ctx);
  return alone(ctx, async () => {
    const { gone, kept } = await clear(ctx);
    await setState(ctx.db, "removed");
    return { removed: true, ...gone, note: noteOn(kept) };
  });
}

/** Deletes the demo but for what is booked: that is closed, as every account that leaves. */
const clear = (ctx: Context): Promise<{ gone: Removed; kept: Removed }> =>
  ctx.db.transaction().execute(async (tx) => {
    const all = await countDemo(tx);
    await deleteDemo(tx);
    const kept = await countDemo(tx);
    await delistDemo(tx, ctx.now());
    for (const userId of await releasePeople(tx)) await closeUnasked(ctx, tx, userId);
    const gone = {
      people: all.people - kept.people,
      products: all.products - kept.products,
      orders: all.orders - kept.orders,
    };
    return { gone, kept };
  });

function noteOn({ orders, products, people }: Removed): string {
  if (orders + people === 0) return "nothing of it is left";
  return `${orders} orders that were paid stay in the books, with ${products} products, which are off sale, and ${people} closed accounts; only \`stoa-server reset\` empties the books`;
}
