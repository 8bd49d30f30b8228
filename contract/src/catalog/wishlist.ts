import { z } from "zod";
import { endpoint, listOf, one } from "../core/endpoint.ts";
import { filter, paging, Timestamp } from "../core/envelope.ts";
import { ProductCard } from "./products.ts";

export const MAX_WISHLIST_ENTRIES = 1_000;

export const WishlistEntry = z
  .object({ addedAt: Timestamp, product: ProductCard })
  .meta({ id: "WishlistEntry" });

const tag = "wishlist";
const reads = { who: "member", permission: "purchases:read" } as const;
const writes = { who: "member", permission: "purchases:write" } as const;
const params = z.object({ productId: z.string() });

export const list = endpoint({
  name: "wishlist.list",
  tag,
  method: "GET",
  path: "/wishlist",
  summary: "List the products that you want to remember, newest first",
  description: "Products that are not on sale at present are left out, and come back when they are.",
  access: reads,
  query: z.strictObject({ ...paging, productId: filter(z.string().max(100), "Only this product") }),
  response: listOf(WishlistEntry),
});

export const add = endpoint({
  name: "wishlist.add",
  tag,
  method: "PUT",
  path: "/wishlist/:productId",
  summary: "Add a product to your wishlist",
  description: `A product that is on it already stays where it is. A wishlist has at most ${MAX_WISHLIST_ENTRIES} products.`,
  access: writes,
  params,
  response: one(z.object({ productId: z.string(), addedAt: Timestamp })),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const remove = endpoint({
  name: "wishlist.remove",
  tag,
  method: "DELETE",
  path: "/wishlist/:productId",
  summary: "Remove a product from your wishlist",
  description: "Succeeds too if the product is on sale and not on the list.",
  access: writes,
  params,
  response: one(z.object({ productId: z.string(), removed: z.literal(true) })),
  errors: ["PRODUCT_NOT_FOUND"],
});
