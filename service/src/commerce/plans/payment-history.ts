import type { PlanPayment } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { required } from "../../core/required.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { planReceiptNumber, planReceiptUrls } from "./plan-receipt.ts";
import { listPayments as findPayments, type PaymentRow } from "./queries.ts";

export async function listPayments(ctx: Context, caller: Member, paging: Paging): Promise<Page<PlanPayment>> {
  const page = await findPayments(ctx.db, caller.userId, paging);
  return mapPage(page, (payment) => toPlanPayment(ctx, payment));
}

const toPlanPayment = (ctx: Context, payment: PaymentRow): PlanPayment => ({
  id: toId("pay", payment.id),
  plan: payment.plan,
  status: payment.status,
  amount: toDecimal(payment.amountMinor, payment.currency),
  currency: payment.currency,
  lines: toLines(payment),
  taxRate: taxRateOf(payment),
  paymentMethod: payment.paymentMethod,
  declineCode: payment.declineCode,
  period: payment.period && {
    start: payment.period.start.toISOString(),
    end: payment.period.end.toISOString(),
  },
  receipt: { ...planReceiptUrls(ctx, payment), number: planReceiptNumber(payment) },
  createdAt: payment.createdAt.toISOString(),
  completedAt:
    payment.status === "completed"
      ? required(payment.settledAt, "the date of a completed payment").toISOString()
      : null,
});

function toLines({ priceMinor, creditMinor, taxMinor, amountMinor, currency }: PaymentRow) {
  const amount = (minor: bigint) => toDecimal(minor, currency);
  return {
    subtotal: amount(priceMinor),
    discount: amount(creditMinor),
    tax: amount(taxMinor),
    total: amount(amountMinor),
  };
}
