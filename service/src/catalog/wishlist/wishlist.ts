import { MAX_WISHLIST_ENTRIES } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { EMPTY_PAGE, mapPage, type Paging } from "../../platform/db/paging.ts";
import { RawJson } from "../../platform/http/route.ts";
import { findProductForSale } from "../products/product-lookup.ts";
import { insertCounters } from "../search/card.ts";
import { addEntry, deleteEntries, listEntries, removeEntry } from "./queries.ts";

export async function listWishlist(
  ctx: Context,
  { userId }: Member,
  query: Paging & { productId?: string | undefined },
) {
  const productId = query.productId === undefined ? undefined : toUuid("prod", query.productId);
  const page = productId === null ? EMPTY_PAGE : await listEntries(ctx.db, userId, { ...query, productId });
  return mapPage(page, ({ addedAt, ...row }) => {
    const product = insertCounters(row.card, row, ctx.links.origin());
    return new RawJson(`{"addedAt":"${addedAt.toISOString()}","product":${product}}`);
  });
}

export async function addToWishlist(ctx: Context, { userId }: Member, productId: string) {
  const product = await findProductForSale(ctx.db, productId);
  if (!product?.isOnSale) throw new ApiError("PRODUCT_NOT_FOUND");
  const entry = { userId, productId: requireUuid("prod", productId), addedAt: ctx.now() };
  const addedAt = await ctx.db.transaction().execute((tx) => addEntry(tx, entry, MAX_WISHLIST_ENTRIES));
  if (!addedAt)
    throw ruleViolation(
      "productId",
      `is too many: a wishlist has at most ${MAX_WISHLIST_ENTRIES} products. Remove some first`,
    );
  return { productId: toId("prod", entry.productId), addedAt: addedAt.toISOString() };
}

export async function removeFromWishlist(ctx: Context, { userId }: Member, productId: string) {
  const id = toUuid("prod", productId);
  const wasListed = id !== null && (await removeEntry(ctx.db, userId, id));
  if (!wasListed && !(await findProductForSale(ctx.db, productId))?.isOnSale)
    throw new ApiError("PRODUCT_NOT_FOUND");
  return { productId, removed: true as const };
}

export const deleteWishlist = (tx: Tx, userId: string) => deleteEntries(tx, userId);
