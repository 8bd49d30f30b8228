import { sql } from "kysely";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

/** A code as its seller keeps it: either a percentage or an amount. */
export interface DiscountCodeRow {
  id: string;
  code: string;
  percentBasisPoints: number | null;
  amountOffMinor: bigint | null;
  currency: string | null;
  productId: string | null;
  startsAt: Date | null;
  endsAt: Date | null;
  maxRedemptions: number | null;
  maxPerBuyer: number | null;
  redemptions: number;
  createdAt: Date;
  updatedAt: Date;
}

const codes = (db: Queries) =>
  db
    .selectFrom("discount_codes")
    .select(["id", "code", "currency", "redemptions", "product_id as productId"])
    .select(["percent_basis_points as percentBasisPoints", "amount_off_minor as amountOffMinor"])
    .select(["starts_at as startsAt", "ends_at as endsAt"])
    .select(["max_redemptions as maxRedemptions", "max_per_buyer as maxPerBuyer"])
    .select(["created_at as createdAt", "updated_at as updatedAt"])
    .where("deleted_at", "is", null)
    .$castTo<NumberAmounts<DiscountCodeRow>>();

const only = async (query: ReturnType<typeof codes>): Promise<DiscountCodeRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && toBigintAmounts(row);
};

export const findCode = (db: Queries, sellerId: string, id: string) =>
  only(codes(db).where("id", "=", id).where("seller_id", "=", sellerId));

export const findCodeByName = (db: Queries, sellerId: string, code: string) =>
  only(
    codes(db)
      .where("seller_id", "=", sellerId)
      .where((row) => row(row.fn("lower", ["code"]), "=", code.toLowerCase())),
  );

export const lockCode = (tx: Tx, sellerId: string, id: string) =>
  only(codes(tx).where("id", "=", id).where("seller_id", "=", sellerId).forUpdate());

export async function listCodes(
  db: Queries,
  sellerId: string,
  paging: Paging,
): Promise<Page<DiscountCodeRow>> {
  const found = codes(db).where("seller_id", "=", sellerId);
  const items = await found.orderBy("id", "desc").limit(paging.limit).offset(offsetOf(paging)).execute();
  const { total } = await found
    .clearSelect()
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map((row) => toBigintAmounts(row)), total };
}

export interface DiscountCodeValues {
  code: string;
  percent_basis_points: number | null;
  amount_off_minor: bigint | null;
  currency: string | null;
  product_id: string | null;
  starts_at: Date | null;
  ends_at: Date | null;
  max_redemptions: number | null;
  max_per_buyer: number | null;
  updated_at: Date;
}

export const insertCode = (
  db: Queries,
  code: DiscountCodeValues & { id: string; seller_id: string; created_at: Date },
) => db.insertInto("discount_codes").values(code).execute();

export const updateCode = (tx: Tx, id: string, values: DiscountCodeValues) =>
  tx.updateTable("discount_codes").set(values).where("id", "=", id).execute();

export async function markDeleted(db: Queries, sellerId: string, id: string, now: Date): Promise<boolean> {
  const deleted = await db
    .updateTable("discount_codes")
    .set({ deleted_at: now })
    .where("id", "=", id)
    .where("seller_id", "=", sellerId)
    .where("deleted_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  return deleted !== undefined;
}

/**
 * Takes one of what is left of a code that is still as it was seen; undefined: it is not, or nothing is left. Whoever takes
 * one holds the code until the transaction ends, so that what a buyer has of it can be counted.
 */
export const reserveRedemption = (tx: Tx, id: string, seen: Date) =>
  tx
    .updateTable("discount_codes")
    .set((row) => ({ redemptions: row("redemptions", "+", 1) }))
    .where("id", "=", id)
    .where("deleted_at", "is", null)
    .where("updated_at", "=", seen)
    .where((row) =>
      row.or([row("max_redemptions", "is", null), row("redemptions", "<", row.ref("max_redemptions"))]),
    )
    .returning("max_per_buyer as maxPerBuyer")
    .executeTakeFirst();

/** Whether the code is what it was when it was seen. */
export async function isUnchanged(db: Queries, id: string, seen: Date): Promise<boolean> {
  const code = await codes(db).where("id", "=", id).executeTakeFirst();
  return code?.updatedAt.getTime() === seen.getTime();
}

/** Other orders of a buyer that hold the code. */
export async function countHeld(
  tx: Tx,
  held: { codeId: string; buyerId: string; besides: string },
): Promise<number> {
  const { count } = await tx
    .selectFrom("orders")
    .where("discount_code_id", "=", held.codeId)
    .where("buyer_id", "=", held.buyerId)
    .where("id", "<>", held.besides)
    .where(sql<boolean>`holds_discount_code(status)`)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}
