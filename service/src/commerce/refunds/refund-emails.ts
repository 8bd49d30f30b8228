import { findAccount } from "../../accounts/people/accounts.ts";
import type { Context } from "../../core/context.ts";
import { toLongDate } from "../../core/dates.ts";
import { formatMoney } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import type { RefundRow } from "./refund-queries.ts";

/** What people are told; a letter's words, of a refund that is written down. */
type EmailTemplate = (refund: RefundRow, amount: string) => { subject: string; paragraphs: string[] };

interface EmailTemplates {
  buyer?: EmailTemplate;
  seller?: EmailTemplate;
}

type RefundEmailKind = "requested" | "rejected" | "canceled" | "succeeded" | "failed" | "returned";

const optionalParagraph = (text: string | null) => (text ? [text] : []);

const templates: Record<RefundEmailKind, EmailTemplates> = {
  requested: {
    seller: ({ productTitle, reason, details, decideBy, approvalReason }, amount) => ({
      subject: `A buyer asks for their money back: ${productTitle}`,
      paragraphs: [
        `A buyer of “${productTitle}” asks for ${amount} back. They say:`,
        reason,
        ...optionalParagraph(details),
        approvalReason === "recent_instant_refund"
          ? "They have not used it. You decide because they had another refund at once lately."
          : "They have used it.",
        `Approve or reject it by ${toLongDate(decideBy!)}; after that it is approved by itself.`,
      ],
    }),
  },
  rejected: {
    buyer: ({ productTitle, decisionNote }, amount) => ({
      subject: `Not refunded: ${productTitle}`,
      paragraphs: [
        `Your request to get ${amount} for “${productTitle}” back was rejected. The reason:`,
        ...optionalParagraph(decisionNote),
        "You keep the product. If you think that this is wrong, write to whoever runs this marketplace.",
      ],
    }),
  },
  canceled: {
    seller: ({ productTitle }, amount) => ({
      subject: `No longer asked for: a refund of ${productTitle}`,
      paragraphs: [`The buyer of “${productTitle}” who asked for ${amount} back has taken that back.`],
    }),
  },
  succeeded: {
    buyer: ({ productTitle, origin }, amount) => ({
      subject: `Refunded: ${productTitle}`,
      paragraphs: [
        `${amount} for “${productTitle}” went back to the card that you paid with. Banks may take some days to show it.`,
        ...(origin === "service"
          ? ["Your payment came when you owned the product already. You keep it."]
          : ["The receipt of your purchase shows it."]),
      ],
    }),
    seller: ({ productTitle, reason }, amount) => ({
      subject: `Refunded: ${productTitle}`,
      paragraphs: [
        `A buyer of “${productTitle}” got ${amount} back. The reason:`,
        reason,
        "Your part of it was taken from your balance, and the platform's fee for it was given back.",
      ],
    }),
  },
  failed: {
    buyer: ({ productTitle }, amount) => ({
      subject: `The refund failed: ${productTitle}`,
      paragraphs: [
        `The payment provider could not give you ${amount} for “${productTitle}” back.`,
        "Ask for it again, or write to whoever runs this marketplace.",
      ],
    }),
    seller: ({ productTitle }, amount) => ({
      subject: `The refund failed: ${productTitle}`,
      paragraphs: [
        `The payment provider could not give a buyer ${amount} for “${productTitle}” back. Nothing was taken from you.`,
      ],
    }),
  },
  returned: {
    buyer: ({ productTitle }, amount) => ({
      subject: `Your bank sent a refund back: ${productTitle}`,
      paragraphs: [
        `Your bank did not take ${amount} that we gave back to you for “${productTitle}”. The card may have expired, or its account may be closed.`,
        "The money is still yours: write to whoever runs this marketplace, and say how you would like to get it.",
      ],
    }),
  },
};

/** Tells whom it concerns, in the transaction of what happened. Sellers hear nothing of what was never sold. */
export async function emailRefund(
  ctx: Context,
  tx: Tx,
  refund: RefundRow,
  occasion: RefundEmailKind,
): Promise<void> {
  const { buyer, seller } = templates[occasion];
  const amount = formatMoney(refund.amountMinor, refund.currency);
  if (buyer) await emailUser(ctx, tx, refund.buyerId, buyer(refund, amount));
  if (seller && refund.origin !== "service")
    await emailUser(ctx, tx, refund.sellerId, seller(refund, amount));
}

/** Whoever has left is told nothing any more. */
export async function emailUser(
  ctx: Context,
  tx: Tx,
  userId: string,
  words: ReturnType<EmailTemplate>,
): Promise<void> {
  const account = await findAccount(tx, userId);
  if (account && !account.closedAt) await queueEmail(ctx, tx, account.email, renderEmail(words));
}
