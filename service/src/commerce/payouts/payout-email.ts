import { toId } from "../../core/ids.ts";
import { formatMoney } from "../../core/money/amount.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";
import type { PayoutRow } from "./queries.ts";

export const SELLER_BANNED = "seller_banned";

export function renderPayoutEmail(payout: PayoutRow): Email {
  const amount = formatMoney(payout.amountMinor, payout.currency);
  return renderEmail({ ...emailText(payout, amount), footnotes: [`Payout ${toId("payout", payout.id)}`] });
}

function emailText({ status, periodStart, periodEnd, failureCode }: PayoutRow, amount: string) {
  const why = failureCode ? ` (${failureCode})` : "";
  const again =
    failureCode === SELLER_BANNED
      ? "The amount is back in your balance. It is not paid while your account is banned."
      : "The amount is back in your balance. Check your account at the payment provider, then request another payout or wait for the next scheduled one.";
  switch (status) {
    case "completed":
      return {
        subject: `Paid out: ${amount}`,
        paragraphs: [`We paid you ${amount} for the period from ${periodStart} to ${periodEnd} (UTC).`],
      };
    case "returned":
      return {
        subject: `Payout returned: ${amount}`,
        paragraphs: [`Your bank returned a payout of ${amount}${why}.`, again],
      };
    default:
      return {
        subject: `Payout failed: ${amount}`,
        paragraphs: [`A payout of ${amount} failed${why}.`, again],
      };
  }
}
