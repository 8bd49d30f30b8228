import type { PayoutDetail, PayoutItem } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { type ItemRow, listItemRows, sumStatement } from "./payout-item-queries.ts";
import { requirePayout, toPayout } from "./payouts.ts";

export async function readPayout(ctx: Context, caller: Member, payoutId: string): Promise<PayoutDetail> {
  const payout = await requirePayout(ctx, caller, payoutId);
  const { openingMinor, addedMinor } = await sumStatement(ctx.db, payout);
  const amount = (minor: bigint) => toDecimal(minor, payout.currency);
  return {
    ...toPayout(payout),
    statement: {
      opening: amount(openingMinor),
      added: amount(addedMinor),
      closing: amount(openingMinor + addedMinor - payout.amountMinor),
    },
  };
}

export async function listPayoutItems(
  ctx: Context,
  caller: Member,
  payoutId: string,
  paging: Paging,
): Promise<Page<PayoutItem>> {
  const payout = await requirePayout(ctx, caller, payoutId);
  return mapPage(await listItemRows(ctx.db, payout, paging), (row) => toItem(row, payout.currency));
}

export const toItem = (row: ItemRow, currency: string): PayoutItem => ({
  kind: row.kind,
  share: row.account === "referrer" ? "commission" : "earnings",
  amount: toDecimal(row.amountMinor, currency),
  currency,
  orderId: row.orderId && toId("ord", row.orderId),
  product: row.productId === null ? null : { id: toId("prod", row.productId), title: row.productTitle ?? "" },
  occurredAt: row.occurredAt.toISOString(),
  at: row.at.toISOString(),
});
