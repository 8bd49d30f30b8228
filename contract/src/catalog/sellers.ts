import { z } from "zod";
import { Avatar, ProfileLink } from "../accounts/seller-profile.ts";
import { endpoint, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";

export const Seller = z
  .object({
    id: z.string(),
    handle: z.string().nullable().describe("null: not chosen yet"),
    name: z.string(),
    bio: z.string().nullable(),
    avatar: Avatar.nullable(),
    links: z.array(ProfileLink),
    verified: z.boolean().describe("The badge that moderators assign"),
    counts: z
      .object({
        products: z.int().describe("On sale at present"),
        sales: z.int().describe("Purchases of all their products, without refunded ones"),
        reviews: z.int().describe("Reviews that count in the average"),
        rating: z.number().nullable().describe("Average stars of these reviews; null: none"),
      })
      .describe("Up to five seconds old"),
    memberSince: Timestamp,
  })
  .meta({ id: "Seller", description: "The public profile of a seller." });
export type Seller = z.infer<typeof Seller>;

export const get = endpoint({
  name: "sellers.get",
  method: "GET",
  path: "/sellers/:handle",
  summary: "Read the public profile of a seller",
  description:
    "By handle, in any case, or by the user's id. Everyone who has created a product is a seller. Closed and banned accounts are 404. `GET /products?author={handle}` lists the products.",
  access: { who: "visitor", permission: "products:read" },
  params: z.object({ handle: z.string() }),
  response: one(Seller),
  errors: ["SELLER_NOT_FOUND"],
});
