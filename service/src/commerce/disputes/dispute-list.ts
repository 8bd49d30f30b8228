import type { AdminDispute } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { EMPTY_PAGE, mapPage, type Page } from "../../platform/db/paging.ts";
import { type DisputeFilter, type ListedDispute, listDisputeRows } from "./queries.ts";

export async function listDisputes(ctx: Context, query: DisputeFilter): Promise<Page<AdminDispute>> {
  const orderId = query.orderId === undefined ? undefined : toUuid("ord", query.orderId);
  if (orderId === null) return EMPTY_PAGE;
  return mapPage(await listDisputeRows(ctx.db, { ...query, orderId }), toAdminDispute);
}

function toAdminDispute(dispute: ListedDispute): AdminDispute {
  const amount = (minor: bigint) => toDecimal(minor, dispute.currency);
  return {
    id: dispute.providerDisputeId,
    orderId: toId("ord", dispute.orderId),
    status: dispute.status,
    amount: amount(dispute.amountMinor),
    heldAmount: amount(dispute.heldMinor),
    lostAmount: dispute.lostMinor === null ? null : amount(dispute.lostMinor),
    excessAmount: amount(dispute.excessMinor),
    feeAmount: amount(dispute.feeMinor),
    currency: dispute.currency,
    reason: dispute.reason,
    product: { id: toId("prod", dispute.productId), title: dispute.productTitle },
    buyer: { id: toUserId(dispute.buyerId), name: dispute.buyerName },
    seller: { id: toUserId(dispute.sellerId), name: dispute.sellerName },
    answerBy: dispute.answerBy?.toISOString() ?? null,
    openedAt: dispute.openedAt.toISOString(),
    closedAt: dispute.closedAt?.toISOString() ?? null,
  };
}
