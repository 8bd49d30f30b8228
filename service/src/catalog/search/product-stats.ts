import { DAY_MS } from "../../core/dates.ts";
import type { Tx } from "../../platform/db/database.ts";
import { addPurchase, addRating, removePurchase } from "./queries.ts";

const HALF_LIFE_MS = 7 * DAY_MS;

export const countSale = (tx: Tx, productId: string, at: Date) =>
  addPurchase(tx, productId, at.getTime() / HALF_LIFE_MS);

/** Reverses a refunded sale of that time. */
export const uncountSale = (tx: Tx, productId: string, at: Date) =>
  removePurchase(tx, productId, at.getTime() / HALF_LIFE_MS);

export const adjustRating = (tx: Tx, productId: string, by: { count: number; sum: number }) =>
  addRating(tx, productId, by);
