import type { Seller } from "@stoa/contract";
import { findUserIdByHandle } from "../../accounts/people/handles.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { avatarUrl, averageRating } from "../search/card.ts";
import { findSeller, sumCounters } from "./queries.ts";

export async function readSeller(ctx: Context, handleOrId: string): Promise<Seller> {
  const id = toUuid("usr", handleOrId) ?? (await findUserIdByHandle(ctx.db, handleOrId));
  const seller = id ? await findSeller(ctx.db, id) : undefined;
  if (!seller) throw new ApiError("SELLER_NOT_FOUND");
  // The sum reads a row for each product of the seller.
  const counters = await ctx.listCache.get(`seller ${seller.id}`, () => sumCounters(ctx.db, seller.id));
  const { products, purchases, ratingSum, ratingCount } = counters;
  return {
    id: toUserId(seller.id),
    handle: seller.handle,
    name: seller.name,
    bio: seller.bio || null,
    avatar: avatarUrl(seller.avatar, ctx.links.origin()),
    links: seller.links,
    verified: seller.verified,
    counts: {
      products,
      sales: purchases,
      reviews: ratingCount,
      rating: ratingCount === 0 ? null : averageRating(ratingSum, ratingCount),
    },
    memberSince: seller.createdAt.toISOString(),
  };
}
