import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { formatMoney, formatMoneyWithSymbol } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import { renderEmail } from "../../platform/email/render-email.ts";
import type { OrderRow } from "../orders/queries.ts";
import type { DisputeRow } from "../refunds/dispute-queries.ts";

/** `isGone`: the price is fully refunded, so the buyer lost the product. */
type EmailTemplate = (
  title: string,
  amount: string,
  isGone: boolean,
) => { subject: string; paragraphs: string[] };

const templates: Record<"opened" | "won" | "lost", { buyer: EmailTemplate; seller: EmailTemplate }> = {
  opened: {
    buyer: (title, amount) => ({
      subject: `Payment disputed by your bank: ${title}`,
      paragraphs: [
        `Your bank disputes your payment of ${amount} for “${title}”. You cannot request a refund until the bank decides.`,
        "You keep the product until then. If this is a mistake, tell your bank that you made the payment.",
      ],
    }),
    seller: (title, amount) => ({
      subject: `Payment disputed: ${title}`,
      paragraphs: [
        `The bank of a buyer of “${title}” disputes a payment of ${amount}. Your share is held until the bank decides.`,
      ],
    }),
  },
  won: {
    buyer: (title, amount) => ({
      subject: `Dispute closed: ${title}`,
      paragraphs: [
        `Your bank decided that the payment of ${amount} for “${title}” stands. You keep the product.`,
      ],
    }),
    seller: (title, amount) => ({
      subject: `Dispute won: ${title}`,
      paragraphs: [
        `The payment of ${amount} for “${title}” stands. The held amount is back in your balance.`,
      ],
    }),
  },
  lost: {
    buyer: (title, amount, isGone) => ({
      subject: `Dispute closed: ${title}`,
      paragraphs: [
        `Your bank decided to return the ${amount} for “${title}” to you. ${isGone ? "You can no longer use the product." : "You keep the product."}`,
      ],
    }),
    seller: (title, amount) => ({
      subject: `Dispute lost: ${title}`,
      paragraphs: [
        `The bank returned ${amount} to the buyer of “${title}”. Your share and the payment provider's dispute fee are deducted from your balance.`,
      ],
    }),
  },
};

const notificationKinds = {
  opened: { buyer: "purchase.disputed", seller: "sale.disputed" },
  won: { buyer: "purchase.dispute_closed", seller: "sale.dispute_won" },
  lost: { buyer: "purchase.dispute_closed", seller: "sale.dispute_lost" },
} as const;

export async function notifyOfDispute(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  { amountMinor }: DisputeRow,
  kind: "opened" | "won" | "lost",
): Promise<void> {
  const amount = formatMoney(amountMinor, order.currency);
  const isGone = order.refundedMinor === order.totalMinor;
  const { buyer, seller } = templates[kind];
  const kinds = notificationKinds[kind];
  const about = {
    subjectId: toId("ord", order.id),
    data: {
      product: order.productTitle,
      amount: formatMoneyWithSymbol(amountMinor, order.currency),
      result: kind === "won" ? ("won" as const) : ("lost" as const),
    },
    occurrence: ctx.newId(),
  };
  const [toBuyer, toSeller] = [buyer, seller].map((template) =>
    renderEmail(template(order.productTitle, amount, isGone)),
  );
  await notifyAccount(ctx, tx, { ...about, userId: order.buyerId, kind: kinds.buyer }, toBuyer);
  await notifyAccount(ctx, tx, { ...about, userId: order.sellerId, kind: kinds.seller }, toSeller);
}
