import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { toUuid } from "../ids.ts";
import { findForSale, findVersion } from "./queries.ts";

/** What a purchase has to know of a product; undefined for an id that names nothing. */
export async function findProductForSale(ctx: Context, productId: string) {
  const id = toUuid("prod", productId);
  return id ? findForSale(ctx.db, id) : undefined;
}

/** The version that runs: a pinned one of the bought line, else its newest. `major` null: any line, for the author. */
export const findRunnableVersion = (
  db: Queries,
  productId: string,
  which: { major: number | null; pinned: string | undefined },
) => findVersion(db, productId, which);
