import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { EventData, ProductStatus } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { inBatches } from "../../core/batches.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { mustBeChargeable } from "../../core/money/chargeable.ts";
import { publishEvent, publishEvents } from "../../events/outbox/outbox.ts";
import { type AuditRecord, recordAudits } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { inPipelinedTransaction, sendInOrder } from "../../platform/db/pipeline.ts";
import { renderCard } from "../search/card.ts";
import { updateListings } from "../search/listing.ts";
import { renderApproval } from "./approved-details.ts";
import { mustBeComplete } from "./checklist.ts";
import { requestCopyChecks } from "./copy-reports.ts";
import { checkIfMatch, detailResponse } from "./detail.ts";
import { isModerated, type Move, type MoveName, moves } from "./lifecycle.ts";
import { describeReason, type ModerationReason, renderModerationEmail } from "./moderation-email.ts";
import {
  authorizeChange,
  detailAfterChange,
  type LockedProduct,
  lockOwnProduct,
  lockOwnProducts,
  lockProductForChange,
} from "./ownership.ts";
import {
  isReportable,
  lastFindings,
  mustHaveNoSecret,
  reportFindings,
  type ScanChange,
  scanProduct,
  storeScans,
} from "./product-scans.ts";
import {
  findChangedProduct,
  lockProductsOf,
  type ModerationDecision,
  type ProductForReader,
  type WrittenMove,
  writeMoveRows,
} from "./queries.ts";
import { resolveReports } from "./report-queries.ts";
import { flagNewReleases, mustAcknowledgeRegression } from "./score-card.ts";
import { parseVersion } from "./semantic-version.ts";
import { requestVersionNotifications } from "./version-notifications.ts";

interface MoveOptions extends Partial<ModerationReason> {
  source: RequestSource | null;
  /** The ETag that the caller read. */
  ifMatch?: string | null;
}

/** The status after the publication, or why a product is not published. */
export type Publication = { status: ProductStatus } | { error: ApiError };

/** Other requests are served between two checks, but the transaction with its locks must not wait for all of them. */
const MAX_CHECKING_MS = 1_000;

/**
 * Publishes products of their author in one transaction, each as if it were alone: an error of one affects no other. Returns the
 * publications by uuid, at least one. Products whose checks would take too long are missing: publish them next.
 */
export async function publishTogether(
  ctx: Context,
  { userId }: Member,
  ids: string[],
  source: RequestSource | null,
): Promise<Map<string, Publication>> {
  return inPipelinedTransaction(
    ctx.pool,
    (tx) => lockOwnProducts(tx, userId, ids),
    async (tx, locked) => {
      const products = new Map(locked.map((product) => [product.id, product]));
      const publications = new Map<string, Publication>();
      const checked: CheckedMove[] = [];
      const begunAt = performance.now();
      for (const id of ids) {
        const move = await checkOrRefuse(ctx, tx, products.get(id));
        publications.set(id, "error" in move ? move : move.after);
        if (!("error" in move)) checked.push(move);
        if (performance.now() - begunAt > MAX_CHECKING_MS) break;
        await yieldToEventLoop();
      }
      await writeMoves(ctx, tx, checked, { actorId: userId, source });
      return publications;
    },
  );
}

async function checkOrRefuse(
  ctx: Context,
  tx: Tx,
  product: LockedProduct | undefined,
): Promise<CheckedMove | { error: ApiError }> {
  try {
    if (!product) throw new ApiError("PRODUCT_NOT_FOUND");
    mustHaveStatus(product, moves.publish.from);
    return await checkMove(ctx, tx, product, resolveMove(ctx, product, "publish"));
  } catch (error) {
    if (error instanceof ApiError) return { error };
    throw error;
  }
}

