import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { bookRefundSettled } from "../orders/books.ts";
import { lockRefund, recordRefund, theService } from "./refund-moves.ts";
import { findRefundRow, stampSettled } from "./refund-queries.ts";

/**
 * Books that the operator gave a buyer in another way, such as by bank transfer, what their bank had sent back: they are owed nothing
 * any more.
 */
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
      throw notSettleable(refund.status, "no bank has sent it back, so that its buyer is owed nothing");
    const settledAt = ctx.now();
    if (!(await stampSettled(tx, refund.id, reference, settledAt)))
      throw notSettleable("settled", "it is settled already");
    const { amountMinor, currency } = refund;
    await bookRefundSettled(ctx, tx, order, { refundId: refund.id, amountMinor, settledAt });
    await recordRefund(ctx, tx, (await findRefundRow(tx, refund.id))!, "refund.settled", theService);
    return { refundId, amountMinor, currency };
  });
}

const notSettleable = (current: string, why: string) =>
  new ApiError("INVALID_STATE", `The refund cannot be settled: ${why}.`, { current });
