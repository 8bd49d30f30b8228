import type { Context } from "../context.ts";
import type { Queries, Tx } from "../db/database.ts";
import { toUuid } from "../ids.ts";
import { addRating, addSale, findForSale, findVersion } from "./queries.ts";

const HALF_LIFE_MS = 7 * 86_400_000;

/** What a purchase has to know of a product; undefined for an id that names nothing. */
export async function findProductForSale(ctx: Context, productId: string) {
  const id = toUuid("prod", productId);
  return id ? findForSale(ctx.db, id) : undefined;
}

/** Counts a sale for popularity and trending. */
export const countSale = (tx: Tx, productId: string, at: Date) =>
  addSale(tx, productId, at.getTime() / HALF_LIFE_MS);

export const countRating = (tx: Tx, productId: string, rating: number) => addRating(tx, productId, rating);

/** The version that runs: a pinned one of the bought line, else its newest. `major` null: any line, for the author. */
export const findRunnableVersion = (
  db: Queries,
  productId: string,
  which: { major: number | null; pinned: string | undefined },
) => findVersion(db, productId, which);
