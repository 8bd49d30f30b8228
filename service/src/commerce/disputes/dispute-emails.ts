import type { Context } from "../../core/context.ts";
import { formatMoney } from "../../core/money/amount.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { OrderRow } from "../orders/queries.ts";
import type { DisputeRow } from "../refunds/dispute-queries.ts";
import { emailUser } from "../refunds/refund-emails.ts";

/** `isGone`: nothing is left of the price, and so the product is not the buyer's any more. */
type EmailTemplate = (
  title: string,
  amount: string,
  isGone: boolean,
) => { subject: string; paragraphs: string[] };

const templates: Record<"opened" | "won" | "lost", { buyer: EmailTemplate; seller: EmailTemplate }> = {
  opened: {
    buyer: (title, amount) => ({
      subject: `Your bank disputes a payment: ${title}`,
      paragraphs: [
        `Your bank asks for ${amount} back that you paid for “${title}”. It decides about the money now, so that no refund can be asked for meanwhile.`,
        "You keep the product until then. If you did not mean this, tell your bank that the payment was yours.",
      ],
    }),
    seller: (title, amount) => ({
      subject: `A payment is disputed: ${title}`,
      paragraphs: [
        `The bank of a buyer of “${title}” asks for ${amount} back. Your part of it is held back until the bank has decided.`,
      ],
    }),
  },
  won: {
    buyer: (title, amount) => ({
      subject: `The dispute is over: ${title}`,
      paragraphs: [
        `Your bank has decided that the ${amount} for “${title}” stay paid. You keep the product.`,
      ],
    }),
    seller: (title, amount) => ({
      subject: `The dispute is won: ${title}`,
      paragraphs: [`The ${amount} for “${title}” stay paid. What was held back of it is yours again.`],
    }),
  },
  lost: {
    buyer: (title, amount, isGone) => ({
      subject: `The dispute is over: ${title}`,
      paragraphs: [
        `Your bank has decided that you get the ${amount} for “${title}” back. ${isGone ? "The product is not yours to use any more." : "You keep the product."}`,
      ],
    }),
    seller: (title, amount) => ({
      subject: `The dispute is lost: ${title}`,
      paragraphs: [
        `The bank gave the buyer of “${title}” ${amount} back. Your part of it stays taken, and so does what the payment provider charges for a lost dispute.`,
      ],
    }),
  },
};

/** Both sides, in the transaction of what happened. */
export async function emailDispute(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  { amountMinor }: DisputeRow,
  what: "opened" | "won" | "lost",
): Promise<void> {
  const amount = formatMoney(amountMinor, order.currency);
  const isGone = order.refundedMinor === order.totalMinor;
  const { buyer, seller } = templates[what];
  await emailUser(ctx, tx, order.buyerId, buyer(order.productTitle, amount, isGone));
  await emailUser(ctx, tx, order.sellerId, seller(order.productTitle, amount, isGone));
}
