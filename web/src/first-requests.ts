import type { ProductsListQuery } from "@stoa/sdk";
import { cutText } from "./lib/slug.ts";

/**
 * The requests of the first view of each public address. The service sends their responses with the page, so that the client needs no
 * request of its own before it shows anything. Both use this file, so that the addresses of the requests are the same.
 */

/** The sections of the home page, in its order. */
export const HOME_SECTIONS = ["trending", "passRate", "publishedAt", "rating"] as const;
export type HomeSection = (typeof HOME_SECTIONS)[number];

export const HOME_TITLES: Record<HomeSection, string> = {
  trending: "Trending this week",
  passRate: "Measured best",
  publishedAt: "New",
  rating: "Best rated",
};

/** Products without a review or score come last in these orders, and are not the best ones. */
export const homeFilters = (sort: HomeSection): Pick<ProductsListQuery, "minRating" | "minPassRate"> => ({
  ...(sort === "rating" && { minRating: 1 }),
  ...(sort === "passRate" && { minPassRate: 0 }),
});

export const homeProducts = (sort: HomeSection): ProductsListQuery => ({
  sort,
  order: "desc",
  limit: sort === "passRate" ? 4 : 8,
  ...homeFilters(sort),
});
export const CATEGORIES = { limit: 100 };
export const PRODUCT = { content: false };
export const REVIEWS = { limit: 10 };
export const SIMILAR = { limit: 3 };
export const UNREAD = { unread: true, limit: 1 };
/** What the header of a member needs. */
export const MEMBER_REQUESTS: string[] = ["/account", toAddress("/notifications", { ...UNREAD, page: 1 })];

const SORTS = ["relevance", "trending", "rating", "publishedAt", "price", "passRate"] as const;
const TYPES = ["prompt", "workflow"] as const;
const RESULTS_PER_PAGE = 24;

/** The state of a search. All of it is in the address. */
export interface ProductSearch {
  q?: string;
  type?: (typeof TYPES)[number];
  category?: string;
  provider?: string;
  tag?: string;
  lang?: string;
  minPrice?: number;
  maxPrice?: number;
  minRating?: number;
  /** provider/model, or the model alone. */
  testedOn?: string;
  /** From 0 to 1. */
  minPassRate?: number;
  sort?: (typeof SORTS)[number];
  /** Default: descending. */
  order?: "asc" | "desc";
  view?: "list";
  page?: number;
}

/** Leaves out what no search can have, so that an address made by hand shows a result. */
export function parseSearch(given: Record<string, unknown>): ProductSearch {
  const text = (name: string, max: number) => {
    const value = given[name];
    const isText = (typeof value === "string" || typeof value === "number") && String(value).trim() !== "";
    return isText ? { [name]: cutText(String(value), max) } : {};
  };
  const number = (name: string, min: number, max: number) => {
    const value = given[name] === "" ? Number.NaN : Number(given[name]);
    return value >= min && value <= max ? { [name]: value } : {};
  };
  const oneOf = (name: string, values: readonly string[]) =>
    values.includes(String(given[name])) ? { [name]: given[name] } : {};
  const page = number("page", 2, 10_000);
  return {
    ...text("q", 200),
    ...oneOf("type", TYPES),
    ...text("category", 60),
    ...text("provider", 60),
    ...text("tag", 40),
    ...text("lang", 35),
    ...number("minPrice", 0, 999_999),
    ...number("maxPrice", 0, 999_999),
    ...number("minRating", 1, 5),
    ...text("testedOn", 250),
    ...number("minPassRate", 0, 1),
    ...oneOf("sort", SORTS),
    ...oneOf("order", ["asc", "desc"]),
    ...oneOf("view", ["list"]),
    ...(Number.isInteger(page["page"]) && page),
  };
}

export function searchFilters(search: ProductSearch): Omit<ProductsListQuery, "page" | "limit"> {
  const { q, page: _page, view: _view, sort: _sort, order: _order, ...filters } = search;
  return { ...(q !== undefined && { search: q }), ...filters };
}

