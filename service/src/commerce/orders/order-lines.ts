import type { PurchaseDetail } from "@stoa/contract";
import { toDecimal } from "../../core/money/amount.ts";
import type { OrderRow } from "./queries.ts";

type OrderAmounts = Pick<
  OrderRow,
  "currency" | "subtotalMinor" | "discountMinor" | "taxMinor" | "totalMinor"
>;

export function toOrderLines(order: OrderAmounts): PurchaseDetail["lines"] {
  const amount = (minor: bigint) => toDecimal(minor, order.currency);
  return {
    subtotal: amount(order.subtotalMinor),
    discount: amount(order.discountMinor),
    tax: amount(order.taxMinor),
    total: amount(order.totalMinor),
  };
}
