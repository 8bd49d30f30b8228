import { toUserId } from "../../accounts/people/users.ts";
import { formatReceiptNumber } from "../receipts/receipt-number.ts";
import type { OrderRow } from "./queries.ts";

const SELLER_LETTERS = 5;

/** The end of an id is random, so the numbers of two sellers differ clearly. */
const sellerPart = (sellerId: string) => toUserId(sellerId).slice(-SELLER_LETTERS).toUpperCase();

/** Such as `R-3F7K2-2026-00042`; null until the order is completed. */
export function receiptNumberOf({
  sellerId,
  receiptYear,
  receiptNumber,
}: Pick<OrderRow, "sellerId" | "receiptYear" | "receiptNumber">): string | null {
  if (receiptYear === null || receiptNumber === null) return null;
  return formatReceiptNumber(sellerPart(sellerId), receiptYear, receiptNumber);
}
