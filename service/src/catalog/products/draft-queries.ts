import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";

export const findDraft = (db: Queries, productId: string) =>
  db
    .selectFrom("productDrafts")
    .select(["changes", "savedAt"])
    .where("productId", "=", productId)
    .executeTakeFirst();

export const saveDraft = (tx: Tx, draft: { productId: string; changes: string | null; savedAt: Date }) =>
  tx
    .insertInto("productDrafts")
    .values(draft)
    .onConflict((conflict) =>
      conflict.column("productId").doUpdateSet({ changes: draft.changes, savedAt: draft.savedAt }),
    )
    .execute();

/** When their author leaves. */
export const deleteDraftsOf = (tx: Tx, authorId: string) =>
  sql`delete from product_drafts d using products p where p.id = d.product_id and p.author_id = ${authorId}`.execute(
    tx,
  );
