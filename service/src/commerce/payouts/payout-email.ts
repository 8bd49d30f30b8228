import { toId } from "../../core/ids.ts";
import { formatMoney } from "../../core/money/amount.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import type { PayoutRow } from "./queries.ts";

/** Why a payout failed that was drawn before its seller was shut out. */
export const SELLER_BANNED = "seller_banned";

/** What a seller hears when a payout has ended. */
export function renderPayoutEmail(payout: PayoutRow): Email {
  const amount = formatMoney(payout.amountMinor, payout.currency);
  return renderEmail({ ...emailText(payout, amount), footnotes: [`Payout ${toId("payout", payout.id)}`] });
}

function emailText({ status, periodStart, periodEnd, failureCode }: PayoutRow, amount: string) {
  const why = failureCode ? ` (${failureCode})` : "";
  const again =
    failureCode === SELLER_BANNED
      ? "The amount is part of your balance again, and is not paid while you are shut out."
      : "The amount is part of your balance again. See to your account at the payment provider; then ask for another payout, or wait for the next one.";
  switch (status) {
    case "completed":
      return {
        subject: `Paid out: ${amount}`,
        paragraphs: [`${amount} was paid to you, for the days from ${periodStart} to ${periodEnd} (UTC).`],
      };
    case "returned":
      return {
        subject: `Sent back by your bank: ${amount}`,
        paragraphs: [`Your bank sent back a payout of ${amount}${why}.`, again],
      };
    default:
      return {
        subject: `Not paid out: ${amount}`,
        paragraphs: [`A payout of ${amount} failed${why}.`, again],
      };
  }
}
