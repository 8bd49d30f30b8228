import type { Context } from "../context.ts";
import type { Queries, Tx } from "../db/database.ts";
import { findActive, findOfOrder, insertEntitlement, lockActive, stampFirstUse } from "./queries.ts";

/** The major number of a semantic version: the line that a purchase entitles to. */
export const majorOf = (version: string): number => Number(version.split(".", 1)[0]);

/** Gives a buyer the use of what an order bought. The database refuses a second live one of a product. */
export const grantUse = (
  ctx: Context,
  tx: Tx,
  order: { id: string; buyerId: string; productId: string; version: string },
) =>
  insertEntitlement(tx, {
    buyer_id: order.buyerId,
    product_id: order.productId,
    order_id: order.id,
    major: majorOf(order.version),
    created_at: ctx.now(),
  });

export const findLiveEntitlement = (db: Queries, userId: string, productId: string) =>
  findActive(db, userId, productId);

/** Nobody takes it away before the transaction ends. */
export const lockLiveEntitlement = (tx: Tx, userId: string, productId: string) =>
  lockActive(tx, userId, productId);

export const findEntitlementOfOrder = (db: Queries, orderId: string) => findOfOrder(db, orderId);

/** The first reveal, download or run: from then on a refund needs the seller's consent. */
export const noteUse = (ctx: Context, userId: string, productId: string) =>
  stampFirstUse(ctx.db, userId, productId, ctx.now());
