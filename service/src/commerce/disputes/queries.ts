import type { AdminDispute } from "@stoa/contract";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface ListedDispute {
  providerDisputeId: string;
  orderId: string;
  status: AdminDispute["status"];
  amountMinor: bigint;
  heldMinor: bigint;
  lostMinor: bigint | null;
  excessMinor: bigint;
  feeMinor: bigint;
  currency: string;
  reason: string;
  productId: string;
  productTitle: string;
  buyerId: string;
  buyerName: string;
  sellerId: string;
  sellerName: string;
  answerBy: Date | null;
  openedAt: Date;
  closedAt: Date | null;
}

export interface DisputeFilter extends Paging {
  status?: AdminDispute["status"] | undefined;
  orderId?: string | undefined;
}

function matchingDisputes(db: Queries, { status, orderId }: DisputeFilter) {
  let disputes = db.selectFrom("disputes as d");
  if (status) disputes = disputes.where("d.status", "=", status);
  if (orderId) disputes = disputes.where("d.orderId", "=", orderId);
  return disputes;
}

export async function listDisputeRows(db: Queries, filter: DisputeFilter): Promise<Page<ListedDispute>> {
  const items = await matchingDisputes(db, filter)
    .innerJoin("orders as o", "o.id", "d.orderId")
    .innerJoin("users as b", "b.id", "o.buyerId")
    .innerJoin("users as s", "s.id", "o.sellerId")
    .select(["d.providerDisputeId", "d.orderId", "d.status", "d.reason"])
    .select(["d.amountMinor", "d.heldMinor", "d.lostMinor", "d.excessMinor", "d.feeMinor"])
    .select(["d.answerBy", "d.openedAt", "d.closedAt"])
    .select(["o.currency", "o.productId", "o.productTitle", "o.buyerId", "o.sellerId"])
    .select(["b.name as buyerName", "s.name as sellerName"])
    .orderBy("d.openedAt", "desc")
    .orderBy("d.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<NumberAmounts<ListedDispute>>()
    .execute();
  return {
    items: items.map((row) => toBigintAmounts(row)),
    ...(await countRows(db, matchingDisputes(db, filter).select("d.id"))),
  };
}
