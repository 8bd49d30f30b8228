import { sql } from "kysely";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";

export interface NewEntitlement {
  buyerId: string;
  productId: string;
  orderId: string;
  major: number;
  createdAt: Date;
}

export const insertEntitlement = compileOnce((tx, entitlement: NewEntitlement) =>
  tx.insertInto("entitlements").values({ ...entitlement, status: "active" }),
);

export const findLive = async (db: Queries, buyerId: string, productId: string) =>
  (await findLiveRow(db, { buyerId, productId })).rows[0];

const findLiveRow = compileOnce((db, { buyerId, productId }: Pick<NewEntitlement, "buyerId" | "productId">) =>
  db
    .selectFrom("entitlements")
    .select(["orderId", "major", "status", "usedAt"])
    .where("buyerId", "=", buyerId)
    .where("productId", "=", productId)
    // A literal, as in the partial index: with a value, PostgreSQL plans the statement each time.
    .where("status", "<>", sql.lit("revoked")),
);

/** A shared lock: a revocation waits. */
export const lockActive = (tx: Tx, buyerId: string, productId: string) =>
  tx
    .selectFrom("entitlements")
    .select("orderId")
    .where("buyerId", "=", buyerId)
    .where("productId", "=", productId)
    .where("status", "=", "active")
    .forShare()
    .executeTakeFirst();

export const findByOrder = (db: Queries, orderId: string) =>
  db
    .selectFrom("entitlements")
    .select(["buyerId", "productId", "major", "status", "usedAt"])
    .where("orderId", "=", orderId)
    .executeTakeFirst();

/** Blocks every other use, hold and revocation until the transaction ends. */
export const lockByOrder = (tx: Tx, orderId: string) =>
  tx
    .selectFrom("entitlements")
    .select(["status", "usedAt"])
    .where("orderId", "=", orderId)
    .forNoKeyUpdate()
    .executeTakeFirst();

export const findAnyOfProduct = (db: Queries, productId: string) =>
  db
    .selectFrom("entitlements")
    .select("orderId")
    .where("productId", "=", productId)
    .where("status", "<>", "revoked")
    .limit(1)
    .executeTakeFirst();

/** In the order of their ids, after one of them. */
export const listBuyers = (
  db: Queries,
  { productId, major }: { productId: string; major: number },
  after: string | null,
  limit: number,
) =>
  db
    .selectFrom("entitlements")
    .select("buyerId")
    .where("productId", "=", productId)
    .where("major", "=", major)
    .where("status", "<>", "revoked")
    .$if(after !== null, (rows) => rows.where("buyerId", ">", after))
    .orderBy("buyerId")
    .limit(limit)
    .execute();

/** A revoked entitlement stays revoked. Returns false when nothing changed. */
export async function setStatus(
  tx: Tx,
  orderId: string,
  status: "active" | "held" | "revoked",
): Promise<boolean> {
  const moved = await tx
    .updateTable("entitlements")
    .set({ status })
    .where("orderId", "=", orderId)
    .where("status", "not in", ["revoked", status])
    .returning("orderId")
    .executeTakeFirst();
  return moved !== undefined;
}

/** Only the first use of an active entitlement is written. Returns false for later ones and for a held entitlement. */
export async function setFirstUse(
  db: Queries,
  buyerId: string,
  productId: string,
  now: Date,
): Promise<boolean> {
  const stamped = await db
    .updateTable("entitlements")
    .set({ usedAt: now })
    .where("buyerId", "=", buyerId)
    .where("productId", "=", productId)
    .where("status", "=", "active")
    .where("usedAt", "is", null)
    .returning("orderId")
    .executeTakeFirst();
  return stamped !== undefined;
}
