import { z } from "zod";
import { endpoint, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, QueryCurrency, queryNumber } from "../core/envelope.ts";
import { productStatuses } from "./lifecycle.ts";
import { ProductCard } from "./products.ts";

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
  "passRate",
] as const;

const reads = { who: "visitor", permission: "products:read" } as const;
const typeInAnyCase = z.string().max(40).toUpperCase();

const filters = {
  type: filter(typeInAnyCase, "In any case: prompt, workflow"),
  category: filter(z.string().max(60).toLowerCase(), "A slug; includes its subcategories"),
  provider: filter(z.string().max(40).toLowerCase()),
  minPrice: queryNumber(z.number().min(0)).default(0),
  maxPrice: queryNumber(z.number().min(0)).optional(),
  search: z.string().trim().max(200).optional(),
  author: z.string().max(100).optional().describe("An author's id or handle, or me"),
  status: filter(z.enum(productStatuses), "Only with author=me"),
  lang: z.string().max(35).optional().describe("BCP 47, as the seller set it: en, pt-BR"),
  tag: z.string().max(40).optional(),
  minRating: queryNumber(z.number().min(0).max(5)).optional(),
  testedOn: filter(
    z.string().max(250),
    "A model of the score card, as provider/model or the model alone, in any case. Products without a score card are left out",
  ),
  minPassRate: queryNumber(z.number().min(0).max(1))
    .optional()
    .describe(
      "From 0 to 1: the lower bound of the pass rate's 95 % interval, of the model in testedOn, else of the product's best model",
    ),
  currency: QueryCurrency.optional().describe("The currency of minPrice, maxPrice and sort=price"),
};

export const list = endpoint({
  name: "products.list",
  method: "GET",
  path: "/products",
  summary: "List and search products",
  description:
    "Published products, or with author=me your own in every status. Search finds products that have every word, each as a prefix, in titles, tags, descriptions and sellers' names. If no product on sale has every word, the service corrects mistyped words (meta.correctedSearch). If there is still none, it lists products with any of the words, those with most words first. Words of products, tags and sellers' names are never corrected. Filters by type, category, provider, tag, price and rating do not change what is searched for. A search lists its 1,000 most purchased matches, the first 300 of them by relevance. Totals are exact for filters by type, category, provider and currency, and for price and rating at the limits of the facets. Other totals are counted up to 10,000, those of a search up to 1,000; above that they are a lower bound.",
  access: reads,
  query: z.strictObject({
    ...paging,
    ...filters,
    sort: z
      .enum(productSorts)
      .default("relevance")
      .describe(
        "rating is a Bayesian mean, (sum of stars + 35) ÷ (reviews + 10), as if ten more reviews had given 3.5. So 4.33 stars from 30 reviews (mean 4.13) come before 5.0 stars from one review (mean 3.64). trending sums purchases, each worth half as much after 7 days. relevance without search is popularity. passRate is the lower bound that minPassRate compares; products without a score card come last",
      ),
    order: z
      .enum(["asc", "desc"])
      .default("desc")
      .describe("Ignored for relevance, which is always best first"),
  }),
  response: listOf(ProductCard),
});

export const Category = z
  .object({
    slug: z.string(),
    name: z.string(),
    parent: z.string().nullable(),
    products: z.int().describe("Published products in it and its subcategories"),
  })
  .meta({ id: "Category" });

export const categories = endpoint({
  name: "categories.list",
  method: "GET",
  path: "/categories",
  summary: "List the categories with their counts",
  access: reads,
  query: z.strictObject(paging),
  response: listOf(Category),
});

const counted = { count: z.int().min(0) };
const values = z.array(z.object({ value: z.string(), ...counted }));

export const Facets = z
  .object({
    type: values,
    category: values.describe("Slugs; subcategories are not counted"),
    provider: values,
    tag: values.describe("The 20 most common"),
    price: z
      .array(z.object({ from: Amount, to: Amount.nullable(), ...counted }))
      .describe("For minPrice and maxPrice, in `currency`"),
    rating: z
      .array(z.object({ from: z.number(), ...counted }))
      .describe("For minRating: this many stars or more"),
    testedOn: values.describe("The 20 most common models of score cards, as provider/model in lower case"),
    passRate: z
      .array(z.object({ from: z.number(), ...counted }))
      .describe("For minPassRate: this lower bound or more"),
    currency: Currency,
    estimated: z
      .array(z.enum(["type", "category", "provider", "tag", "price", "rating", "testedOn", "passRate"]))
      .describe("Facets that count only the 1,000 most purchased matches; their counts are lower bounds"),
  })
  .meta({ id: "Facets" });
export type Facets = z.infer<typeof Facets>;

export const facets = endpoint({
  name: "products.facets",
  method: "GET",
  path: "/products/facets",
  summary: "Count the products of a list by each filter",
  description:
    "Accepts the filters of the list. Each facet ignores its own filter, so it shows the alternatives.",
  access: reads,
  query: z.strictObject(filters),
  response: one(Facets),
});

export const Tag = z.object({ tag: z.string(), products: z.int() }).meta({ id: "Tag" });

export const tags = endpoint({
  name: "tags.list",
  method: "GET",
  path: "/tags",
  summary: "List the tags of published products, the most common first",
  access: { who: "member", permission: "products:read" },
  query: z.strictObject({
    ...paging,
    search: z.string().trim().max(40).optional().describe("The start of the tag"),
  }),
  response: listOf(Tag),
});
