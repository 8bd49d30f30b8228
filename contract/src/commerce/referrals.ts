import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Amount, Currency } from "../core/envelope.ts";

const earned = z.number().describe("Negative if more was refunded than matured");

export const Referral = z
  .object({
    code: z.string().describe("The code that others send as referralCode when they buy"),
    url: z.url().describe("The marketplace's address with your code"),
    commissionBasisPoints: z
      .int()
      .describe("The default commission of sellers, as a part of the net price; each product shows its own"),
    sales: z.int().describe("Purchases with your code, without fully refunded ones"),
    earnings: z
      .array(
        z.object({
          currency: Currency,
          total: earned.describe("All commissions, without what refunds and disputes took back"),
          pending: earned.describe("Cannot be paid out yet"),
          available: earned.describe("Can be paid out"),
          reserved: Amount.describe("Matured, but held for open refunds"),
          paid: Amount.describe("In payouts that neither failed nor came back; some may be in transit"),
        }),
      )
      .describe("By currency: total is the sum of the other four"),
  })
  .meta({ id: "Referral" });

export type Referral = z.input<typeof Referral>;

export const get = endpoint({
  name: "account.referral.get",
  method: "GET",
  path: "/account/referral",
  summary: "Read your referral code and its earnings",
  description:
    "Your code is created at the first request. Your own purchases earn nothing. The schedule pays the available amount, from its minimum on, to the account of PUT /account/payout-account. Sellers can also request it with POST /payouts.",
  access: { who: "member", permission: "purchases:read" },
  response: one(Referral),
});
