import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { Amount, Currency } from "../core/envelope.ts";

const earned = z.number().describe("Below zero when more was refunded than matured");

export const Referral = z
  .object({
    code: z.string().describe("What others send as referralCode when they buy"),
    url: z.url().describe("The marketplace, with your code"),
    commissionBasisPoints: z
      .int()
      .describe("What sellers give of the net price unless they say otherwise; each product shows its own"),
    sales: z.int().describe("Purchases with your code, without those that were refunded whole"),
    earnings: z
      .array(
        z.object({
          currency: Currency,
          total: earned.describe("All commissions, less what refunds and disputes took back"),
          pending: earned.describe("Cannot be paid out yet"),
          available: earned.describe("Can be paid out"),
          reserved: Amount.describe("Matured, and not paid out as long as open refunds may take it"),
          paid: Amount.describe("In payouts that neither failed nor came back; some may be on their way"),
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
  summary: "Read your referral code and what it earned",
  description:
    "Your code is made when you first look. Nobody earns by buying with their own. What is available is paid out by the marketplace's schedule, from its minimum on, to the account that PUT /account/payout-account names; sellers may ask for it, too, by POST /payouts.",
  access: { who: "member", permission: "purchases:read" },
  data: Referral,
});
