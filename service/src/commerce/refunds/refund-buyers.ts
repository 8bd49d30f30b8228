import type { RefundedBuyers } from "@stoa/contract";
import { isWithheldFromBuyers } from "../../catalog/products/product-lookup.ts";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { lockOrder } from "../orders/queries.ts";
import { countRefundableOrders, listRefundableOrders } from "./refund-queries.ts";
import { mustBeRefundableByAdmin } from "./refund-rules.ts";
import { remainingAmount } from "./refund-settlement.ts";
import { submitRefund } from "./refund-submission.ts";
import { createAdminRefund } from "./refunds.ts";

const SINCE_DAYS = 90;
const BATCH_SIZE = 100;

export const refundBuyersJob: JobDefinition = {
  name: "refund-buyers",
  retries: 20,
  retryDelaySeconds: 30,
  maxRetryDelaySeconds: 3_600,
  attemptTimeoutSeconds: 900,
};

export interface RefundBuyersData {
  productId: string;
  adminId: string;
  since: string;
  startedAt: string;
}

/** Sends a job that refunds the buyers filter a product withheld as malicious or illegal. */
export async function refundBuyers(
  ctx: Context,
  caller: SessionCaller,
  productId: string,
  source: RequestSource,
): Promise<RefundedBuyers> {
  const id = await mustBeWithheld(ctx, productId);
  const startedAt = ctx.now();
  const since = daysAfter(startedAt, -SINCE_DAYS);
  return ctx.db.transaction().execute(async (tx) => {
    const count = await countRefundableOrders(tx, { productId: id, since, startedAt });
    const input: RefundBuyersData = {
      productId: id,
      adminId: caller.userId,
      since: since.toISOString(),
      startedAt: startedAt.toISOString(),
    };
    if (count > 0) await ctx.jobs.send(tx, refundBuyersJob.name, input);
    await recordAudit(ctx, tx, {
      actorId: caller.userId,
      action: "product.buyers_refunded",
      target: { type: "product", id: productId },
      source,
      details: { orders: count, since: input.since },
    });
    const response = { productId: toId("prod", id), orders: count, since: input.since };
    await ctx.idempotencyKey?.bind(tx, JSON.stringify(response));
    return response;
  });
}

async function mustBeWithheld(ctx: Context, productId: string): Promise<string> {
  const id = toUuid("prod", productId);
  const isWithheld = id ? await isWithheldFromBuyers(ctx.db, id) : undefined;
  if (!id || isWithheld === undefined) throw new ApiError("PRODUCT_NOT_FOUND");
  if (isWithheld) return id;
  throw new ApiError(
    "INVALID_STATE",
    "Suspend the product as malicious or illegal first. Its buyers can still use it.",
    {
      current: "usable",
      allowed: ["malicious", "illegal"],
    },
  );
}

/**
 * Skips orders that it refunded before, so that a retry continues after an interruption. A failed order does not stop the others; the job
 * is retried for it.
 */
export async function runRefundBuyersJob(
  ctx: Context,
  input: RefundBuyersData,
  signal: AbortSignal,
): Promise<void> {
  const filter = { ...input, since: new Date(input.since), startedAt: new Date(input.startedAt) };
  let after: string | null = null;
  let failures = 0;
  for (;;) {
    const orders: { id: string }[] = await listRefundableOrders(ctx.db, filter, after, BATCH_SIZE);
    for (const { id } of orders) {
      signal.throwIfAborted();
      if (!(await refundBuyer(ctx, id, input.adminId))) failures++;
      after = id;
    }
    if (orders.length < BATCH_SIZE) break;
  }
  if (failures > 0) throw new Error(`${failures} purchases of ${input.productId} could not be refunded`);
}

async function refundBuyer(ctx: Context, orderId: string, adminId: string): Promise<boolean> {
  try {
    const refundId = await ctx.db.transaction().execute(async (tx) => {
      const order = mustBeRefundableByAdmin(required(await lockOrder(tx, orderId), "the order"));
      const input = { amountMinor: remainingAmount(order), reason: REASON, details: null };
      return createAdminRefund(ctx, tx, order, input, { actorId: adminId, source: null });
    });
    await submitRefund(ctx, refundId);
    return true;
  } catch (error) {
    ctx.log.warn({ order: orderId, err: error }, "a buyer of a withdrawn product could not be refunded");
    return false;
  }
}

const REASON = "Moderators have withdrawn this product.";
