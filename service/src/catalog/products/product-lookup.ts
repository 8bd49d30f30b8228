import { type RawBuilder, sql } from "kysely";
import { toUuid } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import { commissionOf, isOnSale, isWithheld, withheldError } from "./detail.ts";
import { findForSale, findModerationDecision, findReleased, findVersion } from "./queries.ts";

export async function findProductForSale(db: Queries, productId: string) {
  const id = toUuid("prod", productId);
  const product = id ? await findForSale(db, id) : undefined;
  return product && { ...product, commissionBasisPoints: commissionOf(product), isOnSale: isOnSale(product) };
}

/** The pinned version of the bought line, else its newest. `major` null: any line, for the author. */
export const findRunnableVersion = (
  db: Queries,
  productId: string,
  which: { major: number | null; pinned: string | undefined },
) => findVersion(db, productId, which);

/** Buyers keep access unless moderators withdrew the product as malicious or illegal. */
export async function mustNotBeWithheld(db: Queries, productId: string): Promise<void> {
  const decision = await findModerationDecision(db, productId);
  if (decision && isWithheld(decision)) throw withheldError(decision);
}

/** Whether buyers lost access too; undefined: no such product. */
export async function isWithheldFromBuyers(db: Queries, productId: string): Promise<boolean | undefined> {
  const decision = await findModerationDecision(db, productId);
  return decision && isWithheld(decision);
}

/** A product as its reader got it. `major`: the line of versions that the reader may run. */
interface ProductSnapshot {
  id: string;
  revision: number;
  major: number | null;
}

/**
 * In SQL: whether the user may still run a product, as its author or as a buyer who has used it, and it is as the user read it. Every
 * change of a product, its newest version included, raises the revision.
 */
export const isSameProductSql = (
  userId: string | RawBuilder<string>,
  { id, revision, major }: ProductSnapshot | Record<keyof ProductSnapshot, RawBuilder<unknown>>,
) => sql<boolean>`
  exists (select from products where id = ${id}::uuid and revision = ${revision}::integer
            and (author_id = ${userId}::uuid
                 or exists (select from entitlements
                             where buyer_id = ${userId}::uuid and product_id = ${id}::uuid and status = 'active'
                               and major = ${major}::integer and used_at is not null)))`;

export const findProductTitle = async (db: Queries, productId: string): Promise<string | undefined> =>
  (await findReleased(db, productId))?.title;
