import type { Queries, Tx } from "../db/database.ts";

export interface NewEntitlement {
  buyer_id: string;
  product_id: string;
  order_id: string;
  major: number;
  created_at: Date;
}

export const insertEntitlement = (tx: Tx, entitlement: NewEntitlement) =>
  tx
    .insertInto("entitlements")
    .values({ ...entitlement, status: "active" })
    .execute();

export const findActive = (db: Queries, buyerId: string, productId: string) =>
  db
    .selectFrom("entitlements")
    .select(["order_id", "major", "used_at"])
    .where("buyer_id", "=", buyerId)
    .where("product_id", "=", productId)
    .where("status", "=", "active")
    .executeTakeFirst();

/** Shared: whoever takes it away waits. */
export const lockActive = (tx: Tx, buyerId: string, productId: string) =>
  tx
    .selectFrom("entitlements")
    .select("order_id")
    .where("buyer_id", "=", buyerId)
    .where("product_id", "=", productId)
    .where("status", "=", "active")
    .forShare()
    .executeTakeFirst();

export const findOfOrder = (db: Queries, orderId: string) =>
  db
    .selectFrom("entitlements")
    .select(["buyer_id", "product_id", "major", "status"])
    .where("order_id", "=", orderId)
    .executeTakeFirst();

/** The first use stays the first: later ones write nothing. */
export const stampFirstUse = (db: Queries, buyerId: string, productId: string, now: Date) =>
  db
    .updateTable("entitlements")
    .set({ used_at: now })
    .where("buyer_id", "=", buyerId)
    .where("product_id", "=", productId)
    .where("status", "=", "active")
    .where("used_at", "is", null)
    .execute();
