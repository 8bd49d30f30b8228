import type { Lane } from "../load.ts";
import { CATEGORIES, makerAt, TAGS, TOOLS } from "./products.ts";

export type Request = Lane[number];

export const PAGE_SIZE = 20;

/** How one way into a system puts each question. What it cannot do is left out. */
export interface Asks {
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
  /** The questions of this case in the words of a system, to be asked in turn; none where it cannot be asked. */
  questionsTo(asks: Partial<Asks>): (() => Request)[];
}

const LIST_PAGES = 20;
const CATEGORY_PAGES = 3;
const MAKERS_ASKED = 200;
const DETAILS = 5_000;
const RANGES: [number, number][] = [
  [2, 10],
  [5, 30],
  [10, 50],
];

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);
const pages = upTo(LIST_PAGES);
const makers = upTo(MAKERS_ASKED).map(makerAt);
const inCategories = CATEGORIES.flatMap((slug) => upTo(CATEGORY_PAGES).map((page) => ({ slug, page })));
const inRanges = RANGES.flatMap(([from, to]) => CATEGORIES.map((slug) => ({ slug, from, to })));
const twoWords = TAGS.map((tag, at) => `${tag} ${TOOLS[at % TOOLS.length]!.toLowerCase()}`);

const searches =
  (words: string[]): Case["questionsTo"] =>
  ({ search }) =>
    search ? words.map((asked) => () => search(asked)) : [];

export const cases: Case[] = [
  {
    name: "newest first",
    questionsTo: ({ newest }) => (newest ? pages.map((page) => () => newest(page)) : []),
  },
  {
    name: "a category",
    questionsTo: ({ inCategory }) =>
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
    questionsTo: ({ inPriceRange }) =>
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
    questionsTo: ({ cheapest }) => (cheapest ? pages.map((page) => () => cheapest(page)) : []),
  },
  { name: "text: a common word", questionsTo: searches(TAGS) },
  { name: "text: a rare word", questionsTo: searches(makers) },
  { name: "text: two words", questionsTo: searches(twoWords) },
  {
    name: "one product",
    questionsTo: ({ detail }) => (detail ? upTo(DETAILS).map((at) => () => detail(at)) : []),
  },
];
