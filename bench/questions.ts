import { type Random, seededRandom } from "@stoa/service/backoffice/demo/seeded-random.ts";
import { toId } from "@stoa/service/core/ids.ts";
import type pg from "pg";
import { QUESTIONS, type QueryTerms, readQueryTerms } from "./query-terms.ts";

/** The checked fields of a listed product. */
export interface Card {
  id: string;
  title: string;
  category: string;
  price: number;
  currency: string;
  compatibility: string[];
  tags: string[];
  publishedAt: string;
  rating: { average: number; count: number };
  stats: { views: number; purchases: number };
}

export interface Question {
  path: string;
  /** Whether the cards match the query. */
  fits?(cards: Card[]): boolean;
}

/** Different queries of one kind, so that no answer is cached. */
export interface Kind {
  name: string;
  questions: Question[];
  /** Repeats one query, like a storefront's first page. */
  same?: true;
  /** Whether an answer may be empty. */
  mayBeEmpty?: true;
}

const SEED = 20_261_123;
const PAGE = 20;
const DEEP_PAGE = 500;

export async function makeKinds(pool: pg.Pool): Promise<Kind[]> {
  return kindsOf(await readQueryTerms(pool, seededRandom(SEED)), seededRandom(SEED));
}

/** Every combination, in mixed order. */
function mixed<T extends Record<string, readonly (string | number)[]>>(parts: T) {
  type One = { [key in keyof T]: T[key][number] };
  const all = Object.entries(parts).reduce<Record<string, string | number>[]>(
    (made, [key, values]) => made.flatMap((one) => values.map((value) => ({ ...one, [key]: value }))),
    [{}],
  );
  const random = seededRandom(SEED);
  const order = new Map(all.map((one) => [one, random.next()]));
  return all.toSorted((a, b) => order.get(a)! - order.get(b)!).slice(0, QUESTIONS) as One[];
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
const pathOf = (query: Record<string, string | number>, path = "/v1/products") =>
  `${path}?${Object.entries(query)
    .map((part) => part.map(encodeURIComponent).join("="))
    .join("&")}`;
const lists = (queries: Record<string, string | number>[], fits?: Question["fits"]): Question[] =>
  queries.map((query) => ({ path: pathOf(query), ...(fits && { fits }) }));

const LIMITS = range(PAGE - 10, PAGE + 10);
const rising = (values: (number | string)[]) =>
  values.every((value, at) => at === 0 || values[at - 1]! <= value);
const falling = (values: (number | string)[]) => rising(values.toReversed());

function kindsOf(stock: QueryTerms, random: Random): Kind[] {
  return [...listKinds(stock, random), ...searchKinds(stock), ...facetKinds(stock), ...deepKinds(stock)];
}

function listKinds({ categories, tags, products }: QueryTerms, random: Random): Kind[] {
  const slugs = categories.map(({ slug }) => slug);
  const first = pathOf({ limit: PAGE });
  const pages = { limit: LIMITS, page: range(1, 20) };
  const filtered = mixed({
    category: slugs,
    provider: ["openai", "anthropic", "google", "mistral", "ollama", "groq"],
    minPrice: [1, 2, 3, 5],
    maxPrice: [10, 15, 20, 50],
    limit: [PAGE],
  });
  const priced = mixed({
    ...pages,
    order: ["asc", "desc"],
    currency: ["USD", "EUR", "GBP"],
    sort: ["price"],
  });
  const rated = mixed({ category: slugs, limit: LIMITS, page: range(1, 3), sort: ["rating"] });
  return [
    { name: "the first page, the same again", same: true, questions: [{ path: first }] },
    {
      name: "list, as it comes (most sold)",
      questions: lists(mixed({ ...pages, sort: ["relevance", "popularity"] }), (cards) =>
        falling(cards.map(({ stats }) => stats.purchases)),
      ),
    },
    {
      name: "list, newest",
      questions: lists(mixed({ ...pages, sort: ["publishedAt", "createdAt"] }), (cards) =>
        falling(cards.map(({ publishedAt }) => publishedAt)),
      ),
    },
    {
      name: "list, trending",
      questions: lists(mixed({ limit: LIMITS, page: range(1, 45), sort: ["trending"] })),
    },
    {
      name: "filtered: category, provider, price",
      mayBeEmpty: true,
      questions: filtered.map((query) => ({
        path: pathOf(query),
        fits: (cards) =>
          cards.every(
            ({ price, currency, compatibility }) =>
              price >= query.minPrice &&
              price <= query.maxPrice &&
              currency === "USD" &&
              compatibility.includes(query.provider),
          ),
      })),
    },
    {
      name: "filtered: tag",
      mayBeEmpty: true,
      questions: mixed({ tag: tags, limit: LIMITS }).map((query) => ({
        path: pathOf(query),
        fits: (cards) => cards.every((card) => card.tags.includes(query.tag)),
      })),
    },
    {
      name: "filtered: provider, newest",
      questions: lists(mixed({ provider: ["mistral", "groq", "xai"], ...pages, sort: ["publishedAt"] })),
    },
    {
      name: "by price",
      questions: priced.map((query) => ({
        path: pathOf(query),
        fits: (cards) => (query.order === "asc" ? rising : falling)(cards.map(({ price }) => price)),
      })),
    },
    {
      name: "by rating, in a category",
      questions: lists(rated),
    },
    {
      name: "`GET /v1/products/{id}`",
      questions: products
        .toSorted(() => random.next() - 0.5)
        .map((id) => ({ path: `/v1/products/${toId("prod", id)}` })),
    },
    {
      name: "`GET /v1/categories`",
      questions: mixed({ limit: range(23, 100) }).map((query) => ({ path: pathOf(query, "/v1/categories") })),
    },
  ];
}

function searchKinds({ common, rare, mistyped, beginnings, pairs, categories }: QueryTerms): Kind[] {
  const slugs = categories.slice(0, 12).map(({ slug }) => slug);
  const search = (name: string, queries: Record<string, string | number>[]): Kind => ({
    name: `search: ${name}`,
    questions: lists(queries),
  });
  return [
    search("a common word", mixed({ search: common, limit: range(16, 24), page: [1, 2] })),
    search("a rare word", mixed({ search: rare })),
    search("two words", mixed({ search: pairs })),
    search("a mistyped word", mixed({ search: mistyped })),
    search("the beginning of a word", mixed({ search: beginnings })),
    {
      name: "search: a common word in a category, by price",
      mayBeEmpty: true,
      questions: lists(
        mixed({ search: common, category: slugs, sort: ["price"], order: ["asc", "desc"] }),
        (cards) => rising(cards.map(({ price }) => price)) || falling(cards.map(({ price }) => price)),
      ),
    },
    search("a common word, newest", mixed({ search: common, sort: ["publishedAt"], limit: LIMITS })),
  ];
}

function facetKinds({ common, categories }: QueryTerms): Kind[] {
  const facets = (name: string, queries: Record<string, string | number>[]): Kind => ({
    name: `facets: ${name}`,
    questions: queries.map((query) => ({ path: pathOf(query, "/v1/products/facets") })),
  });
  const slugs = categories.map(({ slug }) => slug);
  return [
    facets("without a filter", [{}]),
    facets("of a category", mixed({ category: slugs })),
    facets(
      "of a category, provider and price",
      mixed({
        category: slugs,
        provider: ["openai", "google", "mistral"],
        minPrice: [1, 2, 3, 5],
        maxPrice: [10, 20, 30],
      }),
    ),
    facets("of a search", mixed({ search: common, minPrice: range(1, 15) })),
  ];
}

function deepKinds({ published, categories }: QueryTerms): Kind[] {
  const sorts = ["relevance", "popularity", "publishedAt", "createdAt", "views"];
  const around = (page: number) => range(Math.max(1, page - 20), page);
  const lastOf = (products: number) => Math.max(1, Math.floor(products / PAGE));
  const deep = Math.min(DEEP_PAGE, lastOf(published));
  const inCategory = categories.slice(0, 6).flatMap(({ slug, products }) =>
    mixed({
      page: around(Math.min(DEEP_PAGE, lastOf(products))),
      category: [slug],
      limit: [PAGE],
      sort: ["relevance", "publishedAt"],
    }),
  );
  return [
    {
      name: `page ${DEEP_PAGE}`,
      questions: lists(mixed({ page: around(deep), limit: [PAGE], sort: sorts })),
    },
    { name: `page ${DEEP_PAGE} in a category, or its last`, questions: lists(inCategory) },
    {
      name: "the last page",
      questions: lists(mixed({ page: around(lastOf(published)), limit: [PAGE], sort: sorts })),
    },
  ];
}
