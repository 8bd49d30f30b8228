import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import {
  findAnyOfProduct,
  findByOrder,
  findLive,
  insertEntitlement,
  listBuyers,
  lockActive,
  lockByOrder,
  setFirstUse,
  setStatus,
} from "./queries.ts";

/** The major number of a semantic version: a purchase entitles to that line. */
export const majorOf = (version: string): number => Number(version.split(".", 1)[0]);

/** The database refuses a second live entitlement for the same product. */
export const grantEntitlement = (
  ctx: Context,
  tx: Tx,
  order: { id: string; buyerId: string; productId: string; version: string },
) =>
  insertEntitlement(tx, {
    buyerId: order.buyerId,
    productId: order.productId,
    orderId: order.id,
    major: majorOf(order.version),
    createdAt: ctx.now(),
  });

/** Includes held entitlements, whose money is being refunded. */
export const findLiveEntitlement = (db: Queries, userId: string, productId: string) =>
  findLive(db, userId, productId);

export const hasEntitlements = async (db: Queries, productId: string): Promise<boolean> =>
  (await findAnyOfProduct(db, productId)) !== undefined;

/** The buyers of a major line, in the order of their ids, after one of them. */
export const listEntitledBuyers = async (
  db: Queries,
  line: { productId: string; major: number },
  after: string | null,
  limit: number,
): Promise<string[]> => (await listBuyers(db, line, after, limit)).map(({ buyerId }) => buyerId);

/** Prevents revocation until the transaction ends. */
export const lockLiveEntitlement = (tx: Tx, userId: string, productId: string) =>
  lockActive(tx, userId, productId);

export const findEntitlementByOrder = (db: Queries, orderId: string) => findByOrder(db, orderId);

/** Prevents a first use until the transaction ends. */
export const lockEntitlement = (tx: Tx, orderId: string) => lockByOrder(tx, orderId);

/** While a refund is under way, the product cannot be used. */
export const holdEntitlement = (tx: Tx, orderId: string) => setStatus(tx, orderId, "held");
export const resumeEntitlement = (tx: Tx, orderId: string) => setStatus(tx, orderId, "active");

/** Links and runs stop at once. Returns false when the order has no live entitlement. */
export const revokeEntitlement = (tx: Tx, orderId: string) => setStatus(tx, orderId, "revoked");

/**
 * The first reveal, download or run: later refunds need the seller's consent. Throws when a refund was faster, so that a
 * buyer never has both product and money.
 */
export async function recordFirstUse(ctx: Context, userId: string, productId: string): Promise<void> {
  if (await setFirstUse(ctx.db, userId, productId, ctx.now())) return;
  const entitlement = await findLive(ctx.db, userId, productId);
  if (entitlement?.status === "active") return;
  throw new ApiError("UNAUTHORIZED", "You no longer have access to this product.");
}
