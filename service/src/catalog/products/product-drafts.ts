import type { ProductDraft, SetProductDraft } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { deleteDraftsOf, findDraft, saveDraft } from "./draft-queries.ts";
import { authorizeChange, lockProductForChange } from "./ownership.ts";

export async function readProductDraft(ctx: Context, caller: Member, productId: string) {
  const product = await authorizeChange(ctx, caller, productId);
  if (product.status === "deleted") throw new ApiError("PRODUCT_NOT_FOUND");
  return toResponse(await readDraft(ctx.db, product.id));
}

export async function setProductDraft(
  ctx: Context,
  caller: Member,
  productId: string,
  { changes, ifMatch }: SetProductDraft & { ifMatch: string | null },
) {
  const product = await authorizeChange(ctx, caller, productId);
  return ctx.db.transaction().execute(async (tx) => {
    await lockProductForChange(tx, product.id);
    mustMatch(ifMatch, etagOf(await readDraft(tx, product.id)));
    const text = changes === null ? null : JSON.stringify(changes);
    await saveDraft(tx, { productId: product.id, changes: text, savedAt: ctx.now() });
    return toResponse(await readDraft(tx, product.id));
  });
}

export const deleteProductDrafts = (tx: Tx, authorId: string) => deleteDraftsOf(tx, authorId);

async function readDraft(db: Queries, id: string): Promise<ProductDraft> {
  const row = await findDraft(db, id);
  const isThere = row !== undefined && row.changes !== null;
  return {
    changes: isThere ? (JSON.parse(row.changes ?? "null") as ProductDraft["changes"]) : null,
    savedAt: row?.savedAt.toISOString() ?? null,
  };
}

const toResponse = (data: ProductDraft) => new DataResponse(data, { etag: etagOf(data) });