export function searchResults(search: ProductSearch): ProductsListQuery & { page: number } {
  const { sort = "relevance", order = "desc", page = 1 } = search;
  const ordered = sort === "relevance" ? { sort } : { sort, order };
  return { ...searchFilters(search), ...ordered, limit: RESULTS_PER_PAGE, page };
}

const SELLER_SORTS = ["publishedAt", "trending", "rating", "price"] as const;

/** The state of a seller's page. */
export interface SellerSearch {
  sort?: (typeof SELLER_SORTS)[number];
  page?: number;
}

export function parseSellerSearch(given: Record<string, unknown>): SellerSearch {
  const { sort, page } = parseSearch(given);
  const sellerSort = SELLER_SORTS.find((known) => known === sort);
  return { ...(sellerSort !== undefined && { sort: sellerSort }), ...(page !== undefined && { page }) };
}

export const sellerProducts = (
  handle: string,
  { sort = "trending", page = 1 }: SellerSearch,
): ProductsListQuery & { page: number } => ({
  author: handle,
  sort,
  order: "desc",
  limit: RESULTS_PER_PAGE,
  page,
});

const ID = /prod_[0-9a-z]{26}$/;

/** The id at the end of /p/{slug}-{id}. Anything else names no product, and the service says so. */
export const productIdOf = (slug: string): string => ID.exec(slug)?.[0] ?? slug;

const SELLER_PATH = /^\/u\/([^/]+)$/;
const PRODUCT_PATH = /^\/p\/([^/]+)$/;
const CHECKOUT_PATH = /^\/checkout\/(prod_[0-9a-z]{26})$/;
const DOT_SEGMENT = /\/\.{1,2}$/;
const SHARED_PATH = /^\/shared\/([^/]+)$/;

/** Paths below /v1 with their queries, for the address of a page; none for pages that only members see. */
export function firstRequests(path: string, search: Record<string, unknown>): string[] {
  const categories = toAddress("/categories", { ...CATEGORIES, page: 1 });
  if (path === "/")
    return [
      categories,
      ...HOME_SECTIONS.map((sort) => toAddress("/products", { ...homeProducts(sort), page: 1 })),
    ];
  if (path === "/search") {
    const parsed = parseSearch(search);
    return [
      toAddress("/products", searchResults(parsed)),
      toAddress("/products/facets", searchFilters(parsed)),
      categories,
    ];
  }
  // As a part of a path, they would lead to another address of the API, also when they are encoded.
  if (DOT_SEGMENT.test(decodeURIComponent(path))) return [];
  const [, handle] = SELLER_PATH.exec(path) ?? [];
  if (handle !== undefined) {
    const seller = decodeURIComponent(handle);
    const products = sellerProducts(seller, parseSellerSearch(search));
    return [`/sellers/${encodeURIComponent(seller)}`, toAddress("/products", products)];
  }
  const [, token] = SHARED_PATH.exec(path) ?? [];
  if (token !== undefined) return [`/shared-runs/${encodeURIComponent(decodeURIComponent(token))}`];
  const [, sold] = CHECKOUT_PATH.exec(path) ?? [];
  if (sold !== undefined) return [toAddress(`/products/${sold}`, PRODUCT)];
  const [, slug] = PRODUCT_PATH.exec(path) ?? [];
  if (slug === undefined) return [];
  const product = `/products/${encodeURIComponent(productIdOf(decodeURIComponent(slug)))}`;
  return [
    toAddress(product, PRODUCT),
    toAddress(`${product}/reviews`, { ...REVIEWS, page: 1 }),
    toAddress(`${product}/similar`, { ...SIMILAR, page: 1 }),
    categories,
  ];
}

/** The parameters sorted by name, as the client looks them up. */
export function toAddress(path: string, query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value));
  parameters.sort();
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}
