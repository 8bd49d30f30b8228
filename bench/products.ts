import type { ProductStatus, Provider } from "@stoa/contract";
import { type Random, seededRandom } from "@stoa/service/backoffice/demo/seeded-random.ts";
import type { CardFields } from "@stoa/service/catalog/search/card.ts";
import { chance, normal, Wheel, weighted, zipf } from "./draw.ts";
import { isDense, type Shelf, type Texts } from "./texts.ts";

export interface Seller {
  id: string;
  name: string;
  verified: boolean;
}

export interface MadeProduct extends CardFields {
  content: string;
  variables: { name: string; required: boolean }[];
  views: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
  trending: number;
}

const SEED = 20_261_122;
const DAY_MS = 86_400_000;
const HALF_LIFE_MS = 7 * DAY_MS;
/** The date of the newest product. The oldest came this many days before, and the shop grew at an increasing rate. */
const NEWEST = Date.UTC(2026, 10, 1);
const SHELF_DAYS = 1_000;

const MIN_TITLE = 3;
const MAX_TITLE = 120;
const DESCRIPTION = { min: 100, max: 400 };
const CONTENT = { min: 200, max: 1_000 };
const COINED = 0.12;
const OTHER_LANGUAGES = 0.15;
const LANG_UNSAID = 0.03;
const WORKFLOWS = 0.05;
const SELLER_SKEW = 0.7;
const TAG_SKEW = 0.9;
const MEDIAN_VIEWS = 300;
const VIEWS_SPREAD = 1.45;
const SALES_PER_VIEW = 0.004;

const status = weighted<ProductStatus>([
  ["published", 980],
  ["draft", 10],
  ["unpublished", 6],
  ["pending_review", 2],
  ["rejected", 1],
  ["suspended", 1],
]);
const currency = weighted([
  ["USD", 82],
  ["EUR", 8],
  ["GBP", 4],
  ["INR", 3],
  ["JPY", 2],
  ["BRL", 1],
]);
/** Common price points, in minor units. */
const pricePoint = weighted([
  ...([99, 199, 299, 399, 499, 599] as const).map((price): [number, number] => [price, 10]),
  ...([699, 799, 899, 999, 1299, 1499, 1999] as const).map((price): [number, number] => [price, 5]),
  ...([2499, 2999, 3999, 4999, 7999, 9999, 19999] as const).map((price): [number, number] => [price, 1.5]),
  ...([500, 1000, 1500, 2000, 250, 750] as const).map((price): [number, number] => [price, 2]),
]);
/** A price of one dollar in minor units, roughly. */
const RATES: Record<string, number> = { INR: 80, JPY: 1.5, BRL: 5 };

/** The share of products compatible with each provider; at most six per product. */
const PROVIDER_PARTS: [Provider, number][] = [
  ["openai", 0.85],
  ["anthropic", 0.6],
  ["google", 0.5],
  ["mistral", 0.2],
  ["ollama", 0.2],
  ["deepseek", 0.15],
  ["openrouter", 0.15],
  ["groq", 0.12],
  ["xai", 0.1],
  ["openai-compatible", 0.05],
];
const MAX_PROVIDERS = 6;

/**
 * Generates products, oldest first. Texts combine real sentences, so that word frequencies are realistic; invented names
 * make the vocabulary grow with the shop. Seed and texts determine the products.
 */
export function* makeProducts(
  texts: Texts,
  sellers: Seller[],
  count: number,
  seed = SEED,
): Generator<MadeProduct> {
  const random = seededRandom(seed);
  const english = texts.shelves.filter(({ lang }) => lang === "en");
  const others = texts.shelves.filter(({ lang }) => lang !== "en");
  const [inEnglish, elsewhere] = [english, others].map((shelves) => bySize(shelves)) as [
    Wheel<Shelf>,
    Wheel<Shelf>,
  ];
  const seller = zipf(sellers, SELLER_SKEW);
  const tag = zipf(texts.tags, TAG_SKEW);
  const titles = new Set<string>();
  for (let at = 0; at < count; at++) {
    const topic = inEnglish.draw(random);
    const shelf = others.length > 0 && chance(random, OTHER_LANGUAGES) ? elsewhere.draw(random) : topic;
    const title = newTitle(random, shelf, titles);
    const place = { at, count, shelf, title, category: topic.category, seller: seller.draw(random), tag };
    yield productOf(random, place);
  }
}

/** Weighted by the number of sentences. */
const bySize = (shelves: Shelf[]) => new Wheel(shelves, ({ sentences }) => sentences.length);

/** Languages with few texts have few titles: a used title gets names in front until it is new. */
function newTitle(random: Random, shelf: Shelf, known: Set<string>): string {
  let title = shorten(titleOf(random, shelf), MAX_TITLE);
  while (title.length < MIN_TITLE || known.has(title)) {
    title = shorten(`${coinedWord(random, shelf)} ${title}`, MAX_TITLE);
    if (known.has(title)) title = shorten(titleOf(random, shelf), MAX_TITLE / 2);
  }
  known.add(title);
  return title;
}

function titleOf(random: Random, shelf: Shelf): string {
  const [one, other] = [random.pick(shelf.titles), random.pick(shelf.titles)];
  const phrase = phraseOf(random, shelf);
  if (isDense(shelf.lang)) return `${one}：${phrase}`;
  const way = random.next();
  if (way < COINED) return `${coinedWord(random, shelf)} – ${one}`;
  if (way < 0.45) return `${headOf(one)} ${tailOf(other)}`;
  if (way < 0.65 && shelf.lang === "en") return `${one} for ${other}`;
  if (way < 0.8) return `${headOf(one)} ${tailOf(other)}: ${phrase}`;
  return `${one}: ${phrase}`;
}