export async function moveProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  name: MoveName,
  input: MoveOptions,
) {
  return detailResponse(ctx, await lockAndMove(ctx, caller, productId, name, input), caller);
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

const WRITTEN_TOGETHER = 100;

const movesOfClosing: Partial<Record<ProductStatus, MoveName>> = {
  published: "unpublish",
  pending_review: "withdraw",
};

/** On account closed: unpublishes the author's products. Buyers keep access. */
export async function unpublishAll(ctx: Context, tx: Tx, authorId: string, source: RequestSource | null) {
  const by = { actorId: authorId, source };
  const checked: CheckedMove[] = [];
  for (const product of await lockProductsOf(tx, authorId)) {
    const name = movesOfClosing[product.status];
    if (name) checked.push(await checkMove(ctx, tx, product, name));
  }
  for (const some of inBatches(checked, WRITTEN_TOGETHER)) await writeMoves(ctx, tx, some, by);
}

/** Returns the moved product as the caller reads it. */
async function lockAndMove(
  ctx: Context,
  caller: Member,
  productId: string,
  name: MoveName,
  input: MoveOptions,
): Promise<ProductForReader> {
  const moved = await moveOwnProduct(ctx, caller, productId, name, input);
  if (moved) return moved;
  const seen = await authorizeChange(ctx, caller, productId, moves[name].by);
  return inPipelinedTransaction(
    ctx.pool,
    (tx) => lockProductForChange(tx, seen.id),
    (tx, product) => {
      checkIfMatch(input.ifMatch ?? null, { ...seen, revision: product.revision }, caller);
      return writeMove(ctx, tx, caller, product, name, input);
    },
  );
}

/** null: the caller is not its author, so that the move needs another authorization. */
async function moveOwnProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  name: MoveName,
  input: MoveOptions,
): Promise<ProductForReader | null> {
  const id = toUuid("prod", productId);
  if (id === null || moves[name].by !== "author" || input.ifMatch) return null;
  return inPipelinedTransaction(
    ctx.pool,
    (tx) => lockOwnProduct(tx, caller.userId, id),
    async (tx, product) => (product ? writeMove(ctx, tx, caller, product, name, input) : null),
  );
}

async function writeMove(
  ctx: Context,
  tx: Tx,
  caller: Member,
  product: LockedProduct,
  name: MoveName,
  input: MoveOptions,
): Promise<ProductForReader> {
  mustHaveStatus(product, moves[name].from);
  const checked = await checkMove(ctx, tx, product, resolveMove(ctx, product, name), input);
  const [, , moved] = await sendInOrder(tx, [
    () => ctx.idempotencyKey?.bind(tx, toId("prod", product.id)),
    () => writeMoves(ctx, tx, [checked], { actorId: caller.userId, source: input.source }),
    () => findChangedProduct(ctx, tx, product.id, caller.userId),
  ]);
  return moved;
}

/** Under moderation, publishing means to submit. */
const resolveMove = (ctx: Context, product: LockedProduct, name: MoveName): MoveName =>
  name === "publish" && isModerated(ctx, product) ? "submit" : name;

function mustHaveStatus({ status }: LockedProduct, allowed: Move["from"]): void {
  if (allowed.includes(status)) return;
  const message = `The product is ${status}; this needs ${allowed.join(" or ")}.`;
  throw new ApiError("INVALID_STATE", message, { current: status, allowed });
}

/** A move that is allowed, before it is written. */
interface CheckedMove extends ModerationReason {
  name: MoveName;
  before: LockedProduct;
  after: LockedProduct;
  /** null: the move needs none. */
  scan: ScanChange | null;
}

/** Runs in the transaction that holds the product's lock. */
async function checkMove(
  ctx: Context,
  tx: Tx,
  product: LockedProduct,
  name: MoveName,
  { reasonCode = null, reason = null }: Partial<ModerationReason> = {},
): Promise<CheckedMove> {
  const { complete, by } = moves[name];
  if (complete) await mustBeSellable(ctx, tx, product);
  const result = complete ? scanProduct(product) : null;
  if (result) mustHaveNoSecret(result);
  if (complete && by === "author")
    await mustAcknowledgeRegression(
      ctx,
      tx,
      product,
      "Create a version above it with acknowledgesRegression: true and a changelog that tells buyers",
    );
  // The earlier findings are needed for a report alone.
  const scan = result && {
    result,
    before: isReportable(result) ? await lastFindings(tx, product.id) : [],
  };
  const moderationReason = { reasonCode, reason };
  const after = {
    ...productAfterMove(ctx, product, name),
    ...decisionAfterMove(ctx, name, moderationReason),
  };
  return { name, before: product, after, scan, ...moderationReason };
}

