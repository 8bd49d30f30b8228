import { z } from "zod";
import { endpoint, listOf } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, Timestamp } from "../core/envelope.ts";

export const disputeStatuses = ["inquiry", "inquiry_closed", "open", "won", "lost"] as const;
const person = z.object({ id: z.string(), name: z.string() });

export const AdminDispute = z
  .object({
    id: z.string().describe("The payment provider's id"),
    orderId: z.string(),
    status: z
      .enum(disputeStatuses)
      .describe("inquiry: a question of the bank, which holds no money. open: the amount is held"),
    amount: Amount.describe("What the buyer's bank asks for"),
    heldAmount: Amount.describe("What of it is held back now"),
    lostAmount: Amount.nullable().describe("What the bank took in the end; null unless the dispute is lost"),
    excessAmount: Amount.describe("What of that was refunded before: the marketplace's loss"),
    feeAmount: Amount.describe("The provider's fee, which the seller bears unless the dispute is won"),
    currency: Currency,
    reason: z.string().describe("In the provider's words"),
    product: z.object({ id: z.string(), title: z.string() }),
    buyer: person,
    seller: person,
    answerBy: Timestamp.nullable().describe("Until when the bank takes evidence; null: not known"),
    openedAt: Timestamp,
    closedAt: Timestamp.nullable(),
  })
  .meta({ id: "AdminDispute", description: "A dispute about an order, as the payment provider reports it." });

export type AdminDispute = z.input<typeof AdminDispute>;

export const all = endpoint({
  name: "admin.disputes.list",
  method: "GET",
  path: "/admin/disputes",
  summary: "List the disputes of all orders, newest first",
  description:
    "Answer a dispute in the dashboard of the payment provider; its decision arrives here by itself. Totals are exact up to 10,000, above that a lower bound.",
  access: { who: "admin" },
  query: z.strictObject({
    ...paging,
    status: filter(z.enum(disputeStatuses)),
    orderId: z.string().max(100).optional().describe("The id of an order"),
  }),
  response: listOf(AdminDispute),
});
