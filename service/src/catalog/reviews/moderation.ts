import type { ModeratedReview } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import {
  findModerated,
  insertReport,
  listModerated,
  lockReview,
  type ModeratedRow,
  type ReviewChange,
  type ReviewRow,
  resolveReports,
  writeReview,
} from "./queries.ts";
import { updateRating } from "./rating.ts";
import { findVisibleReview, lockVisibleReview, type ReviewPath, toReview } from "./review.ts";

/** One report per user and review. */
export async function reportReview(ctx: Context, caller: Member, path: ReviewPath, reason: string) {
  const { id, authorId } = await findVisibleReview(ctx, caller, path);
  if (authorId === caller.userId) throw ruleViolation("reviewId", "is your own review: change or delete it");
  return ctx.db.transaction().execute(async (tx) => {
    await lockVisibleReview(tx, caller, id);
    const report = { reviewId: id, reporterId: caller.userId, reason, createdAt: ctx.now() };
    if (!(await insertReport(tx, report)))
      throw new ApiError("CONFLICT", "You have reported this review already.");
    await ctx.idempotencyKey?.bind(tx, toId("rev", id));
    return toReportResponse(toId("rev", id));
  });
}

export const toReportResponse = (id: string) => ({ id, reported: true as const });

const toModerated = (row: ModeratedRow): ModeratedReview => ({
  ...toReview(row),
  product: { id: toId("prod", row.productId), title: row.productTitle },
  reports: row.reports.map(({ reporterId, reporterName, reason, createdAt }) => ({
    reporter: { id: toUserId(reporterId), name: reporterName },
    reason,
    createdAt: createdAt.toISOString(),
  })),
  openReports: row.openReports,
});

interface QueueQuery extends Paging {
  status?: "reported" | "hidden" | undefined;
}

export const listReviewsToModerate = async (ctx: Context, query: QueueQuery) =>
  mapPage(await listModerated(ctx.db, query.status, query), toModerated);

interface AdminActor {
  caller: SessionCaller;
  source: RequestSource;
}

interface ModerationAction {
  action: "review.hidden" | "review.restored";
  change: ReviewChange & { hiddenAt: Date | null };
  details: Record<string, unknown>;
}

/** Removes the review from list and rating. Its author still sees it, with the reason. */
export const hideReview = (ctx: Context, by: AdminActor, reviewId: string, reason: string) =>
  moderate(ctx, by, reviewId, (review) => {
    if (review.hiddenAt)
      throw new ApiError("INVALID_STATE", "The review is already hidden.", { current: "hidden" });
    return {
      action: "review.hidden",
      change: { hiddenAt: ctx.now(), hiddenReason: reason },
      details: { reason },
    };
  });

/** Shows a hidden review again, or closes the reports of a visible one. */
export const restoreReview = (ctx: Context, by: AdminActor, reviewId: string) =>
  moderate(ctx, by, reviewId, (review, openReports) => {
    if (!review.hiddenAt && openReports === 0)
      throw new ApiError("INVALID_STATE", "The review is neither hidden nor reported.", { current: "shown" });
    return {
      action: "review.restored",
      change: { hiddenAt: null, hiddenReason: null },
      details: review.hiddenAt ? { reason: review.hiddenReason } : {},
    };
  });

async function moderate(
  ctx: Context,
  by: AdminActor,
  reviewId: string,
  decide: (review: ReviewRow, openReports: number) => ModerationAction,
): Promise<ModeratedReview> {
  const id = toUuid("rev", reviewId);
  return ctx.db.transaction().execute(async (tx) => {
    const review = id ? await lockReview(tx, id) : undefined;
    if (!review) throw new ApiError("REVIEW_NOT_FOUND");
    const resolved = await resolveReports(tx, review.id, ctx.now());
    const { action, change, details } = decide(review, resolved);
    await writeReview(tx, review.id, change);
    await updateRating(tx, review.productId, { from: review, to: { ...review, hiddenAt: change.hiddenAt } });
    await auditModeration(ctx, tx, by, { action, review, details: { ...details, settledReports: resolved } });
    await ctx.idempotencyKey?.bind(tx, toId("rev", review.id));
    return toModerated(required(await findModerated(tx, review.id), "the review"));
  });
}

/** For a review that was moderated with the same Idempotency-Key. */
export async function resumeModeration(ctx: Context, reviewId: string): Promise<ModeratedReview> {
  const review = await findModerated(ctx.db, requireUuid("rev", reviewId));
  if (!review) throw new ApiError("REVIEW_NOT_FOUND");
  return toModerated(review);
}

const auditModeration = (
  ctx: Context,
  tx: Tx,
  { caller, source }: AdminActor,
  { action, review, details }: Pick<ModerationAction, "action" | "details"> & { review: ReviewRow },
) =>
  recordAudit(ctx, tx, {
    actorId: caller.userId,
    action,
    target: { type: "review", id: toId("rev", review.id) },
    source,
    details: { productId: toId("prod", review.productId), ...details },
  });
