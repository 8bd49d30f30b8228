import type { Context } from "../../core/context.ts";
import { toLongDate } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { DOWNLOAD_LINK_MINUTES, linkExpiry } from "../../core/links.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { required } from "../../core/required.ts";
import { ISSUER_NAME, type Receipt } from "../receipts/receipt.ts";
import { formatReceiptNumber } from "../receipts/receipt-number.ts";
import { findPayment, type PaymentRow } from "./queries.ts";

/** The marketplace sells plans itself. Codes of sellers have five letters, so they cannot collide. */
const ISSUER = "STOA";

export type ReceiptPage = "receipt" | "receipt.pdf";
const linkPath = (paymentId: string, page: ReceiptPage) =>
  `/v1/account/subscription/payments/${paymentId}/${page}`;

/** null until the payment is completed. */
export function planReceiptNumber({ receiptYear, receiptNumber }: PaymentRow): string | null {
  if (receiptYear === null || receiptNumber === null) return null;
  return formatReceiptNumber(ISSUER, receiptYear, receiptNumber);
}

export function planReceiptUrls(ctx: Context, { id, status }: PaymentRow) {
  if (status !== "completed") return { url: null, pdf: null };
  const until = linkExpiry(ctx.now(), DOWNLOAD_LINK_MINUTES);
  const link = (page: ReceiptPage) => ctx.links.sign(linkPath(toId("pay", id), page), until);
  return { url: link("receipt"), pdf: link("receipt.pdf") };
}

export async function findLinkedReceipt(
  ctx: Context,
  paymentId: string,
  page: ReceiptPage,
  query: { expires?: unknown; signature?: unknown },
): Promise<Receipt> {
  if (!ctx.links.isValid(linkPath(paymentId, page), query, ctx.now()))
    throw new ApiError(
      "UNAUTHORIZED",
      "This link has expired or was changed. GET the payments for a new one.",
    );
  const id = toUuid("pay", paymentId);
  const payment = id ? await findPayment(ctx.db, id) : undefined;
  if (payment?.status !== "completed") throw new ApiError("NOT_FOUND");
  return toPlanReceipt(ctx, payment);
}

const toPlanReceipt = (ctx: Context, payment: PaymentRow): Receipt => ({
  number: required(planReceiptNumber(payment), "the number of a paid bill"),
  issuedAt: required(payment.settledAt, "the date of a paid bill"),
  buyer: payment.buyer,
  seller: { name: ISSUER_NAME },
  lines: [
    {
      title: `${ISSUER_NAME} ${payment.plan}, one month`,
      detail: describePeriod(payment),
      amountMinor: payment.priceMinor,
    },
  ],
  subtotalMinor: payment.priceMinor,
  discountMinor: payment.creditMinor,
  discountReason: "unused part of the month before",
  taxMinor: payment.taxMinor,
  taxRate: taxRateOf(payment),
  totalMinor: payment.amountMinor,
  refundedMinor: 0n,
  refunds: [],
  currency: payment.currency,
  paymentMethod: payment.paymentMethod,
  status: "completed",
  service: { name: ISSUER_NAME, origin: ctx.links.origin() },
});

function describePeriod({ period }: PaymentRow): string {
  const { start, end } = required(period, "the period of a paid bill");
  return `${toLongDate(start)} to ${toLongDate(end)}`;
}
