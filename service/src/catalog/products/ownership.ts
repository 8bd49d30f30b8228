import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { isAdmin } from "../../platform/http/authenticate.ts";
import { detailResponse, findVisibleProduct } from "./detail.ts";
import {
  findOwn,
  findProductForReader,
  lockOwn,
  lockProduct,
  type ProductForReader,
  type ProductWithVersion,
} from "./queries.ts";

export type LockedProduct = ProductWithVersion;

/** For the author and administrators. Throws 404 for an invisible product, 403 for another author's. */
export async function authorizeChange(
  ctx: Context,
  caller: Member,
  productId: string,
  by: "author" | "admin" = "author",
): Promise<ProductForReader> {
  const seen = await findVisibleProduct(ctx, caller, productId);
  if (isAdmin(caller) || (by === "author" && seen.authorId === caller.userId)) return seen;
  throw new ApiError("UNAUTHORIZED", `Only its ${by} may do this.`, { required: by });
}

/**
 * Locks a product after authorizeChange(), which must run before the transaction: it needs a connection of its own.
 * Waiting for a second connection while holding one can block the whole pool.
 */
export async function lockProductForChange(tx: Tx, id: string): Promise<LockedProduct> {
  const product = await lockProduct(tx, id);
  if (!product || product.status === "deleted") throw new ApiError("PRODUCT_NOT_FOUND");
  return product;
}

/** Locks a product of this author. undefined: it is another's, deleted or none. */
export async function lockOwnProduct(
  tx: Tx,
  authorId: string,
  id: string,
): Promise<LockedProduct | undefined> {
  const product = await lockProduct(tx, id, authorId);
  return product?.status === "deleted" ? undefined : product;
}

/** Filters the ids to the author's products. */
export const findOwnProducts = (db: Queries, authorId: string, ids: string[]): Promise<LockedProduct[]> =>
  findOwn(db, authorId, ids);

export const lockOwnProducts = (tx: Tx, authorId: string, ids: string[]): Promise<LockedProduct[]> =>
  lockOwn(tx, authorId, ids);

/** Only an administrator's change of another author's product is audited. */
export async function auditAdminChange(
  ctx: Context,
  tx: Tx,
  caller: Member,
  product: LockedProduct,
  entry: { action: string; source: RequestSource | null; details: Record<string, unknown> },
): Promise<void> {
  if (product.authorId === caller.userId) return;
  const target = { type: "product", id: toId("prod", product.id) };
  await recordAudit(ctx, tx, { ...entry, actorId: caller.userId, target });
}

export async function detailAfterChange(ctx: Context, caller: Member, id: string) {
  const row = await findProductForReader(ctx, id, caller.userId);
  if (!row) throw new ApiError("PRODUCT_NOT_FOUND");
  return detailResponse(ctx, row, caller);
}
