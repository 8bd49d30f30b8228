import type { ReportProduct } from "@stoa/contract";
import type { Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, invalidRequest, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { findVisibleProduct } from "./detail.ts";
import { lockProductForChange } from "./ownership.ts";
import { insertReport, resolveReports } from "./report-queries.ts";

/** One open report per user and product. */
export async function reportProduct(
  ctx: Context,
  caller: Member,
  productId: string,
  { reasonCode, comment }: ReportProduct,
) {
  if (reasonCode === "other" && !comment)
    throw invalidRequest("comment", "is needed where the code is other");
  const { id, authorId } = await findVisibleProduct(ctx, caller, productId);
  if (authorId === caller.userId)
    throw ruleViolation("productId", "is your own product: change or unpublish it");
  const report = { productId: id, reporterId: caller.userId, reasonCode, comment: comment ?? null };
  return ctx.db.transaction().execute(async (tx) => {
    if (!(await insertReport(tx, { ...report, createdAt: ctx.now() })))
      throw new ApiError("CONFLICT", "You have reported this product already.");
    await ctx.idempotencyKey?.bind(tx, toId("prod", id));
    return toReportResponse(toId("prod", id));
  });
}

export const toReportResponse = (id: string) => ({ id, reported: true as const });

/** The moderators found nothing wrong. */
export async function dismissReports(
  ctx: Context,
  { caller, source }: { caller: SessionCaller; source: RequestSource },
  productId: string,
) {
  const id = toUuid("prod", productId);
  if (!id) throw new ApiError("PRODUCT_NOT_FOUND");
  return ctx.db.transaction().execute(async (tx) => {
    await lockProductForChange(tx, id);
    const dismissed = await resolveReports(tx, id, ctx.now());
    if (dismissed === 0)
      throw new ApiError("INVALID_STATE", "The product has no open reports.", { current: "not_reported" });
    await recordAudit(ctx, tx, {
      actorId: caller.userId,
      action: "product.reports_dismissed",
      target: { type: "product", id: productId },
      source,
      details: { settledReports: dismissed },
    });
    await ctx.idempotencyKey?.bind(tx, productId);
    return toDismissedResponse(productId);
  });
}

export const toDismissedResponse = (id: string) => ({ id, openReports: 0 as const });
