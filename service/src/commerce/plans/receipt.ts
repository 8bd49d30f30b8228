import type { Context } from "../../core/context.ts";
import { toLongDate } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { DOWNLOAD_LINK_MINUTES, linkExpiry } from "../../core/links.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { toReceiptNumber } from "../receipts/number.ts";
import { type Receipt, SERVICE } from "../receipts/receipt.ts";
import { findPayment, type PaymentRow } from "./queries.ts";

/** The marketplace sells its plans itself. No seller's numbers look like it: theirs have five letters. */
const ISSUER = "STOA";

export type ReceiptPage = "receipt" | "receipt.pdf";
const pathOf = (paymentId: string, page: ReceiptPage) =>
  `/v1/account/subscription/payments/${paymentId}/${page}`;

/** null until the payment is completed. */
export function receiptNumberOf({ receiptYear, receiptNumber }: PaymentRow): string | null {
  if (receiptYear === null || receiptNumber === null) return null;
  return toReceiptNumber(ISSUER, receiptYear, receiptNumber);
}

export function receiptUrls(ctx: Context, { id, status }: PaymentRow) {
  if (status !== "completed") return { url: null, pdf: null };
  const until = linkExpiry(ctx.now(), DOWNLOAD_LINK_MINUTES);
  const link = (page: ReceiptPage) => ctx.links.sign(pathOf(toId("pay", id), page), until);
  return { url: link("receipt"), pdf: link("receipt.pdf") };
}

/** What stands behind a signed link, whose signature stands for whoever paid. */
export async function receiptOfLink(
  ctx: Context,
  paymentId: string,
  page: ReceiptPage,
  query: { expires?: unknown; signature?: unknown },
): Promise<Receipt> {
  if (!ctx.links.isValid(pathOf(paymentId, page), query, ctx.now()))
    throw new ApiError(
      "UNAUTHORIZED",
      "This link has expired or was changed. GET the payments for a new one.",
    );
  const id = toUuid("pay", paymentId);
  const payment = id ? await findPayment(ctx.db, id) : undefined;
  if (payment?.status !== "completed") throw new ApiError("NOT_FOUND");
  return receiptOf(ctx, payment);
}

const receiptOf = (ctx: Context, payment: PaymentRow): Receipt => ({
  number: receiptNumberOf(payment)!,
  issuedAt: payment.settledAt!,
  buyer: payment.buyer,
  seller: { name: SERVICE },
  lines: [
    {
      title: `${SERVICE} ${payment.plan}, one month`,
      detail: daysOf(payment),
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
  service: { name: SERVICE, origin: ctx.links.origin() },
});

const daysOf = ({ period }: PaymentRow): string =>
  `${toLongDate(period!.start)} to ${toLongDate(period!.end)}`;
