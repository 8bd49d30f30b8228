import { DAY_MS } from "../../core/dates.ts";
import type { Tx } from "../../platform/db/database.ts";
import { addPurchase, addRating, removePurchase } from "./queries.ts";

const HALF_LIFE_MS = 7 * DAY_MS;

/** Counts a sale for popularity and trending. */
export const countSale = (tx: Tx, productId: string, at: Date) =>
  addPurchase(tx, productId, at.getTime() / HALF_LIFE_MS);

/** A sale of that moment was taken back whole: as if it had never been. */
export const uncountSale = (tx: Tx, productId: string, at: Date) =>
  removePurchase(tx, productId, at.getTime() / HALF_LIFE_MS);

/** A review counts more or less than before. */
export const adjustRating = (tx: Tx, productId: string, by: { count: number; sum: number }) =>
  addRating(tx, productId, by);
