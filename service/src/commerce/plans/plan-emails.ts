import type { Plan } from "@stoa/contract";
import { formatMoney } from "../../core/money/amount.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";

/** The amount includes tax. */
export interface DueMonth {
  plan: Plan;
  amountMinor: bigint;
  currency: string;
}

const describeMonth = ({ plan, amountMinor, currency }: DueMonth) =>
  `the next month of your plan ${plan}, ${formatMoney(amountMinor, currency)}`;

/** The bank requires a confirmation by the owner, who is absent. */
const NEEDS_CONFIRMATION = "authentication_required";

const describeDecline = (due: DueMonth, declineCode: string | null) =>
  declineCode === NEEDS_CONFIRMATION
    ? `Your bank requires you to confirm the payment for ${describeMonth(due)}. Choose the plan again to confirm it.`
    : `We could not charge ${describeMonth(due)}.`;

export const renewalFailedEmail = (due: DueMonth, nextTry: Date, declineCode: string | null): Email =>
  renderEmail({
    subject: `Renewal of your plan ${due.plan} failed`,
    paragraphs: [
      describeDecline(due, declineCode),
      `Your plan stays active for now. We try again on ${nextTry.toUTCString()}. To pay earlier, choose the plan again with another payment method.`,
    ],
  });

export const planEndedEmail = (due: DueMonth): Email =>
  renderEmail({
    subject: `Your plan ${due.plan} has ended`,
    paragraphs: [
      `Three attempts to charge ${describeMonth(due)} failed. Your account now has the free plan and its quotas.`,
      "Your data is kept. You can choose a plan again at any time.",
    ],
  });

export const confirmPaymentEmail = (due: DueMonth, url: string): Email =>
  renderEmail({
    subject: `Confirm the payment for your plan ${due.plan}`,
    paragraphs: [`Your bank requires you to confirm the payment for ${describeMonth(due)}.`],
    action: { label: "Confirm the payment", url },
    footnotes: ["Confirm within 24 hours. After that, we try again in a few days."],
  });

/** `until`: the end of a period that a later payment paid for; null: the plan has ended. */
export const disputeLostEmail = ({ plan, amountMinor, currency }: DueMonth, until: Date | null): Email =>
  renderEmail({
    subject: until ? `Your plan ${plan} will not be renewed` : `Your plan ${plan} has ended`,
    paragraphs: [
      `Your bank returned your payment of ${formatMoney(amountMinor, currency)} for a month of your plan ${plan} to you.`,
      until
        ? `The plan ends on ${until.toUTCString()} and is not renewed.`
        : "Your account now has the free plan and its quotas. Nothing more is charged.",
      "Your data is kept. You can choose a plan again at any time.",
    ],
  });
