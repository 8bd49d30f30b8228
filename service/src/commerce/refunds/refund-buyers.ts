import type { RefundedBuyers } from "@stoa/contract";
import { isTakenFromBuyers } from "../../catalog/products/goods.ts";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { JobDefinition } from "../../platform/jobs/job-queue.ts";
import { lockOrder } from "../orders/queries.ts";
import { remainingOf } from "./giving-back.ts";
import { carryOut } from "./refund-payment.ts";
import { countRefundableOrders, listRefundableOrders } from "./refund-queries.ts";
import { mustBeGivable } from "./refund-rules.ts";
import { giveUnasked } from "./refunds.ts";

const SINCE_DAYS = 90;
const AT_ONCE = 100;

export const refundBuyersJob: JobDefinition = {
  name: "refund-buyers",
  retries: 20,
  retryDelaySeconds: 30,
  maxRetryDelaySeconds: 3_600,
  attemptTimeoutSeconds: 900,
};

/** What the job is given: all of it is in the order of the administrator. */
export interface RefundBuyers {
  productId: string;
  adminId: string;
  since: string;
  startedAt: string;
}

/** The buyers of what moderators took from them as harmful or illegal get their money back, by a job. */
export async function refundBuyers(
  ctx: Context,
  caller: SessionCaller,
  productId: string,
  source: RequestSource,
): Promise<RefundedBuyers> {
  const id = await mustBeTakenFromBuyers(ctx, productId);
  const startedAt = ctx.now();
  const since = daysAfter(startedAt, -SINCE_DAYS);
  return ctx.db.transaction().execute(async (tx) => {
    const count = await countRefundableOrders(tx, { productId: id, since, startedAt });
    const wish: RefundBuyers = {
      productId: id,
      adminId: caller.userId,
      since: since.toISOString(),
      startedAt: startedAt.toISOString(),
    };
    if (count > 0) await ctx.jobs.send(tx, refundBuyersJob.name, wish);
    await recordAudit(ctx, tx, {
      actorId: caller.userId,
      action: "product.buyers_refunded",
      target: { type: "product", id: productId },
      source,
      details: { orders: count, since: wish.since },
    });
    const begun = { productId: toId("prod", id), orders: count, since: wish.since };
    await ctx.idempotencyKey?.bind(tx, JSON.stringify(begun));
    return begun;
  });
}

async function mustBeTakenFromBuyers(ctx: Context, productId: string): Promise<string> {
  const id = toUuid("prod", productId);
  const taken = id ? await isTakenFromBuyers(ctx.db, id) : undefined;
  if (!id || taken === undefined) throw new ApiError("PRODUCT_NOT_FOUND");
  if (taken) return id;
  throw new ApiError(
    "INVALID_STATE",
    "Suspend it as malicious or illegal first: its buyers can still use it.",
    {
      current: "usable",
      allowed: ["malicious", "illegal"],
    },
  );
}

/**
 * The job: one purchase after the other. What has a refund of it is passed over, so that it goes on where it was interrupted; one that
 * cannot be refunded keeps no other from its turn, and lets the job be tried again.
 */
export async function carryOutRefundBuyers(
  ctx: Context,
  wish: RefundBuyers,
  signal: AbortSignal,
): Promise<void> {
  const of = { ...wish, since: new Date(wish.since), startedAt: new Date(wish.startedAt) };
  let after: string | null = null;
  let failures = 0;
  for (;;) {
    const orders: { id: string }[] = await listRefundableOrders(ctx.db, of, after, AT_ONCE);
    for (const { id } of orders) {
      signal.throwIfAborted();
      if (!(await refundBuyer(ctx, id, wish.adminId))) failures++;
      after = id;
    }
    if (orders.length < AT_ONCE) break;
  }
  if (failures > 0) throw new Error(`${failures} purchases of ${wish.productId} could not be refunded`);
}

async function refundBuyer(ctx: Context, orderId: string, adminId: string): Promise<boolean> {
  try {
    const refundId = await ctx.db.transaction().execute(async (tx) => {
      const order = mustBeGivable((await lockOrder(tx, orderId))!);
      const wish = { amountMinor: remainingOf(order), reason: REASON, details: null };
      return giveUnasked(ctx, tx, order, wish, { actorId: adminId, source: null });
    });
    await carryOut(ctx, refundId);
    return true;
  } catch (error) {
    ctx.log.warn({ order: orderId, err: error }, "a buyer of a withdrawn product could not be refunded");
    return false;
  }
}

const REASON = "Moderators have withdrawn this product.";
