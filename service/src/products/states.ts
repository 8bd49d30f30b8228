import { renderCard } from "../catalogue/card.ts";
import { relist } from "../catalogue/listing.ts";
import type { Context, Member, Source } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { announce } from "../events/outbox.ts";
import { toId } from "../ids.ts";
import { toDecimal } from "../money/amount.ts";
import { toUserId } from "../people/users.ts";
import { mustBeComplete } from "./checklist.ts";
import { changersView, type Locked, lockToChange, mustMayChange, recordIfAnothers } from "./ownership.ts";
import { lockProductsOf, setStatus } from "./queries.ts";

function mustBeIn(product: Locked, allowed: string[]): void {
  if (allowed.includes(product.status)) return;
  throw new ApiError(
    "INVALID_STATE",
    `The product is ${product.status}; this needs ${allowed.join(" or ")}.`,
    {
      current: product.status,
      allowed,
    },
  );
}

async function moveTo(ctx: Context, tx: Tx, product: Locked, status: Locked["status"]): Promise<void> {
  const now = ctx.now();
  const publishedAt = status === "published" ? now : product.publishedAt;
  const listed = { ...product, status, updatedAt: now, publishedAt };
  await setStatus(tx, product.id, { status, card: renderCard(listed) }, now);
  await relist(tx, listed);
}

/** The audit log's word for a move that another than the author made. */
const moved = (product: Locked, to: Locked["status"], source: Source | null) => ({
  action: `product.${to}`,
  source,
  details: { from: product.status, to },
});

export async function publishProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  source: Source | null = null,
) {
  const { id } = await mustMayChange(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const product = await lockToChange(tx, id);
    mustBeIn(product, ["draft", "rejected", "unpublished"]);
    mustHaveAuthor(product);
    await mustBeComplete(product);
    await moveTo(ctx, tx, product, "published");
    await announcePublished(ctx, tx, product);
    await recordIfAnothers(ctx, tx, caller, product, moved(product, "published", source));
  });
  return changersView(ctx, caller, id);
}

function mustHaveAuthor(product: Locked): void {
  if (product.authorClosedAt === null) return;
  throw new ApiError("INVALID_STATE", "Its author's account is closed.", { current: "closed" });
}

const announcePublished = (ctx: Context, tx: Tx, product: Locked) =>
  announce(ctx, tx, [product.authorId], "product.published", {
    product: {
      id: toId("prod", product.id),
      title: product.title,
      type: product.type,
      price: toDecimal(product.priceMinor, product.currency),
      authorId: toUserId(product.authorId),
    },
  });

const announceUnpublished = (ctx: Context, tx: Tx, product: Locked, reason: "unpublished" | "deleted") =>
  announce(ctx, tx, [product.authorId], "product.unpublished", {
    product: {
      id: toId("prod", product.id),
      title: product.title,
      type: product.type,
      authorId: toUserId(product.authorId),
      reason,
      unpublishedAt: ctx.now().toISOString(),
    },
  });

async function takeOffSale(ctx: Context, tx: Tx, product: Locked): Promise<void> {
  await moveTo(ctx, tx, product, "unpublished");
  await announceUnpublished(ctx, tx, product, "unpublished");
}

export async function unpublishProduct(ctx: Context, caller: Member, productId: string, source: Source) {
  const { id } = await mustMayChange(ctx, caller, productId);
  await ctx.db.transaction().execute(async (tx) => {
    const product = await lockToChange(tx, id);
    mustBeIn(product, ["published"]);
    await takeOffSale(ctx, tx, product);
    await recordIfAnothers(ctx, tx, caller, product, moved(product, "unpublished", source));
  });
  return changersView(ctx, caller, id);
}

/** An author leaves: what they offer goes off sale, and buyers keep what they bought. */
export async function takeAllOffSale(ctx: Context, tx: Tx, authorId: string): Promise<number> {
  const products = (await lockProductsOf(tx, authorId)).filter(({ status }) => status === "published");
  for (const product of products) await takeOffSale(ctx, tx, product);
  return products.length;
}

/** Soft: buyers keep what they bought, everybody else finds nothing here any more. */
export async function deleteProduct(ctx: Context, caller: Member, productId: string, source: Source) {
  const { id } = await mustMayChange(ctx, caller, productId);
  return ctx.db.transaction().execute(async (tx) => {
    const product = await lockToChange(tx, id);
    await moveTo(ctx, tx, product, "deleted");
    if (product.firstPublishedAt) await announceUnpublished(ctx, tx, product, "deleted");
    await recordIfAnothers(ctx, tx, caller, product, moved(product, "deleted", source));
    return {
      id: toId("prod", product.id),
      status: "deleted" as const,
      deletedAt: ctx.now().toISOString(),
      message: "The product is removed from the marketplace. Buyers keep access.",
    };
  });
}
