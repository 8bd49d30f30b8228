import type { ProductStatus } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { requireUuid, toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { mustBeChargeable } from "../../core/money/chargeable.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { renderCard } from "../search/card.ts";
import { updateListing } from "../search/listing.ts";
import { renderApproval } from "./approved-details.ts";
import { mustBeComplete } from "./checklist.ts";
import { requestCopyCheck } from "./copy-reports.ts";
import { checkIfMatch } from "./detail.ts";
import { isModerated, type Move, type MoveName, moves } from "./lifecycle.ts";
import { describeReason, type ModerationReason, renderModerationEmail } from "./moderation-email.ts";
import { authorizeChange, detailAfterChange, type LockedProduct, lockProductForChange } from "./ownership.ts";
import { lastFindings, mustHaveNoSecret, reportFindings, scanProduct, storeScan } from "./product-scans.ts";
import { lockProductsOf, type ModerationDecision, writeMove } from "./queries.ts";
import { resolveReports } from "./report-queries.ts";
import { flagNewRelease, mustAcknowledgeRegression } from "./score-card.ts";
import { parseVersion } from "./semantic-version.ts";
import { requestVersionNotifications } from "./version-notifications.ts";

interface MoveOptions extends Partial<ModerationReason> {
  source: RequestSource | null;
  /** The ETag that the caller read. */
  ifMatch?: string | null;
}

/** Returns the status after the move. */
export async function publishOwnProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  source: RequestSource | null,
): Promise<ProductStatus> {
  return (await lockAndMove(ctx, caller, productId, "publish", { source })).status;
}

export async function moveProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  name: MoveName,
  input: MoveOptions,
) {
  const { id } = await lockAndMove(ctx, caller, productId, name, input);
  return detailAfterChange(ctx, caller, id);
}

/** For a move that was made with the same Idempotency-Key. */
export const resumeMove = (ctx: Context, caller: Member, productId: string) =>
  detailAfterChange(ctx, caller, requireUuid("prod", productId));

/** A soft delete: buyers keep access. */
export async function deleteProduct(ctx: Context, caller: Member, productId: string, source: RequestSource) {
  const { id, updatedAt } = await lockAndMove(ctx, caller, productId, "delete", { source });
  return {
    id: toId("prod", id),
    status: "deleted" as const,
    deletedAt: updatedAt.toISOString(),
    message: "The product is removed from the marketplace. Buyers keep access.",
  };
}

/** On account closed: unpublishes the author's products. Buyers keep access. */
export async function unpublishAll(ctx: Context, tx: Tx, authorId: string, source: RequestSource | null) {
  const by = { actorId: authorId, source };
  for (const product of await lockProductsOf(tx, authorId)) {
    if (product.status === "published") await move(ctx, tx, product, "unpublish", by);
    if (product.status === "pending_review") await move(ctx, tx, product, "withdraw", by);
  }
}

async function lockAndMove(
  ctx: Context,
  caller: Member,
  productId: string,
  name: MoveName,
  input: MoveOptions,
) {
  const seen = await authorizeChange(ctx, caller, productId, moves[name].by);
  return ctx.db.transaction().execute(async (tx) => {
    const product = await lockProductForChange(tx, seen.id);
    mustHaveStatus(product, moves[name].from);
    checkIfMatch(input.ifMatch ?? null, { ...seen, revision: product.revision }, caller);
    const way = name === "publish" && isModerated(ctx, product) ? "submit" : name;
    await ctx.idempotencyKey?.bind(tx, toId("prod", product.id));
    return move(ctx, tx, product, way, { ...input, actorId: caller.userId });
  });
}

function mustHaveStatus({ status }: LockedProduct, allowed: Move["from"]): void {
  if (allowed.includes(status)) return;
  const message = `The product is ${status}; this needs ${allowed.join(" or ")}.`;
  throw new ApiError("INVALID_STATE", message, { current: status, allowed });
}

