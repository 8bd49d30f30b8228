import { findAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { mustBeChargeable } from "../../core/money/chargeable.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { renderCard } from "../search/card.ts";
import { relist } from "../search/listing.ts";
import { mustBeComplete } from "./checklist.ts";
import { mustBeAsSeen } from "./detail.ts";
import { letterOf, type Said } from "./letters.ts";
import { isModerated, type Move, type MoveName, moves } from "./lifecycle.ts";
import { changersView, type Locked, lockToChange, mustMayChange } from "./ownership.ts";
import { lockProductsOf, type Verdict, writeMove } from "./queries.ts";
import { numbersOf } from "./version.ts";

interface Wish extends Partial<Said> {
  source: RequestSource | null;
  /** The product as the caller has seen it. */
  ifMatch?: string | null;
}

/** Moves a product as the table of lifecycle.ts says; answers it as whoever moved it sees it. */
export async function moveProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  name: MoveName,
  wish: Wish,
) {
  const { id } = await lockAndMove(ctx, caller, productId, name, wish);
  return changersView(ctx, caller, id);
}

/** Of a product that was moved under the same Idempotency-Key. */
export const resumeMove = (ctx: Context, caller: Member, productId: string) =>
  changersView(ctx, caller, toUuid("prod", productId)!);

/** Soft: buyers keep what they bought, everybody else finds nothing here any more. */
export async function deleteProduct(ctx: Context, caller: Member, productId: string, source: RequestSource) {
  const { id, updatedAt } = await lockAndMove(ctx, caller, productId, "delete", { source });
  return {
    id: toId("prod", id),
    status: "deleted" as const,
    deletedAt: updatedAt.toISOString(),
    message: "The product is removed from the marketplace. Buyers keep access.",
  };
}

/** An author leaves: what they offer goes off sale, and buyers keep what they bought. */
export async function takeAllOffSale(ctx: Context, tx: Tx, authorId: string, source: RequestSource | null) {
  const by = { actorId: authorId, source };
  for (const product of await lockProductsOf(tx, authorId)) {
    if (product.status === "published") await move(ctx, tx, product, "unpublish", by);
    if (product.status === "pending_review") await move(ctx, tx, product, "withdraw", by);
  }
}

async function lockAndMove(ctx: Context, caller: Member, productId: string, name: MoveName, wish: Wish) {
  const seen = await mustMayChange(ctx, caller, productId, moves[name].by);
  return ctx.db.transaction().execute(async (tx) => {
    const product = await lockToChange(tx, seen.id);
    mustBeIn(product, moves[name].from);
    mustBeAsSeen(wish.ifMatch ?? null, { ...seen, revision: product.revision }, caller);
    const way = name === "publish" && isModerated(ctx, product) ? "submit" : name;
    await ctx.idempotencyKey?.bind(tx, toId("prod", product.id));
    return move(ctx, tx, product, way, { ...wish, actorId: caller.userId });
  });
}

function mustBeIn({ status }: Locked, allowed: Move["from"]): void {
  if (allowed.includes(status)) return;
  const message = `The product is ${status}; this needs ${allowed.join(" or ")}.`;
  throw new ApiError("INVALID_STATE", message, { current: status, allowed });
}

/** All that belongs to one move, in the transaction that holds the product: the state, the lists, who is told, the trace. */
async function move(
  ctx: Context,
  tx: Tx,
  product: Locked,
  name: MoveName,
  { actorId, source, reasonCode = null, reason = null }: Wish & { actorId: string },
): Promise<Locked> {
  const { to, complete, deed } = moves[name];
  if (complete) await mustBeFitForSale(ctx, tx, product);
  const said = { reasonCode, reason };
  const after = { ...afterMove(ctx, product, name), ...verdictAfter(ctx, name, said) };
  await writeMove(tx, after, renderCard(after));
  await relist(tx, after);
  await tellPrograms(ctx, tx, product, moves[name]);
  await tellAuthor(ctx, tx, product, name, said);
  await recordAudit(ctx, tx, {
    actorId,
    action: deed,
    target: { type: "product", id: toId("prod", product.id) },
    source,
    details: { from: product.status, to, ...(reasonCode && { reasonCode }), ...(reason && { reason }) },
  });
  return after;
}

async function mustBeFitForSale(ctx: Context, tx: Tx, product: Locked): Promise<void> {
  if (product.authorClosedAt !== null)
    throw new ApiError("INVALID_STATE", "Its author's account is closed.", { current: "closed" });
  await mustBeComplete(tx, product);
  // Its price may be older than the payment provider.
  const { priceMinor, currency } = product;
  mustBeChargeable(ctx.integrations.payments, BigInt(priceMinor), currency, (why) =>
    ruleViolation("price", why),
  );
}

function afterMove(ctx: Context, product: Locked, name: MoveName): Locked {
  const { to: status } = moves[name];
  const now = ctx.now();
  if (status !== "published") return { ...product, status, updatedAt: now };
  return { ...product, status, updatedAt: now, publishedAt: now, released: numbersOf(product.version) };
}

function verdictAfter(ctx: Context, name: MoveName, { reasonCode, reason }: Said): Verdict | null {
  const { verdict } = moves[name];
  if (verdict === "kept") return null;
  if (!verdict) return { moderationCode: null, moderationReason: null, moderatedAt: null };
  return { moderationCode: reasonCode, moderationReason: reason, moderatedAt: ctx.now() };
}

/** A letter for what moderators decided; what authors do themselves they know. */
async function tellAuthor(ctx: Context, tx: Tx, product: Locked, name: MoveName, said: Said): Promise<void> {
  const letter = letterOf(name, product.title, said);
  if (!letter || product.authorClosedAt) return;
  const author = await findAccount(tx, product.authorId);
  await queueEmail(ctx, tx, author!.email, letter);
}

async function tellPrograms(ctx: Context, tx: Tx, product: Locked, { event }: Move): Promise<void> {
  if (!event) return;
  if (event === "product.published") {
    await announcePublished(ctx, tx, product);
    return;
  }
  const wasOnSale = event.if === "ever" ? product.firstPublishedAt : product.status === "published";
  if (wasOnSale) await announceUnpublished(ctx, tx, product, event.unpublished);
}

const announcePublished = (ctx: Context, tx: Tx, product: Locked) =>
  publishEvent(ctx, tx, [product.authorId], "product.published", {
    product: {
      id: toId("prod", product.id),
      title: product.title,
      type: product.type,
      price: toDecimal(product.priceMinor, product.currency),
      authorId: toUserId(product.authorId),
    },
  });

const announceUnpublished = (
  ctx: Context,
  tx: Tx,
  product: Locked,
  reason: "unpublished" | "suspended" | "deleted",
) =>
  publishEvent(ctx, tx, [product.authorId], "product.unpublished", {
    product: {
      id: toId("prod", product.id),
      title: product.title,
      type: product.type,
      authorId: toUserId(product.authorId),
      reason,
      unpublishedAt: ctx.now().toISOString(),
    },
  });