/** Each statement writes all moves. Statements of single products are for rare moves alone. */
async function writeMoves(
  ctx: Context,
  tx: Tx,
  checked: CheckedMove[],
  by: { actorId: string; source: RequestSource | null },
): Promise<void> {
  if (checked.length === 0) return;
  const afterMoves = checked.map(({ after }) => after);
  const onSale = afterMoves.filter(({ status }) => status === "published").map(({ id }) => id);
  const scans = checked.flatMap(({ after, scan }) => (scan ? [{ product: after, result: scan.result }] : []));
  await sendInOrder(tx, [
    () => writeMoveRows(tx, afterMoves.map(renderMove)),
    () => updateListings(tx, afterMoves),
    () => scans.length > 0 && storeScans(ctx, tx, scans),
    () => publishPublishedEvents(ctx, tx, checked),
    () => flagNewReleases(ctx, tx, checked),
    () => onSale.length > 0 && requestCopyChecks(ctx, tx, onSale),
    () =>
      recordAudits(
        ctx,
        tx,
        checked.map((move) => toAuditRecord(move, by)),
      ),
  ]);
  for (const move of checked) await writeConsequences(ctx, tx, move);
}

const renderMove = (after: LockedProduct): WrittenMove => ({
  after,
  card: renderCard(after),
  ...(after.status === "published" && renderApproval(after)),
});

const toAuditRecord = (
  { name, before, reasonCode, reason }: CheckedMove,
  by: { actorId: string; source: RequestSource | null },
): AuditRecord => ({
  ...by,
  action: moves[name].auditAction,
  target: { type: "product", id: toId("prod", before.id) },
  details: {
    from: before.status,
    to: moves[name].to,
    ...(reasonCode && { reasonCode }),
    ...(reason && { reason }),
  },
});

/** What few moves have. */
async function writeConsequences(ctx: Context, tx: Tx, move: CheckedMove): Promise<void> {
  const { name, before, after, scan } = move;
  if (scan && name === "publish") await reportFindings(ctx, tx, after.id, scan);
  if (name === "suspend") await resolveReports(tx, after.id, ctx.now());
  await publishEndOfSale(ctx, tx, move);
  await requestVersionNotifications(ctx, tx, before, after);
  await notifyAuthor(ctx, tx, before, name, move);
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
  moderationReason: ModerationReason,
): Promise<void> {
  if (!isDecision(name)) return;
  const notification = {
    userId: product.authorId,
    kind: notificationKinds[name],
    subjectId: toId("prod", product.id),
    data: { product: product.title, reason: describeReason(moderationReason) },
    occurrence: String(product.revision),
  };
  await notifyAccount(ctx, tx, notification, renderModerationEmail(name, product.title, moderationReason));
}

async function publishPublishedEvents(ctx: Context, tx: Tx, checked: CheckedMove[]): Promise<void> {
  const published = checked.filter(({ name }) => moves[name].event === "product.published");
  if (published.length === 0) return;
  const events = published.map(({ before }) => ({ to: before.authorId, data: toPublishedData(before) }));
  await publishEvents(ctx, tx, "product.published", events);
}

const toPublishedData = (product: LockedProduct): EventData<"product.published"> => ({
  product: {
    id: toId("prod", product.id),
    title: product.title,
    type: product.type,
    price: toDecimal(product.priceMinor, product.currency),
    authorId: toUserId(product.authorId),
  },
});

async function publishEndOfSale(ctx: Context, tx: Tx, { name, before }: CheckedMove): Promise<void> {
  const { event } = moves[name];
  if (!event || event === "product.published") return;
  const wasOnSale = event.if === "ever" ? before.firstPublishedAt : before.status === "published";
  if (wasOnSale) await publishUnpublishedEvent(ctx, tx, before, event.unpublished);
}

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
