import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { postRefundSettled } from "../orders/order-postings.ts";
import { auditRefund, lockRefund, SERVICE_ACTOR } from "./refund-moves.ts";
import { findRefundRow, markSettled } from "./refund-queries.ts";

/** The operator has paid the buyer in another way, such as by bank transfer. */
export async function settleReturnedRefund(
  ctx: Context,
  refundId: string,
  reference: string,
): Promise<{ refundId: string; amountMinor: bigint; currency: string }> {
  const id = toUuid("refund", refundId);
  return ctx.db.transaction().execute(async (tx) => {
    const locked = id ? await lockRefund(tx, id) : undefined;
    if (!locked) throw new ApiError("REFUND_NOT_FOUND", `There is no refund ${refundId}.`);
    const { order, refund } = locked;
    if (!refund.returnedAt)
      throw notSettleableError(refund.status, "no bank returned it, so the buyer is owed nothing");
    const settledAt = ctx.now();
    if (!(await markSettled(tx, refund.id, reference, settledAt)))
      throw notSettleableError("settled", "it is settled already");
    const { amountMinor, currency } = refund;
    await postRefundSettled(ctx, tx, order, { refundId: refund.id, amountMinor, settledAt });
    await auditRefund(
      ctx,
      tx,
      required(await findRefundRow(tx, refund.id), "the refund"),
      "refund.settled",
      SERVICE_ACTOR,
    );
    return { refundId, amountMinor, currency };
  });
}

const notSettleableError = (current: string, why: string) =>
  new ApiError("INVALID_STATE", `The refund cannot be settled: ${why}.`, { current });
