import { type OrderStatus, toVisibleLine } from "@stoa/contract";
import { toLongDate } from "../../core/dates.ts";
import { formatMoney } from "../../core/money/amount.ts";
import type { TaxRate } from "../../core/money/percent.ts";
import { renderReceiptPage } from "./html.ts";

export const ISSUER_NAME = "Stoa";

/** All amounts are minor units of `currency`. */
export interface Receipt {
  number: string;
  issuedAt: Date;
  status: OrderStatus;
  /** Such as the discount code; null: no reason is shown. */
  discountReason: string | null;
  /** null: no tax. */
  taxRate: TaxRate | null;
  /** Oldest first. */
  refunds: { at: Date; amountMinor: bigint }[];
  buyer: { name: string; email: string };
  seller: { name: string };
  /** `detail`: a version or a period, printed below the title. */
  lines: { title: string; detail: string; amountMinor: bigint }[];
  subtotalMinor: bigint;
  discountMinor: bigint;
  taxMinor: bigint;
  totalMinor: bigint;
  refundedMinor: bigint;
  currency: string;
  /** null: nothing to pay. */
  paymentMethod: { brand: string; last4: string } | null;
  service: { name: string; origin: string };
}

/** The texts of a receipt, for both HTML and PDF, or of another document with lines and sums. */
export interface ReceiptText {
  title: string;
  heading: string;
  /** Heads the column of the lines' titles. */
  lineLabel: string;
  issuedAt: Date;
  service: { name: string; origin: string };
  facts: { label: string; value: string }[];
  parties: { role: string; name: string; email?: string }[];
  lines: { title: string; detail: string; amount: string }[];
  sums: Sum[];
}

interface Sum {
  label: string;
  amount: string;
  isMain?: boolean;
}

/** Send the page with `receiptPolicy` as its Content-Security-Policy. */
export function renderReceiptHtml(receipt: Receipt): string {
  return renderReceiptPage(receiptText(receipt));
}

/** The same receipt always returns the same bytes. */
export const receiptPdf = (receipt: Receipt): Promise<Buffer> => textPdf(receiptText(receipt));

export async function textPdf(text: ReceiptText): Promise<Buffer> {
  // Lazy import: the library adds 250 ms to the start of a process.
  const { renderReceiptPdf: drawReceiptPdf } = await import("./pdf.ts");
  return drawReceiptPdf(text);
}

export { receiptPageCsp as receiptPolicy } from "./html.ts";

function receiptText(receipt: Receipt): ReceiptText {
  const { service, issuedAt, buyer, seller } = receipt;
  return {
    title: `Receipt ${receipt.number}`,
    heading: "Receipt",
    lineLabel: "Product",
    issuedAt,
    service,
    facts: [
      { label: "Receipt number", value: receipt.number },
      { label: "Date", value: toLongDate(issuedAt) },
      { label: "Status", value: describeStatus(receipt) },
      { label: "Payment", value: paymentText(receipt.paymentMethod) },
    ],
    parties: [
      { role: "Bought by", name: toVisibleLine(buyer.name), email: buyer.email },
      { role: "Sold by", name: toVisibleLine(seller.name) },
    ],
    lines: receipt.lines.map(({ title, detail, amountMinor }) => ({
      title: toVisibleLine(title),
      detail,
      amount: formatAmount(amountMinor, receipt.currency),
    })),
    sums: toSumLines(receipt),
  };
}

function toSumLines(receipt: Receipt): Sum[] {
  const sum = (label: string, minor: bigint): Sum => ({
    label,
    amount: formatAmount(minor, receipt.currency),
  });
  const sums = [sum("Subtotal", receipt.subtotalMinor)];
  const tax = receipt.taxMinor ? [sum(taxLabel(receipt), receipt.taxMinor)] : [];
  const total = { ...sum("Total", receipt.totalMinor), isMain: true };
  if (receipt.discountMinor) sums.push(sum(discountLabel(receipt), -receipt.discountMinor));
  // Tax on top comes before the total, included tax after it.
  sums.push(...(receipt.taxRate?.inclusive ? [total, ...tax] : [...tax, total]));
  if (receipt.refundedMinor) {
    sums.push(...toRefundLines(receipt).map(({ label, amountMinor }) => sum(label, -amountMinor)));
    sums.push(sum("Paid after refund", receipt.totalMinor - receipt.refundedMinor));
  }
  return sums;
}

const discountLabel = ({ discountReason }: Receipt) =>
  discountReason === null ? "Discount" : `Discount (${discountReason})`;

function taxLabel({ taxRate }: Receipt): string {
  if (!taxRate) return "Tax";
  const { percent, inclusive, country } = taxRate;
  return `${inclusive ? "Tax included" : "Tax"} (${country}, ${percent} %)`;
}

/** The amount without a refund row comes from lost disputes. */
function toRefundLines({ refunds, refundedMinor }: Receipt) {
  const rest = refunds.reduce((left, { amountMinor }) => left - amountMinor, refundedMinor);
  const rows = refunds.map(({ at, amountMinor }) => ({
    label: `Refunded on ${toLongDate(at)}`,
    amountMinor,
  }));
  return rest > 0n ? [...rows, { label: "Refunded", amountMinor: rest }] : rows;
}

const describeStatus = ({ status, totalMinor }: Receipt): string =>
  status === "completed" && totalMinor === 0n ? "Free" : statusNames[status];

const statusNames: Record<OrderStatus, string> = {
  pending: "Pending",
  requires_action: "Waiting for the buyer",
  completed: "Paid",
  failed: "Failed",
  canceled: "Canceled",
  partially_refunded: "Partially refunded",
  refunded: "Refunded",
  disputed: "Disputed",
};

function paymentText(method: Receipt["paymentMethod"]): string {
  if (!method) return "Nothing to pay";
  return `${method.brand.charAt(0).toUpperCase()}${method.brand.slice(1)} ending in ${method.last4}`;
}

/** A true minus sign is as wide as a digit. */
export function formatAmount(minor: bigint, currency: string): string {
  return formatMoney(minor, currency).replace("-", "−");
}