/** Runs in the transaction that holds the product's lock. */
async function move(
  ctx: Context,
  tx: Tx,
  product: LockedProduct,
  name: MoveName,
  { actorId, source, reasonCode = null, reason = null }: MoveOptions & { actorId: string },
): Promise<LockedProduct> {
  const { to, complete, auditAction } = moves[name];
  if (complete) await mustBeSellable(ctx, tx, product);
  const scan = complete ? scanProduct(product) : null;
  if (scan) mustHaveNoSecret(scan);
  if (complete && moves[name].by === "author")
    await mustAcknowledgeRegression(
      ctx,
      tx,
      product,
      "Create a version above it with acknowledgesRegression: true and a changelog that tells buyers",
    );
  const change = scan && { result: scan, before: await lastFindings(tx, product.id) };
  const said = { reasonCode, reason };
  const after = { ...productAfterMove(ctx, product, name), ...decisionAfterMove(ctx, name, said) };
  await writeMove(tx, after, {
    card: renderCard(after),
    ...(after.status === "published" && renderApproval(after)),
  });
  await updateListing(tx, after);
  if (scan) await storeScan(ctx, tx, after, scan);
  if (change && name === "publish") await reportFindings(ctx, tx, product.id, change);
  if (name === "suspend") await resolveReports(tx, product.id, ctx.now());
  await publishMoveEvent(ctx, tx, product, moves[name]);
  await requestVersionNotifications(ctx, tx, product, after);
  await flagNewRelease(ctx, tx, product, after);
  if (after.status === "published") await requestCopyCheck(ctx, tx, after.id);
  await notifyAuthor(ctx, tx, product, name, said);
  await recordAudit(ctx, tx, {
    actorId,
    action: auditAction,
    target: { type: "product", id: toId("prod", product.id) },
    source,
    details: { from: product.status, to, ...(reasonCode && { reasonCode }), ...(reason && { reason }) },
  });
  return after;
}

async function mustBeSellable(ctx: Context, tx: Tx, product: LockedProduct): Promise<void> {
  if (product.authorClosedAt !== null)
    throw new ApiError("INVALID_STATE", "Its author's account is closed.", { current: "closed" });
  await mustBeComplete(tx, product);
  // The price may be older than the payment provider and below its minimum.
  const { priceMinor, currency } = product;
  mustBeChargeable(ctx.integrations.payments, BigInt(priceMinor), currency, (why) =>
    ruleViolation("price", why),
  );
}

function productAfterMove(ctx: Context, product: LockedProduct, name: MoveName): LockedProduct {
  const { to: status } = moves[name];
  const now = ctx.now();
  if (status !== "published") return { ...product, status, updatedAt: now };
  return { ...product, status, updatedAt: now, publishedAt: now, released: parseVersion(product.version) };
}

function decisionAfterMove(
  ctx: Context,
  name: MoveName,
  { reasonCode, reason }: ModerationReason,
): ModerationDecision | null {
  const { moderationNote } = moves[name];
  if (moderationNote === "kept") return null;
  if (!moderationNote) return { moderationCode: null, moderationReason: null, moderatedAt: null };
  return { moderationCode: reasonCode, moderationReason: reason, moderatedAt: ctx.now() };
}

const notificationKinds = {
  approve: "product.approved",
  reject: "product.rejected",
  suspend: "product.suspended",
  reinstate: "product.reinstated",
} as const;

const isDecision = (name: MoveName): name is keyof typeof notificationKinds => name in notificationKinds;

/** About decisions of moderators, not about the author's own moves. */
async function notifyAuthor(
  ctx: Context,
  tx: Tx,
  product: LockedProduct,
  name: MoveName,
  said: ModerationReason,
): Promise<void> {
  if (!isDecision(name)) return;
  const notification = {
    userId: product.authorId,
    kind: notificationKinds[name],
    subjectId: toId("prod", product.id),
    data: { product: product.title, reason: describeReason(said) },
    occurrence: String(product.revision),
  };
  await notifyAccount(ctx, tx, notification, renderModerationEmail(name, product.title, said));
}

async function publishMoveEvent(
  ctx: Context,
  tx: Tx,
  product: LockedProduct,
  { event }: Move,
): Promise<void> {
  if (!event) return;
  if (event === "product.published") {
    await publishPublishedEvent(ctx, tx, product);
    return;
  }
  const wasOnSale = event.if === "ever" ? product.firstPublishedAt : product.status === "published";
  if (wasOnSale) await publishUnpublishedEvent(ctx, tx, product, event.unpublished);
}

const publishPublishedEvent = (ctx: Context, tx: Tx, product: LockedProduct) =>
  publishEvent(ctx, tx, [product.authorId], "product.published", {
    product: {
      id: toId("prod", product.id),
      title: product.title,
      type: product.type,
      price: toDecimal(product.priceMinor, product.currency),
      authorId: toUserId(product.authorId),
    },
  });

const publishUnpublishedEvent = (
  ctx: Context,
  tx: Tx,
  product: LockedProduct,
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
