import type { Plan } from "@stoa/contract";
import { formatMoney } from "../../core/money/amount.ts";
import { type Email, renderEmail } from "../../platform/email/render-email.ts";

/** A month that is to be paid, with its tax. */
export interface DueMonth {
  plan: Plan;
  amountMinor: bigint;
  currency: string;
}

const describeMonth = ({ plan, amountMinor, currency }: DueMonth) =>
  `the next month of your plan ${plan}, ${formatMoney(amountMinor, currency)}`;

/** What a bank answers that wants its customer to confirm, who is not there. */
const NEEDS_CONFIRMATION = "authentication_required";

const describeDecline = (due: DueMonth, declineCode: string | null) =>
  declineCode === NEEDS_CONFIRMATION
    ? `Your bank wants you to confirm ${describeMonth(due)}: choose the plan again, and you can.`
    : `We could not charge ${describeMonth(due)}.`;

export const renewalFailedEmail = (due: DueMonth, nextTry: Date, declineCode: string | null): Email =>
  renderEmail({
    subject: `Your plan ${due.plan} could not be renewed yet`,
    paragraphs: [
      describeDecline(due, declineCode),
      `Nothing changes for now. We try again on ${nextTry.toUTCString()}; until then you can choose the plan again with another payment method.`,
    ],
  });

export const planEndedEmail = (due: DueMonth): Email =>
  renderEmail({
    subject: `Your plan ${due.plan} has ended`,
    paragraphs: [
      `We tried three times to charge ${describeMonth(due)}, in vain. Your account has the free plan now, with its quotas.`,
      "Nothing of yours is gone. Choose a plan whenever you like.",
    ],
  });

export const confirmPaymentEmail = (due: DueMonth, url: string): Email =>
  renderEmail({
    subject: `Confirm the payment for your plan ${due.plan}`,
    paragraphs: [`Your bank wants you to confirm ${describeMonth(due)}.`],
    action: { label: "Confirm the payment", url },
    footnotes: ["Within 24 hours, please: afterwards we try again in some days."],
  });

/** `until`: when the plan ends, where a later payment paid for it; null: it has ended. */
export const disputeLostEmail = ({ plan, amountMinor, currency }: DueMonth, until: Date | null): Email =>
  renderEmail({
    subject: until ? `Your plan ${plan} will not be renewed` : `Your plan ${plan} has ended`,
    paragraphs: [
      `Your bank took back the ${formatMoney(amountMinor, currency)} that you paid for a month of your plan ${plan}.`,
      until
        ? `The plan ends on ${until.toUTCString()}, and nothing is charged for it any more.`
        : "Your account has the free plan now, with its quotas, and nothing is charged any more.",
      "Nothing of yours is gone. Choose a plan whenever you like.",
    ],
  });
