import type { DiscountStatus } from "@stoa/contract";
import { sql } from "kysely";
import { type NumberAmounts, toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface DiscountCodeValues {
  code: string;
  percentBasisPoints: number | null;
  amountOffMinor: bigint | null;
  currency: string | null;
  productId: string | null;
  startsAt: Date | null;
  endsAt: Date | null;
  maxRedemptions: number | null;
  maxPerBuyer: number | null;
  updatedAt: Date;
}

/** Has either a percentage or an amount. */
export interface DiscountCodeRow extends DiscountCodeValues {
  id: string;
  redemptions: number;
  createdAt: Date;
}

const codes = (db: Queries) =>
  db
    .selectFrom("discountCodes")
    .select([
      "id",
      "code",
      "currency",
      "redemptions",
      "productId",
      "percentBasisPoints",
      "amountOffMinor",
      "startsAt",
      "endsAt",
      "maxRedemptions",
      "maxPerBuyer",
      "createdAt",
      "updatedAt",
    ])
    .where("deletedAt", "is", null)
    .$castTo<NumberAmounts<DiscountCodeRow>>();

const only = async (query: ReturnType<typeof codes>): Promise<DiscountCodeRow | undefined> => {
  const row = await query.executeTakeFirst();
  return row && toBigintAmounts(row);
};

export const findCode = (db: Queries, sellerId: string, id: string) =>
  only(codes(db).where("id", "=", id).where("sellerId", "=", sellerId));

export const findCodeByName = (db: Queries, sellerId: string, code: string) =>
  only(
    codes(db)
      .where("sellerId", "=", sellerId)
      .where((row) => row(row.fn("lower", ["code"]), "=", code.toLowerCase())),
  );

export const lockCode = (tx: Tx, sellerId: string, id: string) =>
  only(codes(tx).where("id", "=", id).where("sellerId", "=", sellerId).forUpdate());

interface CodeFilter extends Paging {
  status?: DiscountStatus | undefined;
  /** Codes that apply to it. */
  productId?: string | undefined;
  now: Date;
}

/** Each code has one: what ended is not also used up, and what is used up is not also scheduled. */
const statusOfCode = (now: Date) => sql<DiscountStatus>`
  case when ends_at <= ${now} then 'ended'
       when redemptions >= max_redemptions then 'used_up'
       when starts_at > ${now} then 'scheduled'
       else 'active' end`;

export async function listCodes(
  db: Queries,
  sellerId: string,
  { status, productId, now, ...paging }: CodeFilter,
): Promise<Page<DiscountCodeRow>> {
  let found = codes(db).where("sellerId", "=", sellerId);
  if (status) found = found.where(statusOfCode(now), "=", status);
  if (productId)
    found = found.where((row) => row.or([row("productId", "is", null), row("productId", "=", productId)]));
  const items = await found.orderBy("id", "desc").limit(paging.limit).offset(offsetOf(paging)).execute();
  const { total } = await found
    .clearSelect()
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: items.map((row) => toBigintAmounts(row)), total };
}

export const insertCode = (
  db: Queries,
  code: DiscountCodeValues & { id: string; sellerId: string; createdAt: Date },
) => db.insertInto("discountCodes").values(code).execute();

export const updateCode = (tx: Tx, id: string, values: DiscountCodeValues) =>
  tx.updateTable("discountCodes").set(values).where("id", "=", id).execute();

export async function markDeleted(db: Queries, sellerId: string, id: string, now: Date): Promise<boolean> {
  const deleted = await db
    .updateTable("discountCodes")
    .set({ deletedAt: now })
    .where("id", "=", id)
    .where("sellerId", "=", sellerId)
    .where("deletedAt", "is", null)
    .returning("id")
    .executeTakeFirst();
  return deleted !== undefined;
}

/**
 * Increments the redemptions; undefined if the code has changed since `seen` or is used up. The row lock until the end of the transaction
 * serializes the count for each buyer.
 */
export const reserveRedemption = (tx: Tx, id: string, seen: Date) =>
  tx
    .updateTable("discountCodes")
    .set((row) => ({ redemptions: row("redemptions", "+", 1) }))
    .where("id", "=", id)
    .where("deletedAt", "is", null)
    .where("updatedAt", "=", seen)
    .where((row) =>
      row.or([row("maxRedemptions", "is", null), row("redemptions", "<", row.ref("maxRedemptions"))]),
    )
    .returning("maxPerBuyer")
    .executeTakeFirst();

export async function isUnchanged(db: Queries, id: string, seen: Date): Promise<boolean> {
  const code = await codes(db).where("id", "=", id).executeTakeFirst();
  return code?.updatedAt.getTime() === seen.getTime();
}

export async function countOrdersWithCode(
  db: Queries,
  holder: { codeId: string; buyerId: string; exceptOrderId: string | undefined },
): Promise<number> {
  const { count } = await db
    .selectFrom("orders")
    .where("discountCodeId", "=", holder.codeId)
    .where("buyerId", "=", holder.buyerId)
    .where("id", "is distinct from", holder.exceptOrderId ?? null)
    .where(sql<boolean>`holds_discount_code(status)`)
    .select((row) => row.fn.countAll<number>().as("count"))
    .executeTakeFirstOrThrow();
  return count;
}