const headOf = (title: string) => {
  const words = title.split(" ");
  return words.slice(0, Math.ceil(words.length / 2)).join(" ");
};
const tailOf = (title: string) => {
  const words = title.split(" ");
  return words.slice(Math.floor(words.length / 2)).join(" ");
};

/** Consecutive words of a real sentence. */
function phraseOf(random: Random, { lang, sentences }: Shelf): string {
  const sentence = random.pick(sentences);
  if (isDense(lang)) {
    const characters = sentence.match(/[\p{L}\p{N}]/gu) ?? [];
    const from = random.integer(0, Math.max(0, characters.length - 8));
    return characters.slice(from, from + random.integer(4, 8)).join("");
  }
  const words = sentence.match(/[\p{L}\p{N}\p{M}'’-]+/gu) ?? [];
  const from = random.integer(0, Math.max(0, words.length - 5));
  return words.slice(from, from + random.integer(2, 5)).join(" ");
}

/** A new name: the start of one word and the end of another. */
function coinedWord(random: Random, { sentences }: Shelf): string {
  const word = () => {
    const words = random.pick(sentences).match(/\p{L}{4,}/gu) ?? ["nova"];
    return random.pick(words).toLowerCase();
  };
  const name = word().slice(0, random.integer(2, 4)) + word().slice(-random.integer(2, 4));
  return name[0]!.toUpperCase() + name.slice(1);
}

function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  return text.slice(0, max).replace(/\s+\S*$/, "");
}

/** Real sentences up to a length. */
function textOf(
  random: Random,
  { lang, sentences }: Shelf,
  { min, max }: { min: number; max: number },
): string {
  // The most likely length is a third of the way up.
  const wanted = min + (max - min) * Math.min(random.next(), random.next());
  const glue = isDense(lang) ? "" : " ";
  let text = random.pick(sentences);
  while (text.length < wanted) text += glue + random.pick(sentences);
  return shorten(text, max);
}

interface Place {
  at: number;
  count: number;
  shelf: Shelf;
  title: string;
  category: string;
  seller: Seller;
  tag: Wheel<string>;
}

function productOf(random: Random, { at, count, shelf, title, category, seller, tag }: Place): MadeProduct {
  const createdAt = new Date(NEWEST - SHELF_DAYS * DAY_MS * (1 - Math.sqrt((at + 1) / count)));
  const state = status(random);
  const age = NEWEST - createdAt.getTime();
  const updatedAt = chance(random, 0.7) ? createdAt : new Date(createdAt.getTime() + age * random.next());
  const type = chance(random, WORKFLOWS) ? "WORKFLOW" : "PROMPT";
  return {
    id: uuidOf(random, createdAt),
    authorId: seller.id,
    authorName: seller.name,
    images: [],
    authorVerified: seller.verified,
    authorHandle: null,
    authorAvatar: null,
    title,
    description: textOf(random, shelf, DESCRIPTION),
    lang: chance(random, LANG_UNSAID) ? null : shelf.lang,
    type,
    status: state,
    category,
    ...priceOf(random),
    compatibility: compatibilityOf(random),
    tags: tagsOf(random, tag),
    createdAt,
    updatedAt,
    publishedAt: state === "draft" || state === "pending_review" || state === "rejected" ? null : createdAt,
    ...contentOf(random, shelf, type),
    ...numbersOf(random, createdAt),
  };
}

/** A UUIDv7 whose other bits come from the seed too. */
function uuidOf(random: Random, at: Date): string {
  const hex = (bits: number) =>
    Math.floor(random.next() * 2 ** bits)
      .toString(16)
      .padStart(bits / 4, "0");
  const time = at.getTime().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(12)}-${random.pick(["8", "9", "a", "b"])}${hex(12)}-${hex(24)}${hex(24)}`;
}

function priceOf(random: Random) {
  const money = currency(random);
  return { currency: money, priceMinor: Math.round(pricePoint(random) * (RATES[money] ?? 1)) };
}

function compatibilityOf(random: Random): Provider[] {
  const named = PROVIDER_PARTS.filter(([, part]) => chance(random, part)).map(([provider]) => provider);
  return named.length === 0 ? ["openai"] : named.slice(0, MAX_PROVIDERS);
}

function tagsOf(random: Random, tag: Wheel<string>): string[] {
  return [...new Set(Array.from({ length: random.integer(0, 6) }, () => tag.draw(random)))];
}

function contentOf(random: Random, shelf: Shelf, type: string) {
  const text = textOf(random, shelf, CONTENT);
  if (type === "WORKFLOW") {
    return {
      content: JSON.stringify({ format: "workflow/1", name: "bench", description: text }),
      variables: [],
    };
  }
  if (chance(random, 0.6)) return { content: text, variables: [] };
  return { content: `${text}\n\n{{topic}}`, variables: [{ name: "topic", required: true }] };
}

/** Log-normal views; sales follow views. */
function numbersOf(random: Random, createdAt: Date) {
  const views = Math.floor(MEDIAN_VIEWS * Math.exp(VIEWS_SPREAD * normal(random)));
  const purchases = Math.floor(views * SALES_PER_VIEW * Math.exp(0.8 * normal(random)));
  const ratingCount = Math.floor(purchases * 0.6 * random.next());
  const mean = Math.min(5, Math.max(1, 4.3 + 0.5 * normal(random)));
  const lastSale = NEWEST - (NEWEST - createdAt.getTime()) * random.next() ** 3;
  return {
    views,
    purchases,
    ratingCount,
    ratingSum: Math.round(ratingCount * mean),
    trending: purchases === 0 ? 0 : lastSale / HALF_LIFE_MS + Math.log2(1 + purchases / 10),
  };
}
