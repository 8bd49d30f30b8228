import type { Lane } from "../load.ts";
import { CATEGORIES, makerAt, TAGS, TOOLS } from "./products.ts";

export type Request = Lane[number];

export const PAGE_SIZE = 20;

/** The requests of one API for each query. Unsupported queries are missing. */
export interface Queries {
  newest(page: number): Request;
  inCategory(category: string, page: number): Request;
  /** Cheapest first, in dollars. */
  inPriceRange(category: string, from: number, to: number): Request;
  cheapest(page: number): Request;
  search(words: string): Request;
  detail(at: number): Request;
}

export interface Case {
  name: string;
  /** The case's requests for a system, to be sent in turn; empty if unsupported. */
  requestsOf(asks: Partial<Queries>): (() => Request)[];
}

const LIST_PAGES = 20;
const CATEGORY_PAGES = 3;
const MAKERS_QUERIED = 200;
const DETAILS = 5_000;
const RANGES: [number, number][] = [
  [2, 10],
  [5, 30],
  [10, 50],
];

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
const pages = upTo(LIST_PAGES);
const makers = upTo(MAKERS_QUERIED).map(makerAt);
const inCategories = CATEGORIES.flatMap((slug) => upTo(CATEGORY_PAGES).map((page) => ({ slug, page })));
const inRanges = RANGES.flatMap(([from, to]) => CATEGORIES.map((slug) => ({ slug, from, to })));
const twoWords = TAGS.map((tag, at) => `${tag} ${TOOLS[at % TOOLS.length]!.toLowerCase()}`);

const searches =
  (words: string[]): Case["requestsOf"] =>
  ({ search }) =>
    search ? words.map((asked) => () => search(asked)) : [];

export const cases: Case[] = [
  {
    name: "newest first",
    requestsOf: ({ newest }) => (newest ? pages.map((page) => () => newest(page)) : []),
  },
  {
    name: "a category",
    requestsOf: ({ inCategory }) =>
      inCategory
        ? inCategories.map(
            ({ slug, page }) =>
              () =>
                inCategory(slug, page),
          )
        : [],
  },
  {
    name: "category and price range",
    requestsOf: ({ inPriceRange }) =>
      inPriceRange
        ? inRanges.map(
            ({ slug, from, to }) =>
              () =>
                inPriceRange(slug, from, to),
          )
        : [],
  },
  {
    name: "cheapest first",
    requestsOf: ({ cheapest }) => (cheapest ? pages.map((page) => () => cheapest(page)) : []),
  },
  { name: "text: a common word", requestsOf: searches(TAGS) },
  { name: "text: a rare word", requestsOf: searches(makers) },
  { name: "text: two words", requestsOf: searches(twoWords) },
  {
    name: "one product",
    requestsOf: ({ detail }) => (detail ? upTo(DETAILS).map((at) => () => detail(at)) : []),
  },
];
