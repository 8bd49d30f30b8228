import type { Queries, Tx } from "../../platform/db/database.ts";

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

export const findLive = (db: Queries, buyerId: string, productId: string) =>
  db
    .selectFrom("entitlements")
    .select(["order_id", "major", "status", "used_at"])
    .where("buyer_id", "=", buyerId)
    .where("product_id", "=", productId)
    .where("status", "<>", "revoked")
    .executeTakeFirst();

/** A shared lock: a revocation waits. */
export const lockActive = (tx: Tx, buyerId: string, productId: string) =>
  tx
    .selectFrom("entitlements")
    .select("order_id")
    .where("buyer_id", "=", buyerId)
    .where("product_id", "=", productId)
    .where("status", "=", "active")
    .forShare()
    .executeTakeFirst();

export const findByOrder = (db: Queries, orderId: string) =>
  db
    .selectFrom("entitlements")
    .select(["buyer_id", "product_id", "major", "status", "used_at as usedAt"])
    .where("order_id", "=", orderId)
    .executeTakeFirst();

/** Blocks every other use, hold and revocation until the transaction ends. */
export const lockByOrder = (tx: Tx, orderId: string) =>
  tx
    .selectFrom("entitlements")
    .select(["status", "used_at as usedAt"])
    .where("order_id", "=", orderId)
    .forNoKeyUpdate()
    .executeTakeFirst();

/** A revoked entitlement stays revoked. Returns false when nothing changed. */
export async function setStatus(
  tx: Tx,
  orderId: string,
  status: "active" | "held" | "revoked",
): Promise<boolean> {
  const moved = await tx
    .updateTable("entitlements")
    .set({ status })
    .where("order_id", "=", orderId)
    .where("status", "not in", ["revoked", status])
    .returning("order_id")
    .executeTakeFirst();
  return moved !== undefined;
}

/** The first use stays the first: later ones write nothing, and neither does one of what is held; false then. */
export async function setFirstUse(
  db: Queries,
  buyerId: string,
  productId: string,
  now: Date,
): Promise<boolean> {
  const stamped = await db
    .updateTable("entitlements")
    .set({ used_at: now })
    .where("buyer_id", "=", buyerId)
    .where("product_id", "=", productId)
    .where("status", "=", "active")
    .where("used_at", "is", null)
    .returning("order_id")
    .executeTakeFirst();
  return stamped !== undefined;
}
