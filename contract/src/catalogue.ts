import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { Currency, paging, queryNumber } from "./envelope.ts";
import { ProductCard, productStatuses } from "./products.ts";

export const productSorts = [
  "relevance",
  "createdAt",
  "updatedAt",
  "publishedAt",
  "price",
  "rating",
  "popularity",
  "views",
  "trending",
  "title",
] as const;

const reads = { who: "visitor", permission: "products:read" } as const;
const typeInAnyCase = z.string().max(40).toUpperCase();

export const list = endpoint({
  name: "products.list",
  method: "GET",
  path: "/products",
  summary: "List and search products",
  description:
    "Published products; with author=me your own in every state. Totals are exact to 10,000 (1,000 with search), above that a lower bound.",
  access: reads,
  query: z.strictObject({
    ...paging,
    type: typeInAnyCase.optional().describe("In any case: prompt, workflow"),
    category: z.string().max(60).optional().describe("A slug; its sub-categories are included"),
    provider: z.string().max(40).toLowerCase().optional(),
    minPrice: queryNumber(z.number().min(0)).default(0),
    maxPrice: queryNumber(z.number().min(0)).optional(),
    sort: z.enum(productSorts).default("relevance"),
    order: z.enum(["asc", "desc"]).default("desc").describe("Ignored by relevance, which is best first"),
    search: z.string().trim().max(200).optional(),
    author: z.string().max(100).optional().describe("An author's id, or me"),
    status: z.enum(productStatuses).optional().describe("Only with author=me"),
    lang: z.string().max(35).optional().describe("BCP 47, as the seller gave it: en, pt-BR"),
    tag: z.string().max(40).optional(),
    minRating: queryNumber(z.number().min(0).max(5)).optional(),
    currency: Currency.optional().describe("What minPrice, maxPrice and sort=price speak of"),
  }),
  data: ProductCard,
  list: true,
});

export const Category = z
  .object({
    slug: z.string(),
    name: z.string(),
    parent: z.string().nullable(),
    products: z.int().describe("Published products in it and below it"),
  })
  .meta({ id: "Category" });

export const categories = endpoint({
  name: "categories.list",
  method: "GET",
  path: "/categories",
  summary: "List the categories with their counts",
  access: reads,
  query: z.strictObject(paging),
  data: Category,
  list: true,
});
