import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import type { Context } from "../../core/context.ts";
import { toLongDate } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { formatMoney, formatMoneyWithSymbol } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import type { RefundRow } from "./refund-queries.ts";

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
      subject: `Refund requested: ${productTitle}`,
      paragraphs: [
        `A buyer of “${productTitle}” requests a refund of ${amount}. The reason:`,
        reason,
        ...optionalParagraph(details),
        approvalReason === "recent_instant_refund"
          ? "The buyer has not used the product. You decide because the buyer recently had another instant refund."
          : "The buyer has used the product.",
        `Approve or reject the request by ${toLongDate(decideBy!)}; after that it is approved automatically.`,
      ],
    }),
  },
  rejected: {
    buyer: ({ productTitle, decisionNote }, amount) => ({
      subject: `Refund rejected: ${productTitle}`,
      paragraphs: [
        `Your request for a refund of ${amount} for “${productTitle}” was rejected. The reason:`,
        ...optionalParagraph(decisionNote),
        "You keep the product. To appeal, contact the operator of this marketplace.",
      ],
    }),
  },
  canceled: {
    seller: ({ productTitle }, amount) => ({
      subject: `Refund request canceled: ${productTitle}`,
      paragraphs: [`The buyer of “${productTitle}” canceled the request for a refund of ${amount}.`],
    }),
  },
  succeeded: {
    buyer: ({ productTitle, origin }, amount) => ({
      subject: `Refunded: ${productTitle}`,
      paragraphs: [
        `${amount} for “${productTitle}” was refunded to your payment method. Your bank may take a few days to show it.`,
        ...(origin === "service"
          ? ["Your payment arrived when you already owned the product. You keep the product."]
          : ["The receipt of your purchase shows it."]),
      ],
    }),
    seller: ({ productTitle, reason }, amount) => ({
      subject: `Refunded: ${productTitle}`,
      paragraphs: [
        `A buyer of “${productTitle}” was refunded ${amount}. The reason:`,
        reason,
        "Your share was deducted from your balance, and the platform fee was returned.",
      ],
    }),
  },
  failed: {
    buyer: ({ productTitle }, amount) => ({
      subject: `Refund failed: ${productTitle}`,
      paragraphs: [
        `The payment provider could not refund you ${amount} for “${productTitle}”.`,
        "Request the refund again, or contact the operator of this marketplace.",
      ],
    }),
    seller: ({ productTitle }, amount) => ({
      subject: `Refund failed: ${productTitle}`,
      paragraphs: [
        `The payment provider could not refund a buyer ${amount} for “${productTitle}”. Your balance is unchanged.`,
      ],
    }),
  },
  returned: {
    buyer: ({ productTitle }, amount) => ({
      subject: `Your bank returned a refund: ${productTitle}`,
      paragraphs: [
        `Your bank returned a refund of ${amount} for “${productTitle}”. The card may have expired, or its account may be closed.`,
        "We still owe you this amount. Contact the operator of this marketplace to choose another way to receive it.",
      ],
    }),
  },
};

/** What each email is about; not every kind is for both. */
const notificationKinds: {
  buyer: Partial<Record<RefundEmailKind, `purchase.refund${"ed" | "_rejected" | "_failed" | "_returned"}`>>;
  seller: Partial<Record<RefundEmailKind, `sale.refund${"ed" | "_requested" | "_canceled" | "_failed"}`>>;
} = {
  buyer: {
    rejected: "purchase.refund_rejected",
    succeeded: "purchase.refunded",
    failed: "purchase.refund_failed",
    returned: "purchase.refund_returned",
  },
  seller: {
    requested: "sale.refund_requested",
    canceled: "sale.refund_canceled",
    succeeded: "sale.refunded",
    failed: "sale.refund_failed",
  },
};

/** A payment that sold nothing is not reported to the seller. */
export async function notifyOfRefund(
  ctx: Context,
  tx: Tx,
  refund: RefundRow,
  kind: RefundEmailKind,
): Promise<void> {
  const { buyer, seller } = templates[kind];
  const amount = formatMoney(refund.amountMinor, refund.currency);
  const about = { subjectId: toId("refund", refund.id), data: toData(refund) };
  const kinds = { buyer: notificationKinds.buyer[kind], seller: notificationKinds.seller[kind] };
  if (buyer && kinds.buyer) {
    const notification = { ...about, userId: refund.buyerId, kind: kinds.buyer };
    await notifyAccount(ctx, tx, notification, renderEmail(buyer(refund, amount)));
  }
  if (seller && kinds.seller && refund.origin !== "service") {
    const notification = {
      ...about,
      userId: refund.sellerId,
      kind: kinds.seller,
      actorId: refund.buyerId,
    };
    await notifyAccount(ctx, tx, notification, renderEmail(seller(refund, amount)));
  }
}

const toData = ({ orderId, productTitle, amountMinor, currency, decideBy, decisionNote }: RefundRow) => ({
  product: productTitle,
  amount: formatMoneyWithSymbol(amountMinor, currency),
  orderId: toId("ord", orderId),
  decideBy: decideBy ? toLongDate(decideBy) : "",
  reason: decisionNote,
});
